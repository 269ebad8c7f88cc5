"""A series: resumed from its journal, stopped by its budget, measured again where asked."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from longca.cases import Case, grid_series, study_series
from longca.errors import LongcaError
from longca.files import write_atomically
from longca.masks.blocks import draw_block_map, save_block_map
from longca.masks.mask import draw_mask, mask_to_json
from longca.measure import running
from longca.measure.budget import NO_LIMIT, Budget, OutOfBudgetError
from longca.measure.compiling import compile_cases
from longca.measure.lock import JournalLock
from longca.measure.masks import case_mask
from longca.measure.processes import VARIABLE
from longca.measure.record import read_records
from longca.measure.running import measure_series, turns
from longca.measure.series import SeriesRunner
from longca.measure.session import KernelSession
from longca.study.loading import check_study

pytestmark = pytest.mark.usefixtures("fake_kernels")
QUIET = Console(quiet=True)


def study(kernel="right", seqlens=(32, 64), **measure):
    return check_study(
        {
            "study": "tiny",
            "mask": {"window": 20, "global_tokens": 9, "block": 32},
            "measure": {"device": "cpu", "warmups": 1, "repetitions": 3, "threads": 1} | measure,
            "dense": {
                "kernels": [kernel],
                "patterns": ["causal"],
                "seqlens": list(seqlens),
                "heads": ["4-2"],
                "head_dim": 64,
                "dtype": "float32",
            },
        },
        "test",
    )


def run(tmp_path, one=None, budget=NO_LIMIT, retry=()):
    one = one or study()
    measure_series(one, tmp_path, study_series(one), budget, frozenset(retry), QUIET)
    return read_records(tmp_path / "records" / study_series(one)[0].name.with_suffix(".jsonl"))


def jobs(tmp_path, kernel="right"):
    path = tmp_path / "jobs/dense/auto" / kernel / "causal/4-2.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_case_has_a_record_in_order_and_nothing_is_measured_twice(tmp_path):
    first = run(tmp_path)
    assert [(record.seqlen, record.pass_) for record in first] == [
        (32, "forward"),
        (32, "backward"),
        (64, "forward"),
        (64, "backward"),
    ]
    assert run(tmp_path) == first
    counts = [(job["measured_cases"], job["kept_cases"]) for job in jobs(tmp_path)]
    assert counts == [(4, 0), (0, 4)]
    overhead = jobs(tmp_path)[0]
    assert (
        0 < overhead["measuring_s"] < overhead["wall_s"]
        and 0 < overhead["to_first_measurement_s"] < overhead["wall_s"]
    )
    assert jobs(tmp_path)[1]["to_first_measurement_s"] is None


def test_a_longer_grid_measures_what_is_new(tmp_path):
    first = run(tmp_path)
    longer = run(tmp_path, study(seqlens=(16, 32, 64)))
    assert longer[2:] == first and jobs(tmp_path)[1]["measured_cases"] == 2


@pytest.mark.parametrize("measure", [{"repetitions": 4}, {"warmups": 2}])
def test_another_protocol_measures_again(tmp_path, measure):
    run(tmp_path)
    run(tmp_path, study(**measure))
    assert jobs(tmp_path)[1]["measured_cases"] == 4


def test_a_journal_line_of_another_kernel_than_its_keys_is_refused_and_not_written_into_records(tmp_path):
    run(tmp_path)
    journal = tmp_path / "journals/dense/auto/right/causal/4-2.jsonl"
    written = tmp_path / "records/dense/auto/right/causal/4-2.jsonl"
    before = written.read_text()
    first, *rest = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join([*rest, first.replace('"kernel": "right"', '"kernel": "wrong"')]))
    with pytest.raises(
        LongcaError, match=r"4-2\.jsonl:4: key: [0-9a-f]{24} was made of another case .*kernel wrong"
    ):
        run(tmp_path)
    assert written.read_text() == before
    journal.write_text("".join(rest))
    assert len(run(tmp_path)) == 4 and jobs(tmp_path)[-1]["measured_cases"] == 1


def test_what_a_budget_leaves_out_has_no_record_and_is_measured_next(tmp_path):
    with pytest.raises(OutOfBudgetError):
        run(tmp_path, budget=Budget.of(0))
    records = tmp_path / "records/dense/auto/right/causal/4-2.jsonl"
    assert not records.exists()
    assert len(run(tmp_path)) == 4


def test_the_budget_ends_a_case_without_calling_it_a_timeout(tmp_path):
    one = study("hang", case_timeout="50m")
    (series,) = study_series(one)
    with KernelSession("dense", "hang", one.measure) as session:
        _ = session.opened
        with pytest.raises(OutOfBudgetError):
            SeriesRunner(one, tmp_path, series, frozenset(), 0.0).run(
                session, Budget.of(10), lambda *case: None
            )
    journal = tmp_path / "journals/dense/auto/hang/causal/4-2.jsonl"
    assert {json.loads(line)["seqlen"] for line in journal.read_text().splitlines()} == {32}


def test_lost_cases_are_kept_unless_asked_for_again(tmp_path):
    one = study("segfault")
    first = run(tmp_path, one)
    assert [record.status for record in first] == ["ok", "ok", "crashed", "crashed"]
    assert run(tmp_path, one) == first
    run(tmp_path, one, retry=("crashed", "timeout"))
    assert [job["measured_cases"] for job in jobs(tmp_path, "segfault")] == [4, 0, 2]


def test_a_mask_of_another_study_is_refused(tmp_path):
    one = study()
    run(tmp_path, one)
    other = one.model_copy(update={"seed": 7})
    with pytest.raises(LongcaError, match=r"masks/auto/causal/32/0\.json: seed is 42, the study's is 7"):
        run(tmp_path, other)


def test_a_mask_edited_by_hand_is_refused(tmp_path):
    run(tmp_path)
    path: Path = tmp_path / "masks/auto/causal/64/0.json"
    path.write_text(path.read_text().replace('"area": 2080', '"area": 2081'))
    with pytest.raises(LongcaError, match=r"64/0\.json: key area"):
        run(tmp_path)


@pytest.mark.parametrize(
    ("documents", "message"),
    [([], "documents: add up to 0"), ([10, 54], "documents is"), ([1] * 64, "documents is")],
)
def test_a_mask_of_other_documents_is_refused(tmp_path, documents, message):
    one = study()
    dense = one.dense[0].model_copy(update={"patterns": ("causal_document",)})
    one = one.model_copy(update={"dense": (dense,)})
    path = tmp_path / "masks/auto/causal_document/64/0.json"
    mask = draw_mask("causal_document", 64, documents=documents or [64])
    text = mask_to_json(mask)
    write_atomically(path, text if documents else text.replace("[64]", "[]"))
    with pytest.raises(LongcaError, match=rf"64/0\.json: {message}"):
        run(tmp_path, one)


def test_a_mask_of_another_place_is_refused(tmp_path):
    one = study(seqlens=(64,))
    for name, text in (
        ("pattern", mask_to_json(draw_mask("full", 64))),
        ("seqlen", mask_to_json(draw_mask("causal", 32))),
    ):
        write_atomically(tmp_path / "masks/auto/causal/64/0.json", text)
        with pytest.raises(LongcaError, match=rf"64/0\.json: {name} is"):
            run(tmp_path, one)


def test_a_block_map_of_another_place_is_refused(tmp_path):
    one = study()
    case = Case(
        "sparse", "segments", "auto", "uniform_block", 256, 0, 2, 2, 64, "float32", "forward", 64, 0.25
    )
    path = tmp_path / case.mask_file
    for drawn, name in (
        ((64, 0.5, 2, 42), "density_nominal"),
        ((64, 0.25, 2, 7), "seed"),
        ((128, 0.25, 2, 42), "block"),
    ):
        block, density, kv_heads, seed = drawn
        save_block_map(draw_block_map("uniform_block", 256, block, density, kv_heads, seed, 0), path)
        with pytest.raises(LongcaError, match=rf"0\.npz: {name} is"):
            case_mask(one, tmp_path, case)
        path.unlink()
    drawn = case_mask(one, tmp_path, case)
    assert path.exists() and case_mask(one, tmp_path, case).digest == drawn.digest


def test_a_torn_account_of_a_job_spoils_no_other(tmp_path):
    run(tmp_path)
    path = tmp_path / "jobs/dense/auto/right/causal/4-2.jsonl"
    path.write_text(path.read_text() + '{"series": "dense/au')
    run(tmp_path)
    lines = path.read_text().splitlines()
    assert len(lines) == 3 and json.loads(lines[2])["kept_cases"] == 4


def test_waiting_for_a_journal_counts_against_the_budget(tmp_path):
    journal = tmp_path / "4-2.jsonl"
    with JournalLock(journal), pytest.raises(OutOfBudgetError), JournalLock(journal, Budget.of(0.5)):
        pass


def two_grids():
    one = study().model_dump(mode="json", exclude_unset=True)
    first = one["dense"] | {"kernels": ["right", "raises"], "seqlens": [32]}
    second = one["dense"] | {"seqlens": [16, 32], "patterns": ["causal", "full"]}
    return check_study(one | {"dense": [first, second]}, "test")


def test_grids_are_measured_in_their_order_and_a_series_has_records_when_its_last_grid_is_done(tmp_path):
    one = two_grids()
    order = [(turn.kernel, [part.pattern for part in turn.parts]) for turn in turns(one, study_series(one))]
    assert order == [("right", ["causal"]), ("raises", ["causal"]), ("right", ["causal", "full"])]
    records, journals = (tmp_path / kind / "dense/auto" for kind in ("records", "journals"))
    measure_series(one, tmp_path, grid_series(one)[0], NO_LIMIT, frozenset(), QUIET)
    # One case is still to come, so there are no records of the series; of the other kernel there are all.
    assert [path.parts[-3] for path in records.rglob("*.jsonl")] == ["raises"]
    assert (journals / "right/causal/4-2.jsonl").read_text().count("\n") == 2
    measure_series(one, tmp_path, study_series(one), NO_LIMIT, frozenset(), QUIET)
    found = read_records(records / "right/causal/4-2.jsonl")
    assert [(record.seqlen, record.pass_) for record in found] == [
        (seqlen, pass_) for seqlen in (32, 16) for pass_ in ("forward", "backward")
    ]
    assert [job["measured_cases"] for job in jobs(tmp_path)] == [2, 0, 2]


def test_only_kernels_that_share_a_run_share_truths(tmp_path, monkeypatch):
    folders = []
    monkeypatch.setattr(
        running, "_sessions", lambda study, todo, budget, oracles: folders.append(oracles) or []
    )
    two = two_grids()
    measure_series(two, tmp_path, study_series(two), NO_LIMIT, frozenset(), QUIET)
    one = [series for series in study_series(two) if series.kernel == "right"]
    measure_series(two, tmp_path, one, NO_LIMIT, frozenset(), QUIET)
    assert folders[0] is not None and folders[1] is None
    # Other jobs of a run of Snakemake have other kernels.
    monkeypatch.setenv(VARIABLE, str(tmp_path / "of the run" / "fork"))
    measure_series(two, tmp_path, one, NO_LIMIT, frozenset(), QUIET)
    assert folders[2] == tmp_path / "of the run"


def test_what_a_case_took_that_failed_is_preparing(tmp_path):
    assert {record.status for record in run(tmp_path, study("raises"))} == {"crashed"}
    (job,) = jobs(tmp_path, "raises")
    assert 0 < job["preparing_s"] < job["wall_s"]
    assert job["verifying_s"] == job["measuring_s"] == 0


def test_a_long_call_is_timed_less_often_and_never_under_five_times(tmp_path):
    (record, *_) = run(tmp_path, study(repetitions=30, sampling_time="0.000001s"))
    assert len(record.samples_ms) == 5
    (record, *_) = run(tmp_path, study(repetitions=6, sampling_time="1h"))
    assert len(record.samples_ms) == 6


def test_compiling_times_and_records_nothing(tmp_path):
    ranks = {"mechanisms": ["ring_p2p"], "kernels": ["segments"], "patterns": ["causal"], "heads": ["2-1"]}
    ranks |= {"world_sizes": [2], "tokens_per_rank": [64]}
    config = two_grids().model_dump(mode="json", exclude_unset=True)
    one = check_study(config | {"context_parallel": ranks}, "test")
    cases = [case for series in study_series(one) for case in series.cases]
    console = Console(record=True, width=200, file=io.StringIO())
    compile_cases(one, tmp_path, cases, 2, console)
    said = console.export_text().splitlines()
    assert sorted(said) == [
        "context parallel: not compiled ahead, its kernels compile on the ranks that measure them",
        "dense raises causal 32 4-2: crashed RuntimeError: no plan for this",
        "dense right causal 16 4-2: compiled",
        "dense right causal 32 4-2: compiled",
        "dense right full 16 4-2: compiled",
        "dense right full 32 4-2: compiled",
    ]
    assert not (tmp_path / "records").exists() and not (tmp_path / "journals").exists()


def test_a_block_sparse_series_is_judged_over_its_densities_when_it_is_written(tmp_path, monkeypatch):
    one = check_study(
        {
            "study": "tiny",
            "measure": {"device": "cpu", "warmups": 1, "repetitions": 3, "threads": 1},
            "sparse": {
                "kernels": ["segments"],
                "patterns": ["uniform_block"],
                "seqlens": [256],
                "heads": ["2-2"],
                "head_dim": 64,
                "dtype": "float32",
                "passes": ["forward"],
                "blocks": {"uniform_block": [64]},
                "densities": [0.25, 1.0],
            },
        },
        "test",
    )
    # Whatever the clock says: each map but the densest takes too long, and no case is too small to tell.
    with monkeypatch.context() as strict:
        strict.setattr("longca.measure.skipping.MOST_TIME", 0.0)
        assert [record.status for record in run(tmp_path, one)] == ["ok", "ok"]
        strict.setattr("longca.measure.skipping._TELLING_FLOPS", 0.0)
        judged = run(tmp_path, one)
    assert [record.status for record in judged] == ["fallback", "ok"]
    assert "does not skip blocks" in judged[0].reason
    # Nothing was measured for that: the journal has the measurement itself.
    assert [record.status for record in run(tmp_path, one)] == ["ok", "ok"]
