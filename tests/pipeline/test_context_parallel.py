"""Context parallel through Snakemake: ranks are started by the job, and what an edit reruns is what it touches."""

from typing import Any

from workspace import TINY, Workspace

GRID: dict[str, Any] = {
    "mechanisms": ["ring_p2p", "ring_allgather"],
    "kernels": ["segments"],
    "patterns": ["causal"],
    "world_sizes": [2],
    "tokens_per_rank": [32],
    "heads": ["2-1"],
    "head_dim": 16,
    "dtype": "float32",
    "passes": ["forward"],
}


def study(**grid: Any) -> dict[str, Any]:
    return {"study": "tiny", "measure": TINY["measure"], "context_parallel": GRID | grid}


def series(mechanism: str) -> str:
    return f"context_parallel/auto/{mechanism}/segments/causal/2-1/2"


def test_ranks_are_measured_and_only_what_an_edit_touches_again(fresh: Workspace) -> None:
    fresh.write_study(study())
    run = fresh.succeed("context_parallel", "results/tiny/tables/context_parallel.md")
    assert run.jobs["measure_context_parallel"] == 2
    for mechanism in GRID["mechanisms"]:
        (record,) = fresh.records(series(mechanism))
        assert (record["status"], record["mechanism"], record["world_size"]) == ("ok", mechanism, 2)
    assert "ring_allgather" in fresh.result("tables/context_parallel.md").read_text()
    assert "Nothing to be done" in fresh.succeed("context_parallel", "-n").output
    # A line of one mechanism's own code.
    fresh.edit("workflow/longca/parallel/ring_allgather.py", "FORM = Form(", "EDITED = True\nFORM = Form(")
    edited = fresh.succeed("context_parallel", "-n")
    assert edited.outputs("measure_context_parallel") == {
        f"results/tiny/records/{series('ring_allgather')}.jsonl"
    }
    # One more length: every series runs, and measures what is new.
    fresh.edit("workflow/longca/parallel/ring_allgather.py", "EDITED = True\nFORM = Form(", "FORM = Form(")
    before = fresh.records(series("ring_p2p"))
    fresh.write_study(study(tokens_per_rank=[32, 48]))
    assert fresh.succeed("context_parallel").jobs["measure_context_parallel"] == 2
    assert fresh.records(series("ring_p2p"))[0] == before[0]
    assert [record["seqlen"] for record in fresh.records(series("ring_p2p"))] == [64, 96]
