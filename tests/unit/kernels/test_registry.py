"""Kernels by name: the registry's own, and those of other packages through an entry point."""

import subprocess
import sys

import pytest

from longca.errors import LongcaError
from longca.kernels import registry
from longca.kernels.registry import FAMILIES, kernel_module, kernel_names, load_kernel
from longca.masks.patterns import DYNAMIC_PATTERNS, PATTERNS

KERNEL = """
from longca.kernels.interface import Kernel, Support, prepared

def prepare(case, mask, tensors):
    raise NotImplementedError

MINE = KERNEL = Kernel("mine", Support(frozenset({"causal"}), {"cpu": ("forward",)}), prepare)
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a package with these entry points on the path, as pip would leave it."""

    def installed(points: str) -> None:
        (tmp_path / "other_kernels.py").write_text(KERNEL)
        info = tmp_path / "other_kernels-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-kernels\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[longca.kernels]\n{points}\n")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        registry._modules.cache_clear()

    yield installed
    registry._modules.cache_clear()
    sys.modules.pop("other_kernels", None)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_kernel_declares_passes_on_known_devices_and_patterns(family):
    every = DYNAMIC_PATTERNS if family == "sparse" else PATTERNS
    for name in kernel_names(family):
        kernel = load_kernel(family, name)
        assert kernel.summary and kernel.support.patterns <= set(every)
        assert set(kernel.support.passes) <= {"cpu", "cuda"}
        assert all(set(passes) <= {"forward", "backward"} for passes in kernel.support.passes.values())


def test_an_unknown_kernel_is_named_with_the_nearest():
    with pytest.raises(LongcaError, match="'sdpaa' is not a dense kernel; did you mean 'sdpa'"):
        kernel_module("dense", "sdpaa")


@pytest.mark.parametrize("point", ["mine = other_kernels", "mine = other_kernels:MINE"])
def test_another_packages_kernel_is_one_of_ours(install, point):
    install(point)
    assert kernel_names("dense")[-1] == "mine"
    assert load_kernel("dense", "mine").summary == "mine"
    listed = subprocess.run(
        [sys.executable, "-m", "longca", "kernels"], capture_output=True, text=True, check=True
    )
    assert "mine" in listed.stdout


def test_a_block_sparse_one_says_so_in_its_name(install):
    install("sparse.mine = other_kernels")
    assert "mine" in kernel_names("sparse") and "mine" not in kernel_names("dense")


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ("sdpa = other_kernels", "sdpa = other_kernels: this name is taken"),
        ("sparce.mine = other_kernels", "'sparce' is not a kernel family; did you mean 'sparse'"),
    ],
)
def test_a_name_that_cannot_be_is_refused(install, point, message):
    install(point)
    with pytest.raises(LongcaError, match=message):
        kernel_names("dense")
