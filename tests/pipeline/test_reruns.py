"""What an edit reruns is exactly what it touches."""

import os
from pathlib import Path

import yaml
from workspace import TINY, Workspace

NOTHING = "Nothing to be done"
KERNEL = "workflow/longca/kernels/dense/naive.py"
CODE_LINE = "KERNEL = Kernel("


def with_dense(**changes: object) -> dict[str, object]:
    """The tiny study with keys of its dense grid given otherwise."""
    return {**TINY, "dense": {**TINY["dense"], **changes}}


def test_a_second_run_does_nothing(workspace: Workspace) -> None:
    run = workspace.succeed("all")
    assert NOTHING in run.output


def test_what_touches_no_result_reruns_nothing(workspace: Workspace) -> None:
    # A comment and a docstring of a kernel, of a module all kernels share, and of a rule.
    workspace.edit(KERNEL, CODE_LINE, "# A comment.\n" + CODE_LINE)
    for name in (KERNEL, "workflow/longca/kernels/interface.py", "workflow/longca/masks/slices.py"):
        file = workspace.folder / name
        file.write_text(
            '"""Another docstring, and a comment."""  # here\n' + file.read_text().partition('"""\n')[2]
        )
    workspace.edit("rules/kernels.smk", "rule measure_dense:", "# A comment.\nrule measure_dense:")
    # Files touched, their content the same.
    for name in ("masks/auto/causal/64/0.json", "documents/auto/128/0.json", "lengths/pile.csv"):
        os.utime(workspace.result(name))
    # Keys that no measurement reads: a limit, a size no pattern of the study takes. And other studies.
    workspace.write_study(
        {**TINY, "mask": {"window": 7}, "measure": {**TINY["measure"], "case_timeout": "9m"}}
    )
    workspace.edit("config/smoke.yaml", "window: 128", "window: 64")
    run = workspace.succeed("all", "-n")
    assert NOTHING in run.output, run.output


def test_an_edited_kernel_reruns_its_own_series_alone(workspace: Workspace) -> None:
    workspace.edit(KERNEL, CODE_LINE, "EDITED = True\n" + CODE_LINE)
    run = workspace.succeed("dense", "-n")
    assert run.outputs("measure_dense") == {
        "results/tiny/records/dense/auto/naive/causal/2-1.jsonl",
        "results/tiny/records/dense/auto/naive/causal_document/2-1.jsonl",
    }
    assert run.jobs == {"measure_dense": 2, "dense": 1}


def test_a_newer_library_reruns_the_kernels_that_are_made_of_it(workspace: Workspace) -> None:
    workspace.edit("envs/cpu.txt", "torch==2.13.0", "torch==2.14.0")
    assert workspace.succeed("dense", "-n").jobs["measure_dense"] == 4
    workspace.edit("envs/cpu.txt", "torch==2.14.0", "torch==2.13.0")
    workspace.edit("envs/analysis.txt", "altair==", "altair==9")
    assert NOTHING in workspace.succeed("dense", "-n").output


def test_another_meaning_of_the_numbers_reruns_all_of_them(workspace: Workspace) -> None:
    workspace.edit("workflow/longca/measure/protocol.py", "PROTOCOL_VERSION = ", "PROTOCOL_VERSION = 7")
    assert workspace.succeed("dense", "-n").jobs == {"measure_dense": 4, "dense": 1}


def test_a_config_key_reruns_what_reads_it(workspace: Workspace) -> None:
    workspace.write_study({**TINY, "measure": {**TINY["measure"], "repetitions": 4}})
    assert workspace.succeed("dense", "-n").jobs == {"measure_dense": 4, "dense": 1}
    workspace.write_study(with_dense(patterns=["causal"]))
    assert NOTHING in workspace.succeed("dense", "-n").output
    workspace.write_study({**TINY, "seed": 43})
    seeded = workspace.succeed("masks", "-n").jobs
    assert seeded == {"documents": 2, "document_mask": 2, "mask": 2, "masks": 1}


def test_one_more_length_measures_that_length_alone(workspace: Workspace) -> None:
    before = workspace.records("dense/auto/sdpa/causal_document/2-1")
    workspace.write_study(with_dense(kernels=["sdpa"], patterns=["causal_document"], seqlens=[64, 96, 128]))
    run = workspace.succeed("dense")
    assert run.jobs == {"documents": 1, "document_mask": 1, "measure_dense": 1, "dense": 1}
    after = workspace.records("dense/auto/sdpa/causal_document/2-1")
    assert [record for record in after if record["seqlen"] != 96] == before
    added = [record for record in after if record["seqlen"] == 96]
    assert [(record["pass"], record["status"]) for record in added] == [("forward", "ok"), ("backward", "ok")]
    assert NOTHING in workspace.succeed("dense").output


def test_a_mask_size_rebuilds_and_measures_the_masks_that_have_it(workspace: Workspace) -> None:
    windowed = with_dense(kernels=["sdpa"], patterns=["causal", "causal_sliding_window"], seqlens=[64])
    workspace.write_study({**windowed, "mask": {"window": 8}})
    workspace.succeed("dense")
    first = workspace.records("dense/auto/sdpa/causal_sliding_window/2-1")
    workspace.write_study({**windowed, "mask": {"window": 16}})
    run = workspace.succeed("dense")
    assert run.outputs("measure_dense") == {
        "results/tiny/records/dense/auto/sdpa/causal_sliding_window/2-1.jsonl"
    }
    second = workspace.records("dense/auto/sdpa/causal_sliding_window/2-1")
    # Cells of row i under a window w: min(i, w) + 1.
    assert [record["area"] for record in first + second] == [540, 540, 952, 952]


def test_a_study_given_on_the_command_line_is_told_apart_by_what_it_changes(workspace: Workspace) -> None:
    """A changed path of the config is no change of the study, a changed seed is."""
    (workspace.folder / "elsewhere").mkdir()
    (workspace.folder / "tiny.yaml").rename(workspace.folder / "elsewhere" / "same.yaml")
    assert NOTHING in workspace.succeed("dense", "-n", config="elsewhere/same.yaml").output
    run = workspace.succeed("masks", "-n", "--config", "seed=43", config="elsewhere/same.yaml")
    assert run.jobs["document_mask"] == 2
    merged = Path(workspace.folder, "results", "tiny", "study.yaml")
    assert yaml.safe_load(merged.read_text()) == {**TINY, "seed": 43}
