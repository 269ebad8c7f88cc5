"""A kernel's library in a folder of its own: two generations of one module side by side, by LONGCA_SITES."""

import os

import pytest
import yaml

from longca.errors import LongcaError
from longca.measure.sites import kernel_site, worker_environment
from longca.measure.worker_client import Worker

INTERFACE = "flash_attn/flash_attn_interface.py"


@pytest.fixture
def sites(tmp_path, monkeypatch):
    """Writes the sites file, and beside it two generations of flash_attn."""

    def write(content) -> None:
        (tmp_path / "sites.yaml").write_text(yaml.safe_dump(content))
        monkeypatch.setenv("LONGCA_SITES", str(tmp_path / "sites.yaml"))

    for folder, version in (("one", "'1.0.9'"), ("two", "os.environ.get('FLASH_VERSION', '2.8.3.post2')")):
        (tmp_path / folder / "flash_attn").mkdir(parents=True)
        (tmp_path / folder / "flash_attn" / "__init__.py").write_text(f"import os\n__version__ = {version}\n")
        (tmp_path / folder / INTERFACE).write_text("")
    return write


def loaded(kernel):
    with Worker("dense", kernel, "cpu", 1, 300) as worker:
        return worker.load()


def test_each_kernel_imports_its_own_generation(sites):
    sites({"fa": {"path": ["one"]}, "fa2": {"path": ["two"], "variables": {"FLASH_VERSION": "2.9.0"}}})
    for kernel, version in (("fa", "1.0.9"), ("fa2", "2.9.0")):
        library = loaded(kernel)
        assert library.missing is None and library.versions["flash-attn"] == version


def test_another_generation_and_a_broken_build_are_missing_with_their_reason(sites, tmp_path):
    sites({"fa": {"path": ["two"]}, "fa2": {"path": ["two"]}})
    assert loaded("fa").missing.startswith("flash-attn 2.8.3.post2 is what imports here; right: version 1")
    (tmp_path / "two" / INTERFACE).write_text("raise ImportError('undefined symbol: _ZN3c10')")
    assert loaded("fa2").missing == "ImportError: undefined symbol: _ZN3c10"


def test_the_workers_environment(sites, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "before")
    sites({"fa4": {"path": ["one", str(tmp_path / "two")], "variables": {"LD_PRELOAD": "lib.so"}}})
    environment = worker_environment("fa4")
    folders = [str(tmp_path / "one"), str(tmp_path / "two"), "before"]
    assert environment["PYTHONPATH"].split(os.pathsep) == folders and environment["LD_PRELOAD"] == "lib.so"
    assert worker_environment("naive") == dict(os.environ)
    monkeypatch.delenv("LONGCA_SITES")
    assert worker_environment("fa4") == dict(os.environ)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"fa5": {"path": ["one"]}}, "sites.yaml: 'fa5' is not a kernel; did you mean 'fa'"),
        ({"fa": {"path": ["three"]}}, r"sites.yaml: fa.path: .*three is no folder"),
        ({"fa": {"paths": ["one"]}}, "sites.yaml: fa.paths: .*right: path"),
        ({"fa": {"path": "one"}}, "sites.yaml: fa.path: .*right: path"),
        ({"fa": ["one"]}, "sites.yaml: fa: .*right: path"),
        ({"fa": {"variables": {"N": 1}}}, "sites.yaml: fa.variables.N: .*right: path"),
        (["fa"], "sites.yaml: holds no mapping"),
    ],
)
def test_mistakes_name_file_key_and_what_is_right(sites, content, words):
    sites(content)
    with pytest.raises(LongcaError, match=words):
        kernel_site("fa")
