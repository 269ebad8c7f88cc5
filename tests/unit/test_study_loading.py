"""A study's config: what is refused, in which words, and which file is the study's."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from longca.errors import LongcaError
from longca.study.loading import check_study, read_config, read_study, settle_study
from longca.units import Heads

DENSE: dict[str, Any] = {"kernels": ["sdpa"], "patterns": ["full"], "seqlens": [512], "heads": ["4-2"]}
SPARSE: dict[str, Any] = {
    "kernels": ["segments"],
    "patterns": ["uniform_block"],
    "seqlens": ["1k"],
    "blocks": {"uniform_block": [64]},
    "densities": [0.5],
    "heads": ["4-2"],
}


def config(**changes: Any) -> dict[str, Any]:
    """A right study with some keys of its dense or sparse grid, or of its top level, given otherwise."""
    changed: dict[str, Any] = {"study": "tiny", "dense": dict(DENSE), "sparse": dict(SPARSE)}
    for key, value in changes.items():
        section, _, name = key.rpartition("__")
        (changed.setdefault(section, {}) if section else changed)[name] = value
    return changed


def refusal(**changes: Any) -> str:
    """What is said against a study."""
    with pytest.raises(LongcaError) as caught:
        check_study(config(**changes), "tiny.yaml")
    return str(caught.value)


# Each: what is wrong, and all that the one line must hold: key, value, what is allowed, the nearest name.
REFUSED: list[tuple[dict[str, Any], list[str]]] = [
    ({"dens": {}}, ["dens: 'dens' is not a key of the top level", "did you mean 'dense'?", "measure"]),
    ({"dense__seqlen": [1]}, ["dense.seqlen: 'seqlen' is not a key of dense", "did you mean 'seqlens'?"]),
    ({"mask": {"windw": 1}}, ["mask.windw: 'windw' is not a key of mask", "did you mean 'window'?"]),
    (
        {"datasets": {"own": {"layout": "text", "file": ["x"]}}},
        ["datasets.own.file: 'file' is not a key of datasets.own", "did you mean 'files'?"],
    ),
    ({"dense__kernels": ["sdap"]}, ["dense.kernels: 'sdap' is not a dense kernel", "'sdpa'?", "naive, sdpa"]),
    ({"dense__kernels": ["../sdpa"]}, ["dense.kernels: '../sdpa' is not a dense kernel", "'sdpa'?"]),
    ({"dense__kernels": ["$(x)\n"]}, ["dense.kernels: '$(x)\\n' is not a dense kernel", "allowed: cudnn"]),
    ({"dense__kernels": [["sdpa"]]}, ["dense.kernels: ['sdpa'] is not a dense kernel", "allowed: cudnn"]),
    ({"dense__kernels": "sdpa"}, ["dense.kernels: 'sdpa' is no list", "the word all"]),
    ({"dense__kernels": []}, ["dense.kernels: is empty", "at least one value"]),
    ({"dense__kernels": None}, ["dense.kernels: None is no list"]),
    (
        {"dense__patterns": ["casual"]},
        ["dense.patterns: 'casual' is not a pattern", "'causal'?", "full_document"],
    ),
    ({"dense__patterns": ["uniform_block"]}, ["'uniform_block' is not a pattern"]),
    ({"dense__patterns": ["full", "full"]}, ["dense.patterns: full stands there twice"]),
    ({"dense__seqlens": ["8kb"]}, ["dense.seqlens.0: '8kb' is no number of tokens", "as 48k"]),
    ({"dense__seqlens": []}, ["dense.seqlens: is empty"]),
    ({"dense__seqlens": 512}, ["dense.seqlens: 512 is wrong; right: a list"]),
    ({"dense__seqlens": [1024, "1k"]}, ["dense.seqlens: 1024 stands there twice"]),
    ({"dense__heads": ["4-3"]}, ["dense.heads.0: '4-3'", "do not divide"]),
    ({"dense__heads": ["4x2"]}, ["dense.heads.0: '4x2' is no pair of heads", "64-8"]),
    ({"dense__head_dim": "64"}, ["dense.head_dim: '64' is wrong", "integer"]),
    ({"dense__dtype": "bf16"}, ["dense.dtype: 'bf16' is wrong", "'bfloat16'"]),
    ({"dense__passes": ["forwards"]}, ["dense.passes: 'forwards' is not a pass", "'forward'?"]),
    ({"dense__datasets": ["pyle"]}, ["dense.datasets: 'pyle' is not a dataset", "'pile'?"]),
    (
        {"dense__kernel_seqlens": {"sdap": [512]}},
        ["kernel_seqlens: 'sdap' is not a kernel of this grid", "sdpa"],
    ),
    ({"dense__kernel_seqlens": {"sdpa": [1024]}}, ["kernel_seqlens.sdpa: 1024 is not of the grid", "512"]),
    ({"sparse__densities": [10]}, ["sparse.densities.0: 10 is wrong", "less than or equal to 1"]),
    ({"sparse__densities": [0]}, ["sparse.densities.0: 0 is wrong", "greater than 0"]),
    ({"sparse__blocks": {}}, ["blocks: has nothing", "uniform_block"]),
    (
        {"sparse__patterns": ["variable_block"], "sparse__blocks": {"variable_block": [64]}},
        ["blocks.variable_block: 64 is too small", "128 or more"],
    ),
    ({"measure": {"device": "gpu"}}, ["measure.device: 'gpu' is wrong", "'auto', 'cpu' or 'cuda'"]),
    ({"measure": {"case_timeout": "3 minutes"}}, ["measure.case_timeout: '3 minutes' is no duration", "8m"]),
    ({"measure": {"repetitions": 1}}, ["measure.repetitions: 1 is wrong", "3"]),
    ({"measure": {"repetitions": 5.0}}, ["measure.repetitions: 5.0 is wrong", "integer"]),
    ({"mask": {"window": True}}, ["mask.window: True is wrong", "integer"]),
    ({"mask": 5}, ["mask: 5 is wrong; right: keys with values"]),
    ({"seed": -1}, ["seed: -1 is wrong"]),
    ({"study": "../up"}, ["study: '../up' is wrong"]),
    ({"study": None}, ["study: None is wrong"]),
    ({"dense": []}, ["dense: is empty", "at least one grid"]),
    ({"dense": 5}, ["dense: 5 is wrong; right: keys with values"]),
    (
        {"dense": [DENSE, {**DENSE, "kernel": ["sdpa"]}]},
        ["dense.1.kernel: 'kernel' is not a key of dense.1", "'kernels'?"],
    ),
    ({"dense": [DENSE, {**DENSE, "seqlens": ["8kb"]}]}, ["dense.1.seqlens.0: '8kb' is no number of tokens"]),
    ({"dense": [{**DENSE, "datasets": ["pyle"]}]}, ["dense.datasets: 'pyle' is not a dataset", "'pile'?"]),
    ({"dense": None, "sparse": None}, ["the study measures nothing", "dense, sparse or context_parallel"]),
    (
        {"datasets": {"own_long": {"layout": "text", "files": ["x"]}}},
        ["datasets.own_long: ", "*_long are taken"],
    ),
    ({"datasets": {"Own": {"layout": "text", "files": ["x"]}}}, ["datasets.Own: ", "[a-z0-9]"]),
    (
        {"datasets": {"pile": {"layout": "text", "files": ["x"]}}},
        ["datasets.pile: dataset name 'pile'", "are taken"],
    ),
    ({"datasets": {"Own": {"layout": "text", "files": ["x"]}}}, ["datasets.Own: 'Own' is wrong"]),
    (
        {"datasets": {"own": {"layout": "txt", "files": ["x"]}}},
        ["datasets.own.layout: 'txt'", "did you mean", "text"],
    ),
]


@pytest.mark.parametrize(("changes", "words"), REFUSED, ids=[words[0] for _, words in REFUSED])
def test_refused_in_one_line_with_file_key_value_and_what_is_right(
    changes: dict[str, Any], words: list[str]
) -> None:
    said = refusal(**changes)
    assert said.startswith("tiny.yaml: ")
    assert "\n" not in said
    assert [word for word in words if word not in said] == []


def test_every_mistake_has_its_line() -> None:
    said = refusal(dense__seqlens=["8kb", "x"], seed="y")
    assert [line.split(": ")[1] for line in said.splitlines()] == [
        "seed",
        "dense.seqlens.0",
        "dense.seqlens.1",
    ]


def test_missing_key() -> None:
    without = config()
    del without["dense"]["heads"]
    with pytest.raises(LongcaError, match=r"tiny.yaml: dense.heads: is missing"):
        check_study(without, "tiny.yaml")


def test_a_right_study_is_what_it_says() -> None:
    study = check_study(
        config(dense__seqlens=[512, "2k"], dense__kernel_seqlens={"sdpa": ["2k"]}), "tiny.yaml"
    )
    (dense,) = study.dense
    assert dense.seqlens == (512, 2048)
    assert dense.kernel_seqlens == {"sdpa": (2048,)}
    assert dense.heads == (Heads(4, 2),)
    assert dense.passes == ("forward", "backward")
    assert (study.seed, study.mask.window, study.measure.case_timeout) == (42, 1024, 600.0)


def test_all_is_every_name() -> None:
    study = check_study(config(dense__patterns="all", dense__kernels="all"), "tiny.yaml")
    (dense,) = study.dense
    assert len(dense.patterns) == 12
    assert {"naive", "sdpa", "flex", "segments"} <= set(dense.kernels)


def test_a_family_is_a_grid_or_a_list_of_grids() -> None:
    one, listed = (check_study(config(dense=dense), "tiny.yaml") for dense in (DENSE, [DENSE]))
    assert one == listed
    assert one.model_dump(mode="json")["dense"] == listed.model_dump(mode="json")["dense"]
    assert one.model_dump(mode="json")["dense"]["kernels"] == ["sdpa"]
    several = check_study(config(dense=[DENSE, {**DENSE, "seqlens": ["1k"]}]), "tiny.yaml")
    assert [grid.seqlens for grid in several.dense] == [(512,), (1024,)]
    assert check_study({"study": "tiny", "dense": DENSE}, "tiny.yaml").sparse == ()


BAD_FILES = [
    (b"study: tiny\nstudy: twice\n", r":2: key 'study' stands there twice"),
    (b"dense:\n  seqlens: [1]\n  heads: []\n  seqlens: [2]\n", r":4: key 'seqlens' stands there twice"),
    (b"mask: &a {}\nmeasure:\n  <<: *a\n  <<: *a\n", r":4: key '<<' stands there twice"),
    (b"mask: &a {block: 1, block: 2}\nmeasure: {<<: *a}\n", r":1: key 'block' stands there twice"),
    (b"{[1]: 2}\n", r":1: found unhashable key"),
    (b"study: [\n", r":2: .*expected the node content"),
    (b"study: \xff\n", r"is not UTF-8 at byte 7"),
    (b"", r"holds no mapping; right: a study"),
    (b"- study\n", r"holds no mapping"),
    (b"study: !!python/object/apply:os.system [ls]\n", r":1: could not determine a constructor"),
]


@pytest.mark.parametrize(("content", "words"), BAD_FILES)
def test_a_file_that_is_no_study(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_bytes(content)
    with pytest.raises(LongcaError, match=rf"bad\.yaml.*{words}") as caught:
        read_study(file)
    assert "\n" not in str(caught.value)


def test_a_merge_brings_keys_that_may_be_given_again(tmp_path: Path) -> None:
    """As PyYAML's own loader reads it, and so Snakemake's, also through merges of merges and lists of them."""
    file = tmp_path / "merged.yaml"
    file.write_text(
        "deep: {inside: {here: &inner {<<: &base {seed: 1, threads: 1}, seed: 2}}}\n"
        "one: {<<: *inner, seed: 3}\n"
        "two: {seed: 4, <<: [*inner, {block: 5}]}\n"
        "three: {<<: *inner}\n"
    )
    read = read_config(file)
    assert read == yaml.safe_load(file.read_text())
    assert read == {
        "deep": {"inside": {"here": {"seed": 2, "threads": 1}}},
        "one": {"seed": 3, "threads": 1},
        "two": {"seed": 4, "threads": 1, "block": 5},
        "three": {"seed": 2, "threads": 1},
    }


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LongcaError, match=r"none\.yaml: cannot be read: No such file"):
        read_study(tmp_path / "none.yaml")


@pytest.mark.parametrize("name", ["smoke", "h200", "h200x8", "test/h200x8", "paper"])
def test_the_studies_that_come_along_are_right(repository: Path, name: str) -> None:
    assert read_study(repository / "config" / f"{name}.yaml").study == name.replace("/", "_")


def test_one_file_is_the_study_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(yaml.safe_dump(config()))
    study, file = settle_study(config(), [tmp_path / "tiny.yaml"])
    assert (study.study, file) == ("tiny", Path("tiny.yaml"))
    assert not Path("results").exists()


def test_a_merged_study_is_written_where_commands_find_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(yaml.safe_dump(config()))
    study, file = settle_study(config(seed=7), [Path("tiny.yaml")])
    assert file == Path("results/tiny/study.yaml")
    assert read_study(file) == study
    assert study.seed == 7
    before = file.stat().st_mtime_ns
    assert settle_study(config(seed=7), [Path("tiny.yaml")])[1].stat().st_mtime_ns == before


def test_a_mistake_in_a_merged_study_names_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(yaml.safe_dump(config()))
    with pytest.raises(LongcaError, match=r"^tiny.yaml with --config: seed: 'x' is wrong"):
        settle_study(config(seed="x"), [Path("tiny.yaml")])
    assert not Path("results").exists()
