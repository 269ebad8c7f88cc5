"""docs/kernels, docs/mechanisms and their lists say what the declarations and results/h200 say."""

import re
from collections.abc import Callable
from math import lcm
from pathlib import Path
from typing import Any

import pytest
from reporting_records import Change, dense_study, sparse_study, write_records

from longca.cases import Case
from longca.errors import LongcaError
from longca.kernels.interface import Support
from longca.kernels.registry import FAMILIES, kernel_module, kernel_names
from longca.parallel.registry import MECHANISMS, load_mechanism
from longca.parallel.topology import Topology
from longca.parallel.volume import sent_bytes
from longca.reporting.long import read_rows
from longca.reporting.pages.measured import throughput
from longca.reporting.pages.mechanisms import sent_formula
from longca.reporting.pages.text import with_links
from longca.reporting.pages.writing import FOLDERS, pages, write_pages
from longca.reporting.tables import made_table
from longca.study.model import Study

RIGHT = "right: `longca pages`"
BOTH = {"cpu": ("forward", "backward")}


@pytest.fixture(scope="module")
def made(repository: Path) -> dict[str, str]:
    return pages(repository / "results/h200")


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What a page says of the first kernel of a study whose records are as `change` has them."""

    def text(study: Study, family: str, change: Change, **support: Any) -> str:
        monkeypatch.chdir(tmp_path)
        write_records(study, change)
        grid = getattr(study, family)[0]
        can = Support(**{"patterns": frozenset(grid.patterns), "passes": BOTH} | support)
        return throughput(grid.kernels[0], can, made_table(study, family).to_pylist())

    return text


def test_the_pages_are_as_the_declarations_and_the_tables_are(repository: Path, made) -> None:
    docs = repository / "docs"
    there = {file.relative_to(docs).as_posix() for folder in FOLDERS for file in (docs / folder).iterdir()}
    assert there | {f"{folder}.md" for folder in FOLDERS} == made.keys(), RIGHT
    old = [path for path, text in made.items() if (docs / path).read_text(encoding="utf-8") != text]
    assert old == [], RIGHT


def test_every_kernel_has_a_page_with_the_source_of_each_of_its_families(repository: Path, made) -> None:
    for family in FAMILIES:
        for name in kernel_names(family):
            source = f"workflow/{kernel_module(family, name).replace('.', '/')}.py"
            assert f"](../../{source})" in made[f"kernels/{name}.md"] and (repository / source).is_file()
            assert f"[`{name}`](kernels/{name}.md)" in made["kernels.md"]
    assert all(f"[`{name}`](mechanisms/{name}.md)" in made["mechanisms.md"] for name in MECHANISMS)


def test_a_page_shows_the_numbers_of_the_study(repository: Path, made) -> None:
    cell = {"kernel": "flashmask", "pattern": "full", "seqlen": 8192, "kv_heads": 8}
    rows = read_rows(repository / "results/h200/tables/dense.parquet")
    tflops = {row["pass"]: row["tflops"] for row in rows if cell.items() <= row.items()}
    table = made["kernels/flashmask.md"].partition("heads 64-8,")[2]
    lengths, full = (re.search(rf"^\| {first} \| (.*) \|$", table, re.M)[1] for first in ("pattern", "full"))
    texts = dict(zip(lengths.split(" | "), full.split(" | "), strict=True))["8192"].split("/")
    numbers = [float(text.removesuffix(" †")) for text in texts]
    assert numbers == pytest.approx([tflops["forward"], tflops["backward"]], rel=5e-3)


def test_patterns_down_lengths_across_words_where_there_is_no_number(shown) -> None:
    def change(case: Case) -> dict[str, Any]:
        if case.pattern == "full" and case.seqlen == 2048:
            return {"status": "out_of_memory", "reason": "it is full"}
        # 4 x 1024^2 / 4 x 4 x 64 FLOPs and 2.5 times that are 0.268 and 0.671 GFLOP.
        return {"milliseconds": 0.01} if case.pass_ == "forward" else {}

    study = dense_study(seqlens=[1024, 2048], passes=["forward", "backward"])
    lines = shown(study, "dense", change).splitlines()
    assert lines[0].startswith("TFLOP/s forward/backward by tokens; dense kernels, heads 4-2,")
    assert lines[2:] == [
        "| pattern | 1024 | 2048 |",
        "| --- | --- | --- |",
        "| full | 26.8/0.671 | out of memory |",
        "| causal | 26.8/0.671 | 107/2.68 |",
        "",
        "out of memory, `full`: it is full",
    ]


def test_what_a_kernel_declares_not_to_compute_is_left_out(shown) -> None:
    study = dense_study(passes=["forward", "backward"])
    text = shown(study, "dense", lambda case: {}, patterns=frozenset({"full"}), passes={"cpu": ("forward",)})
    assert text.startswith("TFLOP/s forward by tokens") and "causal" not in text
    assert "| full | 0.268 |" in text


def test_without_any_number_there_is_no_table_but_the_reason(shown) -> None:
    text = shown(dense_study(), "dense", lambda case: {"status": "missing", "reason": "no module"})
    assert "|" not in text and text.endswith("missing, every pattern: no module\n")


def test_blocks_down_densities_across(shown) -> None:
    def kept(case: Case) -> dict[str, Any]:
        # 4 x 2048^2 x 4 x 128 FLOPs are 8.59 GFLOP.
        return {"area": case.seqlen**2 * (case.density_nominal or 0)}

    study = sparse_study(blocks={"uniform_block": [64, 128]}, densities=[0.25, 1.0])
    lines = shown(study, "sparse", kept).splitlines()
    assert lines[2:] == [
        "| pattern | block | tokens | 0.25 | 1 |",
        "| --- | --- | --- | --- | --- |",
        "| uniform_block | 64 | 2048 | 2.15 | 8.59 |",
        "| uniform_block | 128 | 2048 | 2.15 | 8.59 |",
    ]


@pytest.mark.parametrize("pass_", ["forward", "backward"])
@pytest.mark.parametrize(
    ("mechanism", "topology"),
    [
        ("single", Topology()),
        ("ulysses", Topology(ulysses=16)),
        ("ring_p2p", Topology(ring=3)),
        ("ring_allgather", Topology(ring=4)),
        ("usp", Topology(ulysses=2, ring=4)),
        ("loongtrain", Topology(ulysses=16, ring=4, windows=2)),
    ],
)
def test_the_formula_of_a_page_is_what_is_counted(mechanism: str, topology: Topology, pass_: str) -> None:
    q_heads, kv_heads = 64, 8
    values = {
        "U": topology.ulysses,
        "R": topology.ring,
        "t": 1024,
        "D": 128,
        "e": 2,
        "q_heads": q_heads,
        "kv_heads": kv_heads,
        "kv": lcm(kv_heads, topology.ulysses),
    }
    formula = sent_formula(load_mechanism(mechanism))[pass_]
    assert eval(formula, values) == sent_bytes(topology, 1024, q_heads, kv_heads, 128, 2, pass_)  # noqa: S307


def test_names_of_other_pages_become_links() -> None:
    assert with_links("as `fa2`, by `backend`", {"fa2"}) == "as [`fa2`](fa2.md), by `backend`"


def test_writing_removes_the_page_of_a_kernel_that_is_gone(repository: Path, tmp_path: Path, made) -> None:
    gone, other = tmp_path / "kernels/gone.md", tmp_path / "method.md"
    gone.parent.mkdir()
    gone.touch()
    other.touch()
    write_pages(tmp_path, repository / "results/h200")
    written = {file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*.md")}
    assert written == made.keys() | {"method.md"}


def test_outside_the_repository_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(LongcaError, match="results/h200/tables: is not there"):
        write_pages(tmp_path, tmp_path / "results/h200")
    assert list(tmp_path.iterdir()) == []
