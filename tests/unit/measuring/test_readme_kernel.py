"""The README's kernel in ten lines, taken from the page and measured."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from longca import closure
from longca.cases import Case
from longca.files import write_atomically
from longca.kernels import registry
from longca.masks.mask import draw_mask, mask_to_json
from longca.measure.session import KernelSession
from longca.study.model import Protocol

README = (Path(__file__).parents[3] / "README.md").read_text()
LIBRARY = """
from torch.nn.functional import scaled_dot_product_attention

def attention(q, k, v, causal):
    return scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    kernel = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
    # The page's library is for GPUs; the one that stands in for it here runs on a CPU, in float32.
    kernel = kernel.replace(
        '{"cuda": ("forward", "backward")}', '{"cpu": ("forward", "backward")}, dtypes=frozenset({"float32"})'
    )
    assert '"cpu"' in kernel
    point = re.search(r"```toml\n(.*?)```", README, re.DOTALL)[1]
    assert 'entry-points."longca.kernels"' in point
    (tmp_path / "my_library.py").write_text(LIBRARY)
    (tmp_path / "my_module.py").write_text(kernel)
    info = tmp_path / "my_library-2.5.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-library\nVersion: 2.5\n")
    (info / "entry_points.txt").write_text("[longca.kernels]\nmine = my_module\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for cache in (registry._modules, closure.closure_digest, closure._find, closure._read):
        cache.cache_clear()
    yield tmp_path
    registry._modules.cache_clear()


def test_it_is_measured_verified_and_fingerprinted(installed):
    case = Case("dense", "mine", "auto", "causal", 64, 0, 4, 2, 64, "float32", "backward")
    mask = draw_mask("causal", 64)
    write_atomically(installed / "mask.json", mask_to_json(mask))
    with KernelSession("dense", "mine", Protocol(device="cpu", warmups=1, repetitions=3)) as session:
        record, _ = session.measure(case, mask, installed / "mask.json", 120)
        other, _ = session.measure(replace(case, pattern="full"), mask, installed / "mask.json", 120)
    assert record.status == "ok" and record.backend == "my_library, causal"
    assert record.environment["versions"] == {"my-library": "2.5"}
    assert other.status == "unsupported" and other.reason == "does not know the pattern full"
