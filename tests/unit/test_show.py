"""`longca show`: a series by its name or file, finished or running, on a terminal and in a pipe."""

import io
import json
from pathlib import Path

import pytest
from reporting_records import by_kernel, dense_study, faster, record, record_file, write_records
from rich.console import Console
from typer.testing import CliRunner

from longca.cases import study_series
from longca.cli.main import app
from longca.errors import LongcaError
from longca.measure.freezing import freeze_study
from longca.measure.journal import Journal
from longca.reporting.names import results_of
from longca.reporting.series_file import find_series, series_section
from longca.reporting.terminal import print_sections

STUDY = dense_study(seqlens=[512, 1024], passes=["forward", "backward"])
NAME = "dense/auto/naive/causal/4-2"


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def journal(lines: int) -> Path:
    """A journal of the series with its first so many cases."""
    file = results_of(STUDY) / "journals" / f"{NAME}.jsonl"
    (series,) = [one for one in study_series(STUDY) if one.name.as_posix() == NAME]
    opened = Journal(file)
    for number, case in enumerate(series.cases[:lines]):
        opened.append(f"key {number}", record(case))
    return file


def test_a_finished_series_is_shown_case_by_case() -> None:
    write_records(
        STUDY,
        lambda case: (
            {"status": "out_of_memory", "reason": "64 GiB\nasked"}
            if case.seqlen == 1024
            else {"flags": ["noisy"]}
        ),
    )
    said = CliRunner().invoke(app, ["show", NAME], catch_exceptions=False)
    assert said.exit_code == 0
    title, headers, *rows = said.output.splitlines()
    assert title == (
        f"results/tiny/records/{NAME}.jsonl: family dense, kernel naive, dataset auto, pattern causal, sample 0, "
        "q_heads 4, kv_heads 2, head_dim 64, dtype float32, on a CPU, 2 threads"
    )
    assert headers.split() == [
        "seqlen",
        "pass",
        "TFLOP/s",
        "ms",
        "(p20",
        "to",
        "p80)",
        "peak",
        "MiB",
        "status:",
        "backend",
        "or",
        "reason",
    ]
    assert [" ".join(row.split()) for row in rows] == [
        "512 forward 0.0671 1.00 (0.900 to 1.10) 1.0 ok: naive, own path (flagged noisy)",
        "512 backward 0.168 1.00 (0.900 to 1.10) 1.0 ok: naive, own path (flagged noisy)",
        "1024 forward out of memory: 64 GiB asked",
        "1024 backward out of memory: 64 GiB asked",
    ]


def test_a_running_series_is_shown_from_its_journal_and_a_finished_one_from_its_records() -> None:
    file = journal(3)
    assert find_series(NAME) == file
    assert len(series_section(file).rows) == 3
    write_records(STUDY)
    assert find_series(NAME) == record_file(STUDY, NAME)
    assert find_series(f"{NAME}.jsonl") == record_file(STUDY, NAME)
    assert find_series(str(file)) == file


def test_of_a_journal_the_last_line_of_a_case_counts_and_a_torn_one_does_not() -> None:
    file = journal(2)
    first, second = file.read_text().splitlines()
    newer = faster(json.loads(first), 7.0 / 0.067108864) | {"key": "newer"}
    file.write_text(f"{first}\n{second}\n{json.dumps(newer)}\n{second[:50]}")
    before = file.read_bytes()
    section = series_section(file)
    assert [row[2] for row in section.rows] == ["7.00", "0.168"]
    assert section.note.startswith("The last line is torn")
    assert file.read_bytes() == before


def test_what_is_no_series_is_refused_with_the_nearest_one() -> None:
    write_records(STUDY, by_kernel(sdpa=None))
    said = CliRunner().invoke(app, ["show", "dense/auto/naive/casual/4-2"])
    assert isinstance(said.exception, LongcaError)
    assert "did you mean 'dense/auto/naive/causal/4-2'?" in str(said.exception)
    Path("empty.jsonl").touch()
    with pytest.raises(LongcaError, match=r"empty.jsonl: has no record"):
        series_section(find_series("empty.jsonl"))
    Path("bad.jsonl").write_text("[1]\n")
    with pytest.raises(LongcaError, match=r"bad.jsonl:1: "):
        series_section(Path("bad.jsonl"))
    Path("worse.jsonl").write_text("nothing\n")
    with pytest.raises(LongcaError, match=r"worse.jsonl:1: is no record"):
        series_section(Path("worse.jsonl"))


def test_a_frozen_series_has_its_environment_told() -> None:
    write_records(STUDY)
    before = series_section(record_file(STUDY, NAME))
    freeze_study(STUDY, results_of(STUDY))
    assert '"digest"' in record_file(STUDY, NAME).read_text()
    assert series_section(record_file(STUDY, NAME)) == before


def test_a_series_of_several_studies_is_asked_for_by_its_file() -> None:
    write_records(STUDY)
    write_records(STUDY.model_copy(update={"study": "other"}))
    with pytest.raises(
        LongcaError, match=f"{NAME} is in several studies; right: one of results/other/records/"
    ):
        find_series(NAME)


def test_a_terminal_gets_a_table_of_its_width_and_a_pipe_a_line_a_row() -> None:
    write_records(STUDY, lambda case: {"backend": "a backend with a name that is long " * 4})
    section = series_section(record_file(STUDY, NAME))
    terminal, pipe = io.StringIO(), io.StringIO()
    print_sections([section], Console(file=terminal, force_terminal=True, width=100))
    print_sections([section], Console(file=pipe, width=100))
    assert "─" in terminal.getvalue()
    assert "\x1b" not in pipe.getvalue()
    assert len(pipe.getvalue().splitlines()) == 1 + 1 + len(section.rows)
    assert all(row.endswith("a backend with a name that is long") for row in pipe.getvalue().splitlines()[2:])
