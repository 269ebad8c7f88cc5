"""Comparing two studies: which cells have a ratio, how sure it is, what is said of the others, and when it fails."""

import csv
import json
import random
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vl_convert
from archive_study import CONFIG, archived_study, finish_study, measure_study
from hypothesis import given, settings
from hypothesis import strategies as st
from reporting_records import Change, by_kernel, dense_study, write_records
from typer.testing import CliRunner

from longca.cases import Case
from longca.cli.main import app
from longca.errors import LongcaError
from longca.reporting.archive.making import make_archive
from longca.reporting.compare.cells import Cell, fallen_behind, paired
from longca.reporting.compare.figure import figure_text
from longca.reporting.compare.ratios import medians, ratio_of_sums
from longca.reporting.compare.sides import Side, read_side
from longca.reporting.compare.tables import csv_text, sections
from longca.reporting.markdown import markdown
from longca.reporting.names import results_of

STUDY = dense_study(passes=["forward", "backward"])


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of a finished study. Not to be changed."""
    folder = tmp_path_factory.mktemp("archived")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        finish_study(archived_study())
        return folder / make_archive(archived_study(), CONFIG)


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def side(name: str, change: Change = lambda case: {}) -> Side:
    """The records of the study, changed, in a folder of this name."""
    write_records(STUDY, change)
    results_of(STUDY).rename(name)
    return read_side(Path(name))


def spread(milliseconds: float, seed: int, width: float = 0.02) -> dict[str, Any]:
    """Thirty samples around a latency."""
    draw = random.Random(seed)
    return {"samples_ms": [milliseconds * (1 + draw.gauss(0, width)) for _ in range(30)]}


def verdicts(cells: list[Cell]) -> dict[tuple[str, str, str], str]:
    return {(cell.case.kernel, cell.case.pattern, cell.case.pass_): cell.verdict for cell in cells}


def test_cells_are_paired_whatever_the_device_and_versions_are() -> None:
    a = side("a")
    # What is each record's own, its state and its control, is no difference between the sides.
    newer = {
        "device": "another",
        "torch": "3.0",
        "control": "of another day",
        "state": {"after": {"load_1m": 9}},
    }
    b = side("b", lambda case: {"environment": newer, "fingerprint": "newer"})
    cells = paired(a, b)
    assert len(cells) == 8
    assert {cell.interval.ratio for cell in cells if cell.interval} == {1.0}
    (first, *_) = sections(a, b, cells)
    assert first.rows == (("device", "a CPU, 2 threads", "another"), ("torch", "2.13.0", "3.0"))


def test_a_ratio_is_of_medians_of_raw_samples_b_over_a() -> None:
    a = side("a", lambda case: {"samples_ms": [1.0, 2.0, 30.0]})
    b = side("b", lambda case: {"samples_ms": [3.0, 3.0, 3.0]})
    for cell in paired(a, b):
        assert cell.interval is not None
        assert (cell.interval.ratio, cell.interval.low, cell.interval.high) == (1.5, 3 / 30, 3.0)


def test_a_difference_within_the_spread_is_level_and_beyond_it_is_none() -> None:
    slower = {"naive": 1.10, "sdpa": 1.0}
    a = side("a", lambda case: spread(2.0, seed=1))
    b = side("b", lambda case: spread(2.0 * slower[case.kernel], seed=2))
    found = verdicts(paired(a, b))
    assert {verdict for (kernel, _, _), verdict in found.items() if kernel == "naive"} == {"slower"}
    assert {verdict for (kernel, _, _), verdict in found.items() if kernel == "sdpa"} == {"level"}
    assert {verdict for (kernel, _, _), verdict in verdicts(paired(b, a)).items() if kernel == "naive"} == {
        "faster"
    }


def test_what_has_no_ratio_says_why() -> None:
    a = side("a", by_kernel(naive={"status": "timeout"}, sdpa={"mask_digest": "of another"}))
    b = side("b", by_kernel(naive={"status": "crashed"}))
    assert set(verdicts(paired(a, b)).values()) == {"A: timeout, B: crashed", "different masks"}
    shutil.rmtree("b")
    b = side("b", by_kernel(naive=None))
    found = verdicts(paired(a, b))
    assert {found[key] for key in found if key[0] == "naive"} == {"only in A"}
    assert {found[key] for key in verdicts(paired(b, a)) if key[0] == "sdpa"} == {"different masks"}
    assert set(verdicts(paired(b, a)).values()) == {"only in B", "different masks"}
    rows = list(csv.DictReader(csv_text(paired(a, b)).splitlines()))
    assert {row["ratio"] for row in rows} == {""}


def test_studies_without_a_common_cell_and_what_is_no_study_are_refused() -> None:
    a = side("a", by_kernel(naive=None))
    b = side("b", by_kernel(sdpa=None))
    with pytest.raises(LongcaError, match="a and b: no case stands in both"):
        paired(a, b)
    Path("empty").mkdir()
    with pytest.raises(LongcaError, match="empty: has no records"):
        read_side(Path("empty"))
    with pytest.raises(LongcaError, match=r"nothing.txt: is nothing to compare; right: an archive"):
        read_side(Path("nothing.txt"))


def test_two_records_of_a_case_on_one_side_are_refused() -> None:
    side("a")
    records = Path("a/records/dense/auto")
    shutil.copytree(records / "naive", records / "again")
    with pytest.raises(
        LongcaError, match=r"a: records/dense/auto/naive/\S+:1: the case has a record already"
    ):
        read_side(Path("a"))


samples = st.lists(st.floats(0.01, 1000), min_size=3, max_size=40)


@settings(deadline=None)
@given(samples, samples, st.floats(0.001, 1000))
def test_an_interval_holds_its_ratio_and_turns_over_with_it(
    a: list[float], b: list[float], factor: float
) -> None:
    found = ratio_of_sums([medians(a, b, "cell")])
    assert min(b) / max(a) <= found.low <= found.high <= max(b) / min(a)
    assert ratio_of_sums([medians(a, b, "cell")]) == found
    scaled = ratio_of_sums([medians(a, [factor * value for value in b], "cell")])
    assert np.allclose(scaled, [factor * value for value in found])


def test_an_interval_covers_the_true_ratio_about_as_often_as_it_says() -> None:
    draw = np.random.default_rng(7)
    hits = 0
    for trial in range(300):
        a, b = draw.normal(1.0, 0.05, 30), draw.normal(1.2, 0.05, 30)
        found = ratio_of_sums([medians(list(a), list(b), str(trial))])
        hits += found.low <= 1.2 <= found.high
    assert 0.90 <= hits / 300 <= 0.99


def test_the_sum_of_times_is_no_mean_of_ratios() -> None:
    long, short = [100.0] * 3, [1.0] * 3
    # One cell of 100 ms is level, one of 1 ms three times as slow: 103 ms over 101 ms.
    found = ratio_of_sums([medians(long, long, "long"), medians(short, [3.0] * 3, "short")])
    assert found.ratio == pytest.approx(103 / 101)


def slow(case: Case) -> dict[str, Any]:
    return spread(1.3 if case.pattern == "causal" and case.kernel == "naive" else 1.0, seed=2)


def test_a_threshold_counts_slow_cells_beyond_their_interval_and_lost_numbers() -> None:
    a, b = side("a", lambda case: spread(1.0, seed=1)), side("b", slow)
    behind = fallen_behind(paired(a, b), 5)
    assert {(cell.case.kernel, cell.case.pattern) for cell in behind} == {("naive", "causal")}
    assert fallen_behind(paired(a, b), 40) == []
    assert fallen_behind(paired(b, a), 5) == []
    lost = side("lost", by_kernel(sdpa={"status": "wrong"}))
    assert {cell.case.kernel for cell in fallen_behind(paired(a, lost), 1000)} == {"sdpa"}
    assert fallen_behind(paired(lost, a), 1000) == []


def test_the_command_compares_an_archive_with_a_config_and_writes_every_form(archive: Path) -> None:
    Path("before.zip").symlink_to(archive)
    measure_study(archived_study(), milliseconds=1.5)
    words = ["compare", "before.zip", str(CONFIG), "--out", "out"]
    said = CliRunner().invoke(app, words, catch_exceptions=False)
    assert said.exit_code == 0
    assert "A is before.zip, B is tiny.yaml" in said.output
    assert re.search(
        r"^dense +naive +forward +1\.500 \[1\.\d+, 1\.\d+\] +1\.500 +2 +0 +0 +0$", said.output, re.MULTILINE
    )
    assert {file.name for file in Path("out").iterdir()} == {
        f"comparison.{suffix}" for suffix in ("csv", "md", "html", "svg", "pdf", "json")
    }
    rows = list(csv.DictReader(Path("out/comparison.csv").read_text().splitlines()))
    assert {(row["ratio"], row["status_a"], row["status_b"], row["verdict"]) for row in rows} == {
        ("1.5", "ok", "ok", "slower")
    }
    assert {row["device_b"] for row in rows} == {"a CPU, 2 threads"}
    spec = json.loads(Path("out/comparison.json").read_text())
    assert (
        {row["ratio"] for values in spec["datasets"].values() for row in values} == {1.5}
        if "datasets" in spec
        else 1
    )
    assert "comparison" not in Path("out/comparison.md").read_text()
    again = CliRunner().invoke(app, [*words[:-1], "again", "--fail-above", "10"], catch_exceptions=False)
    assert again.exit_code == 1
    assert (
        "longca: naive forward, causal, 256 tokens, head_dim 64, float32: B is slower, 1.500 ["
        in again.output
    )
    assert Path("again/comparison.json").read_bytes() == Path("out/comparison.json").read_bytes()
    assert CliRunner().invoke(app, [*words, "--fail-above", "60"], catch_exceptions=False).exit_code == 0


def test_a_changed_archive_is_not_compared(archive: Path) -> None:
    with zipfile.ZipFile(archive) as whole, zipfile.ZipFile("cut.zip", "w") as cut:
        for name in whole.namelist():
            data = whole.read(name)
            cut.writestr(name, data.replace(b"1.0", b"0.5") if "/records/" in name else data)
    with pytest.raises(LongcaError, match=r"cut.zip: results/tiny/records/\S+: has sha256"):
        read_side(Path("cut.zip"))


def test_markdown_escapes_what_records_say() -> None:
    a = side("a")
    b = side("b", lambda case: {"environment": {"device": "<b>50|50</b>"}})
    text = markdown(sections(a, b, paired(a, b)))
    assert "<b>" not in text
    assert "50\\|50" in text


def test_a_comparison_of_a_thousand_cells_in_one_panel_is_drawn() -> None:
    study = dense_study(kernels=["naive"], patterns=["causal", "full"], seqlens=list(range(64, 664)))
    sides = []
    for name in ("a", "b"):
        write_records(study)
        results_of(study).rename(name)
        sides.append(read_side(Path(name)))
    cells = paired(*sides)
    assert len(cells) == 1200
    drawn = vl_convert.vegalite_to_svg(figure_text(*sides, cells))
    assert drawn.count('aria-roledescription="point"') == 1200
