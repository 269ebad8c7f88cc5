"""Tables: what is added up, what ranks, what is said where there is no number, and what is refused."""

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from reporting_records import by_kernel, dense_study, record, record_file, sparse_study, write_records

from longca.cases import Case, study_series
from longca.errors import LongcaError
from longca.measure.record import STATUSES
from longca.reporting.cells import cells_of
from longca.reporting.long import read_rows
from longca.reporting.names import TABLE_FORMATS, table_file
from longca.reporting.sections import Section
from longca.reporting.tables import sections_of, write_table
from longca.study.model import Study


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def sections(study: Study, name: str = "dense", partial: bool = False) -> list[Section]:
    """Write a table and read its sections back from its Parquet file, as the report does."""
    write_table(study, name, partial)
    return sections_of(name, read_rows(table_file(study, name, "parquet")))


def test_samples_are_summed_never_averaged() -> None:
    study = dense_study(samples=2, patterns=["causal_document"], passes=["forward", "backward"])
    # 1000 cells in 1 ms and 9000 cells in 3 ms: rates 1.0 and 3.0, whose mean is 2.0; the sums give 2.5.
    write_records(
        study,
        lambda case: [{"area": 1000.0, "milliseconds": 1.0}, {"area": 9000.0, "milliseconds": 3.0}][
            case.sample
        ],
    )
    write_table(study, "dense")
    forward, backward = cells_of(read_rows(table_file(study, "dense", "parquet")))[:2]
    assert forward.throughput() == pytest.approx(4 * 10_000 * 4 * 64 / 4e-3 / 1e12)
    assert backward.throughput() == pytest.approx(2.5 * 4 * 10_000 * 4 * 64 / 4e-3 / 1e12)
    # A slow call is a low rate: p80 of latency is 1.1 times the median.
    assert forward.throughput("p80") == pytest.approx(forward.throughput() / 1.1)
    assert forward.latency("p20") == pytest.approx(0.9 * 4.0)


def test_a_cell_with_a_sample_that_is_not_ok_has_no_number_and_ranks_nowhere() -> None:
    study = dense_study(samples=2, patterns=["causal_document"])
    fast_but_once = lambda case: {"milliseconds": 0.01} if case.sample == 0 else {"status": "out_of_memory"}  # noqa: E731
    write_records(
        study, lambda case: fast_but_once(case) if case.kernel == "naive" else {"milliseconds": 5.0}
    )
    (section,) = sections(study)
    assert section.headers == ("Pattern", "Length (tokens)", "naive", "sdpa")
    assert section.rows[0][2] == "out of memory 1 of 2, ok 1 of 2"
    assert section.best == {(0, 3)}


@pytest.mark.parametrize("status", [status for status in STATUSES if status != "ok"])
def test_a_status_is_a_word_in_every_form_and_never_the_best(status: str) -> None:
    study = dense_study(patterns=["causal"])
    write_records(study, by_kernel(naive={"status": status}))
    (section,) = sections(study)
    words = status.replace("_", " ")
    assert section.rows[0][2] == words
    assert section.best == {(0, 3)}
    for suffix in ("md", "tex"):
        (line,) = [
            text for text in table_file(study, "dense", suffix).read_text().splitlines() if "causal" in text
        ]
        cells = [cell.strip(" \\") for cell in line.strip("|").split("|" if suffix == "md" else "&")]
        assert cells[2] == words
        assert all(cells)
    naive = read_rows(table_file(study, "dense", "parquet"))[0]
    assert (naive["status"], naive["tflops"], naive["latency_ms_p50"]) == (status, None, None)


def test_the_best_of_a_row_is_bold_and_two_equal_ones_both_are() -> None:
    study = dense_study(kernels=["naive", "sdpa", "flex"])
    write_records(
        study, lambda case: {"milliseconds": 2.0 if case.kernel == "naive" or case.pattern == "full" else 1.0}
    )
    (section,) = sections(study)
    assert section.best == {(0, 2), (0, 3), (0, 4), (1, 3), (1, 4)}
    assert "**0.268**" in table_file(study, "dense", "md").read_text()
    assert r"\textbf{0.268}" in table_file(study, "dense", "tex").read_text()


def test_records_of_two_devices_share_no_row() -> None:
    study = dense_study(patterns=["causal"])
    write_records(
        study, by_kernel(naive={"environment": {"device": "one"}}, sdpa={"environment": {"device": "two"}})
    )
    one, two = sections(study)
    assert ("one" in one.title, "two" in two.title) == (True, True)
    assert (one.rows[0][2], one.rows[0][3]) == ("0.268", "not measured")
    assert (two.rows[0][2], two.rows[0][3]) == ("not measured", "0.268")


