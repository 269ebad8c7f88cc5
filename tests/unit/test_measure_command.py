"""`longca measure` and its like as a person types them: an option that means nothing is refused, none is ignored."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
import yaml

from longca.cli import measure
from longca.cli.main import app, main
from longca.measure import question
from longca.measure.budget import Budget, OutOfBudgetError

GRID = {"kernels": ["naive"], "patterns": ["causal"], "seqlens": [64], "heads": ["4-2"]}
STUDY = {"study": "tiny", "measure": {"device": "cpu"}, "dense": GRID}
PARALLEL = {
    "mechanisms": ["ring_p2p"], "kernels": ["segments"], "patterns": ["causal"], "world_sizes": [2],
    "tokens_per_rank": [64], "heads": ["2-1"], "head_dim": 16, "dtype": "float32",
}  # fmt: skip
OF_STUDY, OF_QUESTION = ["--study", "tiny.yaml"], ["--pattern", "causal_document", "--seqlen", "64"]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Runs `longca` in this process, beside a study: exit code, what it printed, what it said on stderr."""
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(yaml.safe_dump(STUDY))
    Path("ranks.yaml").write_text(
        yaml.safe_dump({"study": "ranks", "measure": {"device": "cpu"}, "context_parallel": PARALLEL})
    )

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["longca", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return run


def refusal(run: Run, *words: str) -> str:
    """The one line that a refused command says; nothing is printed or written."""
    code, printed, said = run(*words)
    assert (code, printed) == (2, ""), said
    assert said.startswith("longca: error: ") and said.count("\n") == 1
    assert not Path("results").exists()
    return said


def options() -> list[str]:
    """Every option of `longca measure` but --study, which says what the others belong to."""
    command = typer.main.get_command(app).commands["measure"]  # type: ignore[attr-defined]
    return [option for one in command.params for option in one.opts if option not in ("--study", "--help")]


# A value that each can take.
VALUES = {
    "--only": "kernel=naive", "--time-budget": "8m", "--retry": "crashed", "--kernel": "naive", "--pattern": "full",
    "--seqlen": "32", "--dataset": "pile", "--heads": "8-8", "--head-dim": "16", "--dtype": "float16",
    "--device": "cpu",
}  # fmt: skip


@pytest.mark.parametrize("option", options())
def test_every_option_counts_for_a_study_or_for_a_question_and_is_refused_for_the_other(
    option: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(question, "ask", lambda one: asked.append(one) or "the answer")
    monkeypatch.setattr(measure, "_measure_study", lambda *given: asked.append(given))
    refused = []
    for mode in (OF_STUDY, OF_QUESTION):
        before = run("measure", *mode)[0], asked.pop()
        code, _, said = run("measure", *mode, option, VALUES[option])
        if code == 2:
            assert said.startswith(f"longca: error: {option}: ") and said.count("\n") == 1 and not asked
            refused.append(mode)
        else:  # what is asked for is another thing than without it
            assert (code, before[0]) == (0, 0) and before[1] != asked.pop()
    assert len(refused) == 1


def test_a_dataset_of_a_pattern_without_documents_is_refused(run: Run) -> None:
    words = ["measure", "--pattern", "causal", "--seqlen", "64", "--dataset"]
    assert "dataset 'pile': causal takes no sampled documents" in refusal(run, *words, "pile")
    assert "dense.datasets: 'pyle' is not a dataset; did you mean 'pile'?" in refusal(run, *words, "pyle")


@pytest.mark.parametrize("study", ["tiny.yaml", "ranks.yaml"])
@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--retry", "crashed,nonsense", "--retry crashed,nonsense: 'nonsense' is not a status"),
        ("--retry", "crash", "did you mean 'crashed'?"),
        ("--time-budget", "nonsense", "--time-budget: 'nonsense'"),
        ("--time-budget", "", "--time-budget: ''"),
        ("--only", "foo=bar", "--only foo=bar: 'foo' is not a key"),
    ],
)
def test_a_wrong_value_is_refused_for_every_family(
    study: str, option: str, value: str, words: str, run: Run
) -> None:
    assert words in refusal(run, "measure", "--study", study, option, value)


def test_a_wrong_time_budget_of_repeat_is_refused(run: Run) -> None:
    assert "--time-budget: '8'" in refusal(run, "repeat", *OF_STUDY, "--time-budget", "8")
    assert "--time-budget: ''" in refusal(run, "repeat", *OF_STUDY, "--time-budget", "")


@pytest.mark.parametrize(
    ("command", "place"),
    [
        (["measure", "--study", "tiny.yaml"], "longca.measure.running.measure_series"),
        (["measure", "--study", "ranks.yaml"], "longca.measure.world.running.measure_on_ranks"),
        (["repeat", "--study", "tiny.yaml"], "longca.measure.repeating.repeat_cells"),
    ],
)
def test_the_end_of_the_time_budget_is_one_line_and_exit_code_75(
    command: list[str], place: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Budget] = []

    def spend(*arguments: object) -> None:
        given.extend(one for one in arguments if isinstance(one, Budget))
        raise OutOfBudgetError

    monkeypatch.setattr(place, spend)
    line = "longca: the time budget ended; what was measured is kept, run again to go on\n"
    assert run(*command, "--time-budget", "8m") == (75, "", line)
    monkeypatch.setattr(
        "longca.measure.slurm.within_job", lambda asked_s: 5.0 if asked_s is None else asked_s
    )
    assert run(*command) == (75, "", line)  # the end of a SLURM job's time
    asked, of_job = given
    assert 470 < asked.left() <= 480 and of_job.left() <= 5


@pytest.mark.parametrize("command", [["measure"], ["compile", "--processes", "2"], ["repeat"]])
def test_nothing_of_a_frozen_study_is_measured(command: list[str], run: Run) -> None:
    Path("tiny.yaml").write_text(yaml.safe_dump({**STUDY, "frozen": True}))
    assert refusal(run, *command, *OF_STUDY) == (
        "longca: error: tiny.yaml: study tiny is frozen: its records are inputs, nothing of it is measured; "
        "right: frozen: false, which goes on from them\n"
    )


@pytest.mark.parametrize("only", [[], ["--only", "kernel=segments"]])
def test_a_study_of_ranks_alone_has_nothing_to_compile(only: list[str], run: Run) -> None:
    words = ["compile", "--study", "ranks.yaml", "--processes", "2", *only]
    assert "study ranks: nothing to compile ahead: context parallel" in refusal(run, *words)
