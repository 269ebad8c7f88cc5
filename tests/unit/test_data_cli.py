"""`longca lengths` and `longca documents` as a person types them."""

import json
import subprocess
from pathlib import Path

import pytest
from data_corpora import LONGCA, TEXTS, write_records
from typer.testing import CliRunner

from longca.cli.main import app
from longca.data.histogram import published_histogram, read_histogram
from longca.errors import LongcaError

RECORDS = [
    {"text": text, "meta": {"pile_set_name": name}} for text, name in zip(TEXTS, "AABBAAA", strict=True)
]
GRID = (
    "dense: {kernels: [naive], patterns: [causal_document], seqlens: [64], heads: [4-2], datasets: [mine]}\n"
)


def run(*arguments: object) -> str:
    """The command's output; what it raises is raised here."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_a_published_name_copies_its_histogram(tmp_path: Path) -> None:
    run("lengths", "pile", "--output", tmp_path / "new" / "pile.csv")
    assert read_histogram(tmp_path / "new" / "pile.csv") == published_histogram("pile")


def test_a_published_name_without_output_is_summed_up() -> None:
    output = run("lengths", "prolong64k")
    assert "not published" in output and "61,920" in output


def test_a_corpus_of_a_study(tmp_path: Path) -> None:
    file = write_records(tmp_path, "jsonl.zst", RECORDS)
    study = tmp_path / "study.yaml"
    study.write_text(f"datasets:\n  mine:\n    layout: pile\n    files: [{file}]\n    subsets: [A]\n")
    output = run("lengths", "mine", "--study", study, "--output", tmp_path / "mine.csv", "--workers", 1)
    assert "5 documents from text, tokenised by tekken" in output
    assert "2 documents left out: of other subsets" in output
    assert sum(filter(None, read_histogram(tmp_path / "mine.csv").documents)) == 5
    # A rule gives the study for every data set; a published one needs nothing from it.
    run("lengths", "pile", "--study", study, "--output", tmp_path / "pile.csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "datasets: {mine: {layout: pile, files: [a]}}\ndatasets: {mine: {layout: pile, files: [b]}}\n",
            ":3: key 'datasets' stands there twice",
        ),
        ("datasets: {mine: {layout: pile, files: [a], files: [b]}}\n", ":2: key 'files' stands there twice"),
        ("datasets: {mine: {layout: pile}}\n", ": datasets.mine: give either files or hugging_face"),
        ("datasets: [\n", ":4: "),
        ("datasets: !!python/object:os.system {}\n", ":2: could not determine a constructor"),
    ],
)
def test_what_is_wrong_with_a_corpus_is_told_as_by_every_command(
    text: str, message: str, tmp_path: Path
) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(f"study: tiny\n{text}" + GRID.replace("[mine]", "[pile]"))
    said = []
    for command in (["lengths", "mine"], ["plan"]):
        with pytest.raises(LongcaError) as caught:
            run(*command, "--study", study)
        said.append(str(caught.value))
    assert said[0] == said[1] and said[0].startswith(f"{study}{message}")


def test_a_corpus_that_a_study_does_not_have_is_named(tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(f"study: tiny\n{GRID}datasets: {{mine: {{layout: pile, files: [a]}}}}\n")
    with pytest.raises(LongcaError) as caught:
        run("lengths", "mime", "--study", study)
    assert str(caught.value) == (
        f"{study}: datasets: 'mime' is not a dataset; did you mean 'mine'? allowed: mine, pile, prolong512k, prolong64k"
    )


def test_a_corpus_without_a_study_and_what_was_skipped(tmp_path: Path) -> None:
    file = write_records(tmp_path, "jsonl", [*RECORDS, {"text": ""}, {"no": "text"}])
    options = ["--layout", "pile", "--files", file, "--bad-records", "skip", "--workers", 1]
    output = run("lengths", "mine", *options)
    assert "7 documents from text" in output
    assert "1 documents left out: empty" in output
    assert "1 records skipped as bad, the first:" in output and "line 9: no key text (its keys: no)" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["lengths", "mine"],
            "prolong64k, prolong512k): give --study FILE",
        ),
        (["lengths", "mine", "--files", "a"], "command line: layout: Field required"),
        (["lengths", "pile", "--files", "a"], "pile is a published dataset"),
        (["lengths", "pile", "--workers", "2"], "--workers: pile is a published dataset, nothing is counted"),
        (["lengths", "mine", "--study", "s.yaml", "--files", "a"], "--study s.yaml describes the corpus"),
        (["lengths", "mine", "--study", "absent.yaml"], "absent.yaml: cannot be read: No such file"),
        (["documents", "--dataset", "mine", "--seqlen", "9"], "'mine' is no published dataset"),
        (["documents", "--seqlen", "9", "--lengths", "absent.csv"], "absent.csv: cannot be read"),
    ],
)
def test_mistakes_are_named(arguments: list[str], message: str) -> None:
    with pytest.raises(LongcaError) as caught:
        run(*arguments)
    assert message in str(caught.value)


def test_a_mistake_is_one_line_exit_code_2_and_nothing_half_written(tmp_path: Path) -> None:
    file = write_records(tmp_path, "jsonl.zst", RECORDS)
    file.write_bytes(file.read_bytes()[:-9])
    output = tmp_path / "out" / "mine.csv"
    arguments = [LONGCA, "lengths", "mine", "--layout", "pile", "--files", file, "--output", output]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"longca: error: {file}: cannot be read: Truncated compressed stream\n"
    assert not output.parent.exists()


def test_documents_of_auto() -> None:
    assert json.loads(run("documents", "--seqlen", 1024)) == {
        "dataset": "auto",
        "dataset_resolved": "pile",
        "seqlen": 1024,
        "seed": 42,
        "sample": 0,
        "documents": [353, 559, 102, 10],
    }


def test_sample_n_takes_the_seed_plus_n(tmp_path: Path) -> None:
    run(
        "documents",
        "--dataset",
        "pile",
        "--seqlen",
        5000,
        "--sample",
        3,
        "--output",
        tmp_path / "a" / "3.json",
    )
    written = json.loads((tmp_path / "a" / "3.json").read_text())
    again = json.loads(run("documents", "--dataset", "pile", "--seqlen", 5000, "--seed", 45))
    assert (
        written["documents"]
        == again["documents"]
        != json.loads(run("documents", "--seqlen", 5000))["documents"]
    )
    assert (written["seed"], written["sample"], written["dataset_resolved"]) == (42, 3, "pile")


def test_documents_of_a_corpus_and_of_its_long_form(tmp_path: Path) -> None:
    file = write_records(tmp_path, "jsonl", [{"length": 30}])
    csv = tmp_path / "mine.csv"
    run("lengths", "mine", "--layout", "prolong", "--files", file, "--workers", 1, "--output", csv)
    plain = json.loads(run("documents", "--dataset", "mine", "--seqlen", 100, "--lengths", csv))
    assert (plain["dataset_resolved"], plain["documents"]) == ("mine", [30, 30, 30, 10])
    longer = json.loads(run("documents", "--dataset", "mine_long", "--seqlen", 100, "--lengths", csv))
    assert (longer["dataset_resolved"], sorted(longer["documents"])) == ("mine_long", [10, 30, 60])