def test_a_length_a_kernel_was_not_given_is_no_case_of_the_grid() -> None:
    study = dense_study(seqlens=[512, 1024], kernel_seqlens={"sdpa": [512]}, patterns=["full"])
    write_records(study)
    (section,) = sections(study)
    assert [row[1] for row in section.rows] == ["512", "1024"]
    assert section.rows[1][3] == "not in grid"


def test_a_flag_is_marked_and_named() -> None:
    study = dense_study(patterns=["full"])
    write_records(study, by_kernel(sdpa={"flags": ["drift", "throttled"]}))
    (section,) = sections(study)
    assert (section.rows[0][2], section.rows[0][3]) == ("0.268", "0.268 †")
    assert section.note == "† flagged: drift, throttled."


def test_forward_and_backward_are_sections_with_their_unit() -> None:
    study = dense_study(passes=["backward", "forward"])
    write_records(study)
    assert [section.title.split(",")[0] for section in sections(study)] == [
        "Forward throughput in TFLOP/s",
        "Backward throughput in TFLOP/s",
    ]


def test_with_several_datasets_each_title_names_its_own() -> None:
    several = dense_study(patterns=["causal", "causal_document"], datasets=["auto", "pile"])
    write_records(several)
    for name in ("dense", "verification"):
        auto, pile = sections(several, name)[:2]
        assert auto.title.endswith(", documents of auto")
        assert pile.title.endswith(", documents of pile")
        assert ({row[0] for row in auto.rows}, {row[0] for row in pile.rows}) == (
            {"causal", "causal_document"},
            {"causal_document"},
        )
    one = dense_study(patterns=["causal"])
    write_records(one)
    assert "documents" not in sections(one)[0].title


def test_tables_made_early_say_not_measured() -> None:
    study = dense_study(seqlens=[512, 1024])
    file = record_file(study, "dense/auto/sdpa/causal/4-2")
    write_records(study, lambda case: None if (case.kernel, case.pattern) == ("sdpa", "causal") else {})
    with pytest.raises(LongcaError, match=f"{file}: is not there"):
        write_table(study, "dense")
    assert not table_file(study, "dense", "csv").exists()
    (section,) = sections(study, partial=True)
    assert [row[3] for row in section.rows] == ["0.0671", "0.268", "not measured", "not measured"]
    rows = read_rows(table_file(study, "dense", "parquet"))
    unmeasured = [row for row in rows if row["status"] == "not measured"]
    assert [(row["kernel"], row["pattern"], row["seqlen"]) for row in unmeasured] == [
        ("sdpa", "causal", 512),
        ("sdpa", "causal", 1024),
    ]
    assert str(file) in unmeasured[0]["reason"]


def test_nothing_measured_at_all_is_a_table_of_not_measured() -> None:
    study = dense_study(patterns=["causal"])
    for name in ("dense", "support", "verification"):
        assert sections(study, name, partial=True)
        for suffix in TABLE_FORMATS:
            assert table_file(study, name, suffix).stat().st_size > 0
    assert sections(study, "dense", partial=True)[0].rows == (
        ("causal", "1024", "not measured", "not measured"),
    )


def test_a_case_missing_from_a_file_is_named() -> None:
    study = dense_study(seqlens=[512, 1024])
    write_records(study, lambda case: None if case.seqlen == 1024 and case.kernel == "naive" else {})
    with pytest.raises(
        LongcaError, match=r"naive/full/4-2.jsonl: lacks 1 of 2 cases, first seqlen 1024, sample 0"
    ):
        write_table(study, "dense")


def test_a_bad_line_an_empty_file_and_a_case_twice_are_named() -> None:
    study = dense_study(seqlens=[512, 1024], patterns=["full"])
    write_records(study)
    file = record_file(study, "dense/auto/sdpa/full/4-2")
    good = file.read_text()
    for content, message in {
        good.replace('"status": "ok"', '"status": "fine"', 2).split("\n")[0] + "\n": ":1: status",
        good + good.split("\n")[0] + "\n": ":3: seqlen 512, sample 0, pass forward has a record already",
        good.split("\n")[0] + '\n{"kernel": "sd': ":2: record",
        "": ": is empty",
    }.items():
        file.write_text(content)
        with pytest.raises(LongcaError, match=f"{file}{message}"):
            write_table(study, "dense", partial=True)


def test_kernels_measured_on_different_masks_are_not_compared() -> None:
    study = dense_study(patterns=["causal"])
    write_records(study, by_kernel(sdpa={"mask_digest": "another"}))
    with pytest.raises(
        LongcaError, match=r"sdpa/causal/4-2.jsonl: .*mask another, but .*naive/causal/4-2.jsonl"
    ):
        write_table(study, "dense")


def test_a_record_of_no_case_of_the_grid_is_left_out() -> None:
    write_records(dense_study(seqlens=[512, 1024]))
    write_table(dense_study(seqlens=[512]), "dense")
    rows = read_rows(table_file(dense_study(), "dense", "parquet"))
    assert {row["seqlen"] for row in rows} == {512}


