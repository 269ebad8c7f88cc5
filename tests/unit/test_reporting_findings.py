"""Findings: sentences that follow from the records and go no further."""

from pathlib import Path

import pytest
from reporting_records import Change, by_kernel, dense_study, sparse_study, write_records

from longca.cases import Case
from longca.reporting.cells import Cell, cells_of
from longca.reporting.findings import fastest, refusals
from longca.reporting.findings_page import findings_page
from longca.reporting.flips import flips
from longca.reporting.long import read_rows
from longca.reporting.names import families, table_file
from longca.reporting.tables import write_table
from longca.study.model import Study


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def cells(study: Study, change: Change) -> list[Cell]:
    """The cells of a study's table."""
    (family,) = families(study)
    write_records(study, change)
    write_table(study, family, partial=True)
    return cells_of(read_rows(table_file(study, family, "parquet")))


def sentence(change: Change, seqlens: list[int]) -> str:
    """What is said of the causal pattern."""
    (finding,) = fastest(cells(dense_study(patterns=["causal"], seqlens=seqlens), change))
    ((pattern, said),) = finding.sentences
    assert pattern == "causal"
    return said


def test_the_fastest_is_named_with_its_lead() -> None:
    said = sentence(by_kernel(naive={"milliseconds": 3.0}), [1024])
    assert said == "sdpa at 1024 tokens, 3.00 times as fast as naive (0.268 TFLOP/s)."


def test_flags_of_the_numbers_compared_are_told() -> None:
    said = sentence(by_kernel(naive={"milliseconds": 3.0, "flags": ["drift"]}), [1024])
    assert said == "sdpa at 1024 tokens, 3.00 times as fast as naive (0.268 TFLOP/s; flagged drift)."


def test_where_the_ranking_flips_each_run_of_lengths_is_told() -> None:
    def change(case: Case) -> dict[str, float]:
        return {"milliseconds": 2.0 if (case.kernel == "naive") == (case.seqlen < 1024) else 1.0}

    assert sentence(change, [256, 512, 1024]) == (
        "sdpa from 256 to 512 tokens, 2.00 times as fast as naive (0.0168 to 0.0671 TFLOP/s); "
        "naive at 1024 tokens, 2.00 times as fast as sdpa (0.268 TFLOP/s)."
    )


def test_a_lead_inside_the_spread_is_no_lead() -> None:
    said = sentence(by_kernel(naive={"milliseconds": 1.05}), [1024])
    assert said == "sdpa at 1024 tokens, level with naive within the spread (0.268 TFLOP/s)."


def test_a_lead_smaller_than_runs_are_apart_is_no_lead() -> None:
    def change(case: Case) -> dict[str, object]:
        return {"samples_ms": [1.019 if case.kernel == "naive" else 1.0] * 9}

    assert "level with naive within the spread" in sentence(change, [1024])


def test_a_kernel_without_a_verified_number_neither_wins_nor_loses() -> None:
    assert sentence(by_kernel(naive={"status": "wrong"}), [1024]) == (
        "sdpa at 1024 tokens, the only one with a number (0.268 TFLOP/s)."
    )
    said = sentence(lambda case: {"status": "timeout"} if case.seqlen == 512 else None, [512, 1024])
    assert said == "no kernel has a number at every length."


def test_every_refusal_is_told_once_with_its_reason_and_place() -> None:
    def change(case: Case) -> dict[str, str]:
        if case.kernel == "sdpa":
            return {"status": "missing", "reason": "No module named 'x'"}
        return (
            {"status": "out_of_memory", "reason": "64 GiB asked"}
            if case.seqlen == 1024 and case.pattern == "full"
            else {}
        )

    study = dense_study(seqlens=[512, 1024], passes=["forward", "backward"])
    assert refusals(cells(study, change)).sentences == (
        ("naive", "out of memory on full at 1024 tokens: 64 GiB asked"),
        ("sdpa", "missing on every pattern: No module named 'x'"),
    )


def test_two_devices_have_findings_of_their_own() -> None:
    found = fastest(
        cells(
            dense_study(patterns=["causal"]),
            by_kernel(naive={"environment": {"device": "slow one"}, "milliseconds": 9.0}, sdpa={}),
        )
    )
    assert len(found) == 2
    assert all("the only one with a number" in said for finding in found for _, said in finding.sentences)


def test_a_block_sparse_sentence_runs_over_densities() -> None:
    study = sparse_study(seqlens=[2048, 4096])
    (finding,) = fastest(cells(study, by_kernel(flex={"milliseconds": 4.0})))
    assert [subject for subject, _ in finding.sentences] == [
        "uniform_block 64, 2048 tokens",
        "uniform_block 64, 4096 tokens",
    ]
    assert all(
        said.startswith("segments at every density, 4.00 times as fast as flex")
        for _, said in finding.sentences
    )


def test_a_ranking_flips_where_the_lead_passes_beyond_the_spread() -> None:
    """sdpa leads at 512, naive from 1024 on; over full both are level at 512, which is no flip."""
    times = {
        ("causal", "sdpa", 512): 1.0,
        ("causal", "naive", 512): 2.0,
        ("causal", "sdpa", 1024): 4.0,
        ("causal", "naive", 1024): 2.0,
        ("full", "sdpa", 512): 1.0,
        ("full", "naive", 512): 1.05,
    }
    found = flips(
        cells(
            dense_study(seqlens=[512, 1024, 2048]),
            lambda case: {
                "milliseconds": times.get(
                    (case.pattern, case.kernel, case.seqlen), 2.0 if case.kernel == "naive" else 8.0
                )
            },
        )
    )
    assert [finding.sentences for finding in found] == [
        (
            (
                "causal",
                "naive overtakes sdpa between 512 tokens and 1024 tokens: 0.0336 beside 0.0671, "
                "then 0.134 beside 0.0671 TFLOP/s.",
            ),
        )
    ]


def test_a_kernel_that_drops_out_is_not_overtaken() -> None:
    def told(case: Case) -> dict[str, object]:
        if case.kernel == "sdpa":
            return {} if case.seqlen == 512 else {"status": "out_of_memory", "reason": "64 GiB"}
        return {"milliseconds": 2.0}

    assert flips(cells(dense_study(seqlens=[512, 1024]), told))[0].sentences == ()


def test_a_page_of_findings_is_made_of_the_records_alone() -> None:
    study = dense_study()
    write_records(study, by_kernel(naive={"status": "out_of_memory", "reason": "64 GiB <asked>"}))
    page = findings_page(study, Path("config/tiny.yaml"))
    for said in (
        "# What results/tiny says",
        "`longca findings --study config/tiny.yaml`",
        "4 cases on a CPU, 2 threads: 2 ok, 2 out of memory.",
        "- **full**: sdpa at 1024 tokens, the only one with a number (0.268 TFLOP/s).",
        "- **naive**: out of memory on every pattern: 64 GiB &lt;asked&gt;",
    ):
        assert said in page, page
