"""A package of kernels beside longca, found through the entry point `longca.kernels`: right, wrong and broken ones."""

import sys
from pathlib import Path

import pytest

from longca import closure
from longca.kernels import fingerprint, registry

HEAD = """
import os
import signal
import time
import torch
from longca.kernels.interface import FallbackError, Kernel, Prepared, Support, UnsupportedError, from_layout, prepared
from longca.kernels.dense.naive import prepare as right
from longca.masks.patterns import PATTERNS

def no(error):
    raise error


SUPPORT = Support(
    patterns=frozenset(PATTERNS),
    passes={"cpu": ("forward", "backward")},
    dtypes=frozenset({"float32", "bfloat16"}),
)
"""

# What each kernel's prepare does, by name.
KERNELS = {
    "right": "return right(case, mask, tensors)",
    "segfault": "case.seqlen == 64 and os.kill(os.getpid(), signal.SIGSEGV); return right(case, mask, tensors)",
    "hang": "time.sleep(3600) if case.seqlen == 64 else None; return right(case, mask, tensors)",
    "memory": "return torch.empty(1 << 60) if case.seqlen == 64 else right(case, mask, tensors)",
    "raises": "raise RuntimeError('no plan\\nfor this')",
    "says_no": "raise UnsupportedError('not for you')",
    "falls_back": "raise FallbackError('math ran')",
    "noisy_stdout": "print('hello', flush=True); os.system('echo more'); return right(case, mask, tensors)",
    "off_by_one": "from dataclasses import replace; from longca.masks.mask import draw_mask; "
    "return right(case, draw_mask('causal_sliding_window', case.seqlen, parameters={'window': 21}), tensors)",
    "wrong_backward": "ok = right(case, mask, tensors); "
    "return Prepared(ok.forward, lambda: [g * (1 + 0.01 * (i == 1)) for i, g in enumerate(ok.backward())], "
    "ok.release, ok.layout, ok.backend)",
    "not_finite": "ok = right(case, mask, tensors); "
    "return Prepared(lambda: ok.forward() / 0, ok.backward, ok.release, ok.layout, ok.backend)",
    "writes_inputs": "tensors.v.zero_(); tensors.dout.zero_(); return right(case, mask, tensors)",
    "rounds_inputs": "[x.copy_(x.round()) for x in (tensors.q, tensors.k)]; return right(case, mask, tensors)",
    "stays_forked": "os.fork(); return right(case, mask, tensors)",
    "leaves_a_child": "os.fork() or time.sleep(600); os._exit(3)",
    "turns_wrong": "ok = right(case, mask, tensors); calls = []; "
    "return Prepared(lambda: calls.append(1) or ok.forward() * (len(calls) < 4), ok.backward, "
    "ok.release, ok.layout, ok.backend)",
    "breaks_the_process": "case.seqlen == 64 and os.environ.update(IN_ERROR='1'); "
    "return no(RuntimeError('the device is in error')) if 'IN_ERROR' in os.environ else right(case, mask, tensors)",
    "says_nothing": "raise UnsupportedError('')",
    "no_backward_after_all": "ok = right(case, mask, tensors); "
    "return Prepared(ok.forward, lambda: no(UnsupportedError('not this head_dim')), "
    "ok.release, ok.layout, ok.backend)",
    "backward_segfault": "ok = right(case, mask, tensors); "
    "return Prepared(ok.forward, lambda: os.kill(os.getpid(), signal.SIGSEGV), ok.release, ok.layout, ok.backend)",
    "backward_memory": "ok = right(case, mask, tensors); "
    "return Prepared(ok.forward, lambda: torch.empty(1 << 60), ok.release, ok.layout, ok.backend)",
}


@pytest.fixture(scope="session")
def kernel_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder to put on the path."""
    site = tmp_path_factory.mktemp("site")
    folder = site / "fake_kernels"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    for name, body in KERNELS.items():
        prepare = f"def prepare(case, mask, tensors):\n    {body}\n"
        text = f"{HEAD}\n\n{prepare}\n\nKERNEL = Kernel('{name}', SUPPORT, prepare)\n"
        (folder / f"{name}.py").write_text(text)
    absent = "KERNEL = Kernel('absent', SUPPORT, right, ('no_such_library',), ('no-such-library',))"
    (folder / "absent.py").write_text(f"{HEAD}\n{absent}\n")
    (folder / "killer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    kills = "KERNEL = Kernel('kills', SUPPORT, right, imports=('fake_kernels.killer',), distributions=())"
    (folder / "kills_on_import.py").write_text(f"{HEAD}\n{kills}\n")
    (folder / "broken.py").write_text("raise ImportError('built for another ABI')\n")
    (folder / "empty.py").write_text("")
    info = site / "fake_kernels-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fake-kernels\nVersion: 1.0\n")
    points = "".join(
        f"{name} = fake_kernels.{name}\n"
        for name in [*KERNELS, "absent", "kills_on_import", "broken", "empty"]
    )
    (info / "entry_points.txt").write_text(f"[longca.kernels]\n{points}")
    return site


@pytest.fixture
def fake_kernels(kernel_package: Path, monkeypatch: pytest.MonkeyPatch):
    """The package on the path of this process and of its workers."""
    monkeypatch.syspath_prepend(kernel_package)
    monkeypatch.setenv("PYTHONPATH", str(kernel_package))
    caches = (
        registry._modules,
        closure.closure_digest,
        closure._find,
        closure._read,
        fingerprint.source_fingerprint,
    )
    for one in caches:
        one.cache_clear()
    yield kernel_package
    for one in caches:
        one.cache_clear()
    for name in [name for name in sys.modules if name.startswith("fake_kernels")]:
        del sys.modules[name]