def test_the_long_form_has_every_column_and_csv_equals_parquet() -> None:
    study = dense_study(seqlens=[512, 1024], passes=["forward", "backward"])
    write_records(
        study,
        lambda case: (
            {"status": "crashed", "reason": 'a "quoted", broken\nreason'} if case.seqlen == 512 else {}
        ),
    )
    write_table(study, "dense")
    table = pq.read_table(table_file(study, "dense", "parquet"))
    assert table.num_rows == 16
    assert {
        "latency_ms_p20",
        "relative_error_dq",
        "samples_ms",
        "environment_state_before_load_1m",
        "pass",
    } <= set(table.column_names)
    assert "block" not in table.column_names
    with table_file(study, "dense", "csv").open(newline="") as lines:
        read = list(csv.DictReader(lines))
    assert list(read[0]) == table.column_names
    for text, row in zip(read, table.to_pylist(), strict=True):
        for name, value in row.items():
            if value is None:
                assert text[name] == ""
            elif isinstance(value, list):
                assert json.loads(text[name]) == value
            else:
                assert type(value)(text[name]) == value, name


def test_block_sparse_rows_are_a_pattern_length_block_and_density() -> None:
    study = sparse_study()
    write_records(study, lambda case: {"density": case.density_nominal - 0.01})
    section = sections(study, "sparse")[0]
    assert section.headers[:4] == ("Pattern", "Length (tokens)", "Block (tokens)", "Density (nominal)")
    assert [row[:4] for row in section.rows] == [
        ("uniform_block", "2048", "64", "0.25"),
        ("uniform_block", "2048", "64", "0.5"),
    ]


def test_a_study_with_both_families_verifies_both_without_mixing_them() -> None:
    both = dense_study().model_copy(update={"sparse": sparse_study().sparse})
    write_records(both)
    titles = [section.title for section in sections(both, "verification")]
    assert [("dense kernels" in title, "sparse kernels" in title) for title in titles] == [
        (True, False),
        (False, True),
        (False, False),
    ]


def test_verification_shows_the_worst_error_and_lists_what_was_wrong() -> None:
    study = dense_study(samples=2, patterns=["causal_document"], passes=["forward", "backward"])

    def change(case: Case) -> dict[str, object]:
        errors = {"out": 1e-6, "dq": 2e-6, "dk": 3e-6 * (1 + case.sample), "dv": 1e-6}
        if case.kernel == "sdpa" and case.pass_ == "backward" and case.sample == 1:
            return {
                "status": "wrong",
                "reason": "dq over its budget",
                "relative_error": errors | {"dq": 0.31},
            }
        return {"relative_error": errors}

    write_records(study, change)
    forward, backward, wrong = sections(study, "verification")
    assert forward.rows == (("causal_document", "1024", "1.00e-06", "1.00e-06"),)
    assert backward.rows == (("causal_document", "1024", "6.00e-06", "wrong 1 of 2, ok 1 of 2"),)
    assert wrong.rows == (
        (
            *("sdpa", "causal_document", "1024", "1", "4-2", "backward"),
            *("out 1.00e-06, dq 0.310, dk 6.00e-06, dv 1.00e-06", "dq over its budget"),
        ),
    )


def test_an_unknown_table_is_refused_with_those_there_are() -> None:
    with pytest.raises(LongcaError, match=r"did you mean 'dense'.*allowed: dense, support, verification"):
        write_table(dense_study(), "dens")


def test_early_tables_have_what_a_journal_holds_so_far() -> None:
    """Of a series half done: its last line of a case, nothing of a torn one, and `not measured` for the rest."""
    study = dense_study(kernels=["sdpa"], patterns=["full"], seqlens=[512, 1024, 2048])
    (series,) = study_series(study)
    short, middle, _ = series.cases
    lines = [
        {"key": "a", **json.loads(record(short, milliseconds=5.0).to_line())},
        {"key": "b", **json.loads(record(short, milliseconds=2.0).to_line())},
        {"key": "c", **json.loads(record(middle, status="timeout").to_line())},
    ]
    journal = Path("results/tiny/journals") / f"{series.name}.jsonl"
    journal.parent.mkdir(parents=True)
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"key": "d", "ker')
    with pytest.raises(LongcaError, match=r"records/dense/auto/sdpa/full/4-2.jsonl: is not there"):
        write_table(study, "dense")
    write_table(study, "dense", partial=True)
    rows = read_rows(table_file(study, "dense", "parquet"))
    assert [(row["status"], row["latency_ms_p50"]) for row in rows] == [
        ("ok", 2.0),
        ("timeout", None),
        ("not measured", None),
    ]
