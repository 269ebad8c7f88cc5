"""What changes a kernel's fingerprint, and what does not."""

import sys
from pathlib import Path

import pytest

from longca import closure
from longca.closure import closure_digest
from longca.errors import LongcaError
from longca.kernels import fingerprint
from longca.kernels.fingerprint import measured_fingerprint, pinned_version, source_fingerprint

original = closure._read
KERNEL = '''"""A kernel."""
import os
from .helper import scale  # relative
from fake_kernels.views import other


def prepare(case):
    """Docstring."""
    return scale(case)
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "fake_kernels"
    (folder / "views").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "views" / "__init__.py").write_text("")
    (folder / "kernel.py").write_text(KERNEL)
    (folder / "helper.py").write_text("def scale(x):\n    return x * 2\n")
    (folder / "views" / "other.py").write_text("VALUE = 1\n")
    (folder / "unrelated.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.startswith("fake_kernels")]:
        del sys.modules[name]


def digest():
    closure_digest.cache_clear()
    closure._find.cache_clear()
    closure._read.cache_clear()
    return closure_digest("fake_kernels.kernel")


@pytest.mark.parametrize(
    ("file", "old", "new", "changes"),
    [
        ("kernel.py", "# relative", "# another comment", False),
        ("kernel.py", '"""Docstring."""', '"""Another docstring."""', False),
        ("kernel.py", "\n\n\ndef", "\n\n\n\n\ndef", False),
        ("kernel.py", "return scale(case)", "return scale(case) + 1", True),
        ("helper.py", "x * 2", "x * 3", True),
        ("views/other.py", "1", "2", True),
        ("unrelated.py", "1", "2", False),
    ],
)
def test_edits(package, file, old, new, changes):
    before = digest()
    path = package / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    assert (digest() != before) is changes


def test_a_module_imported_by_its_name_as_text_is_part_of_it(package):
    (package / "kernel.py").write_text(
        'import importlib\nFORMS = {"fast": "fake_kernels.helper"}\nform = importlib.import_module(FORMS["fast"])\n'
    )
    before = digest()
    (package / "helper.py").write_text("def scale(x):\n    return x * 3\n")
    assert digest() != before


def test_every_part_of_our_operators_is_part_of_their_kernels(monkeypatch):
    read = {}
    monkeypatch.setattr(closure, "_read", lambda name: read.setdefault(name, original(name)))
    for family, kernel in (("dense", "segments"), ("dense", "flashmask"), ("sparse", "vsa_triton")):
        closure_digest.cache_clear()
        source_fingerprint.cache_clear()
        source_fingerprint(family, kernel)
    folder = Path(closure.__file__).parent / "ops"
    parts = {f"longca.ops.{file.parent.name}.{file.stem}" for file in folder.glob("*/[!_]*.py")}
    assert parts - read.keys() == set()


def test_every_python_gives_the_same_digest(package):
    # As Python 3.12 gave it; 3.11 knows no parameters of types, 3.13 leaves empty lists out of a dump.
    (package / "kernel.py").write_text(
        'class A:\n    async def f(self, *rest, x=1):\n        return f"{x!r:>3}{rest}"\n'
    )
    assert digest() == "6788e47b19dbdf50"


def test_nothing_is_imported(package):
    (package / "helper.py").write_text("raise RuntimeError('imported')\n")
    digest()


def test_what_is_left_out_is_left_out_with_all_below_it(package):
    def digest_without(*names):
        digest()
        return closure_digest("fake_kernels.kernel", names)

    names = ("fake_kernels.views", "fake_kernels.help")
    before = digest_without(*names)
    (package / "views" / "other.py").write_text("VALUE = 2\n")
    assert digest_without(*names) == before
    (package / "helper.py").write_text("def scale(x):\n    return x * 3\n")
    assert digest_without(*names) != before


def test_kernels_differ_by_their_code_and_views_and_not_by_how_masks_are_drawn():
    kernels = [f"longca.kernels.dense.{name}" for name in ("naive", "sdpa", "flex", "segments")]
    assert len({closure_digest(kernel, fingerprint._SHARED) for kernel in kernels}) == 4
    for shared in ("longca.kernels.interface", "longca.kernels.registry", "longca.masks.patterns"):
        assert shared in fingerprint._SHARED


def test_versions_are_part_of_it():
    old, new = (
        measured_fingerprint("dense", "naive", {"torch": version}) for version in ("2.12.0", "2.13.0")
    )
    assert old != new
    assert measured_fingerprint("dense", "naive", {"torch": "2.12.0"}) == old


def test_pins_are_read_from_the_environment_sets(tmp_path, monkeypatch):
    (tmp_path / "kernels").mkdir()
    (tmp_path / "cpu.txt").write_text(
        "torch==2.13.0\nTriton == 3.6.0 ; platform_system == 'Linux'\n# torchvision==1\n"
    )
    (tmp_path / "kernels" / "fa.txt").write_text("flash-attn[all]==2.8.3\n")
    monkeypatch.setattr(fingerprint, "_ENVS", tmp_path)
    assert pinned_version("torch") == "2.13.0"
    assert pinned_version("triton") == "3.6.0"
    assert pinned_version("flash-attn") == "2.8.3"
    assert pinned_version("torchvision") is None
    source_fingerprint.cache_clear()
    before = source_fingerprint("dense", "naive")
    (tmp_path / "cpu.txt").write_text("torch==2.14.0\n")
    source_fingerprint.cache_clear()
    assert source_fingerprint("dense", "naive") != before
    source_fingerprint.cache_clear()


@pytest.mark.parametrize("file", ["kernel.py", "views/other.py"])
def test_a_file_that_is_no_python_is_named(package, file):
    (package / file).write_text("VALUE = 1\ndef broken(:\n")
    with pytest.raises(LongcaError, match=f"{package / file}:2: invalid syntax; right: Python"):
        digest()
