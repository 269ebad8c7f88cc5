"""`longca mask`, `longca blocks` and `longca patterns`, typed as a user types them."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from longca.cli.main import main
from longca.masks.blocks import draw_block_map, load_block_map
from longca.masks.mask import draw_mask, mask_to_json, read_mask
from longca.masks.patterns import PATTERNS
from longca.masks.views.registry import VIEWS


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs `longca` in this process: exit code, what it printed, what it said on stderr."""

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["longca", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        return (ended.value.code, *capsys.readouterr())

    return run


@pytest.fixture
def longca(run):
    """What the command prints; it must succeed."""

    def longca(*words: object) -> str:
        code, printed, said = run(*words)
        assert (code, said) == (0, "")
        return printed

    return longca


@pytest.fixture
def refusal(run):
    """The one line a refused command prints."""

    def refusal(*words: object) -> str:
        code, printed, said = run(*words)
        assert (code, printed) == (2, "")
        assert said.startswith("longca: error: ") and said.count("\n") == 1
        return said

    return refusal


def test_command_is_installed():
    longca = Path(sys.executable).with_name("longca")
    words = ["mask", "causal_document", "--seqlen", "12", "--documents", "3,4,5"]
    ran = subprocess.run([longca, *words], check=True, capture_output=True, text=True)
    assert json.loads(ran.stdout)["area"] == 6 + 10 + 15
    ran = subprocess.run([longca, *words[:-1], "3,4"], check=False, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "longca: error: documents: add up to 7 tokens; must add up to seqlen 12\n"


def test_mask_is_printed_as_its_file(longca):
    printed = longca("mask", "causal_document", "--seqlen", 8192)
    assert printed == mask_to_json(draw_mask("causal_document", 8192)) + "\n"
    content = json.loads(printed)
    assert (content["dataset"], content["seed"], content["sample"]) == ("auto", 42, 0)
    assert content["area"] == 7558462


@pytest.mark.parametrize(
    "words",
    [
        ["mask", "causal_document"],
        ["documents"],
        ["blocks", "uniform_block", "--block", 64, "--density", 0.5, "--kv-heads", 1],
    ],
    ids=lambda words: words[0],
)
def test_every_seqlen_takes_the_units_of_a_config(words, longca, refusal):
    printed = longca(*words, "--seqlen", "2k")
    assert printed == longca(*words, "--seqlen", 2048)
    assert json.loads(printed)["seqlen"] == 2048
    for wrong in ("8kb", "0", "-1", "2.5k", "many"):
        assert f"--seqlen: {wrong!r} is no number of tokens; allowed:" in refusal(*words, "--seqlen", wrong)


def test_mask_of_given_documents_and_parameters(longca):
    content = json.loads(
        longca("mask", "prefix_lm_document", "--seqlen", 12, "--documents", "3,4,5", "--set", "prefix=2")
    )
    assert content["documents"] == [3, 4, 5]
    assert content["parameters"] == {"prefix": 2}
    assert content["slices"][:2] == [[0, 2, 0, 2, "full"], [2, 3, 0, 3, "causal"]]
    assert content["area"] == 6 + 10 + 15 + 3  # causal, and one cell above the diagonal in each prefix


def test_mask_file_replays_the_documents_it_is_given(tmp_path, longca, refusal):
    lengths, documents, output = (
        tmp_path / name for name in ("lengths.csv", "documents.json", "out put.json")
    )
    lengths.write_text("lower_tokens,upper_tokens,probability,documents\n10,10,1.0,3\n")
    content = {"dataset": "corpus", "dataset_resolved": "corpus", "seqlen": 25, "seed": 1, "sample": 2}
    documents.write_text(json.dumps({**content, "documents": [10, 10, 5]}))
    words = ["--seqlen", 25, "--dataset", "corpus", "--seed", 1, "--sample", 2, "--lengths", lengths]
    words = ["mask", "prefix_lm_document", *words, "--documents-file", documents, "--output", output]
    assert longca(*words) == ""
    mask = read_mask(output)
    assert mask.documents == (10, 10, 5)
    documents.write_text(json.dumps({**content, "documents": [10, 9, 6]}))
    assert "documents file does not match" in refusal(*words)
    documents.write_text(json.dumps({**content, "seed": 3, "documents": [10, 10, 5]}))
    assert f"{documents}: documents file does not match: seed is 3, the mask's is 1" in refusal(*words)
    documents.write_text("{")
    assert f"{documents}: is no JSON" in refusal(*words)
    documents.unlink()
    assert f"{documents}: cannot be read" in refusal(*words)
    assert read_mask(output) == mask


@pytest.mark.parametrize("view", VIEWS)
def test_view_is_json_with_lists(view, longca):
    content = json.loads(longca("mask", "causal", "--seqlen", 5, "--view", view))
    assert content.pop("view") == view
    expected = VIEWS[view].lower(draw_mask("causal", 5).slices, 5, 5)
    if view == "dense":
        assert content == {"kept": np.tril(np.ones((5, 5), bool)).tolist()}
    else:
        assert list(content) == list(vars(expected))
    if view == "varlen":
        assert content["cu_seqlens_q"] == content["cu_seqlens_k"] == [0, 5]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["casual", "--seqlen", 8], "did you mean 'causal'?"),
        (
            ["causal_document", "--seqlen", 8, "--documents", "3,4"],
            "add up to 7 tokens; must add up to seqlen 8",
        ),
        (["causal_document", "--seqlen", 8, "--documents", "3,x"], "--documents 3,x: must be whole numbers"),
        (
            ["causal_document", "--seqlen", 8, "--documents", "8", "--dataset", "pile"],
            "--documents and --dataset",
        ),
        (["causal_sliding_window", "--seqlen", 8, "--set", "window=-1"], "window=-1: must be at least 0"),
        (
            ["causal_sliding_window", "--seqlen", 8, "--set", "window=1k"],
            "--set window=1k: must be name=whole",
        ),
        (["causal_sliding_window", "--seqlen", 8, "--set", "window"], "--set window: must be name=whole"),
        (
            ["causal_sliding_window", "--seqlen", 8, "--set", "window=1", "--set", "window=2"],
            "--set window=2: window is given twice",
        ),
        (["causal_sliding_window", "--seqlen", 8, "--set", "widow=1"], "did you mean 'window'?"),
        (["causal", "--seqlen", 0], "--seqlen: '0' is no number of tokens; allowed: a whole number above 0"),
        (["causal", "--seqlen", 4097, "--view", "dense"], "seqlen 4097 must be at most 4096"),
        (["causal", "--seqlen", 8, "--view", "varlan"], "did you mean 'varlen'?"),
        (["shared_question", "--seqlen", 8, "--documents", "2,3,3", "--view", "window"], "window: query 5 "),
        (
            ["causal", "--seqlen", 8, "--draw", "picture.gif"],
            "picture.gif: a picture's suffix must be one of",
        ),
    ],
)
def test_mask_refuses_in_one_line(words, message, refusal):
    assert message in refusal("mask", *words)


def test_too_little_memory_is_told_in_words(monkeypatch, refusal):
    def draw_mask(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("longca.masks.mask.draw_mask", draw_mask)
    assert "not enough memory: this machine has too little; right:" in refusal("mask", "full", "--seqlen", 8)


def test_what_no_machine_holds_is_refused_in_one_line(refusal):
    words = ["--seqlen", "100M", "--block", 1, "--density", 0.5, "--kv-heads", 8]
    assert "not enough memory: Unable to allocate" in refusal("blocks", "uniform_block", *words)


@pytest.mark.parametrize(("suffix", "start"), [("svg", b"<svg "), ("png", b"\x89PNG"), ("pdf", b"%PDF-")])
def test_picture_is_of_the_kind_its_name_says(suffix, start, tmp_path, longca):
    picture = tmp_path / f"a picture.{suffix}"
    assert longca("mask", "global_sliding", "--seqlen", 99, "--set", "window=9", "--draw", picture) == ""
    assert picture.read_bytes().startswith(start)


def test_a_view_is_printed_beside_a_picture(tmp_path, longca):
    words = ["mask", "causal", "--seqlen", 5, "--view", "dense"]
    picture = tmp_path / "mask.svg"
    assert longca(*words, "--draw", picture) == longca(*words)
    assert picture.exists()


def test_blocks_writes_the_map_and_prints_a_summary(tmp_path, longca, refusal):
    output = tmp_path / "0.npz"
    words = ["blocks", "variable_block", "--seqlen", 4096, "--block", 256, "--density", 0.25, "--kv-heads", 2]
    assert longca(*words, "--sample", 1, "--output", output) == ""
    drawn = draw_block_map("variable_block", 4096, 256, 0.25, 2, sample=1)
    assert load_block_map(output).digest == drawn.digest
    summary = json.loads(longca(*words, "--sample", 1))
    assert summary["digest"] == drawn.digest
    assert (summary["area"], summary["density"]) == (drawn.area, drawn.density)
    picture = tmp_path / "map.svg"
    longca(*words, "--head", 1, "--draw", picture)
    assert picture.read_text().count('aria-roledescription="line mark"') == len(
        draw_block_map("variable_block", 4096, 256, 0.25, 2).slices(1)
    )
    assert "--head 2: must be below --kv-heads 2" in refusal(*words, "--head", 2, "--draw", picture)
    for shown in ([], ["--output", output]):
        assert "--head: is the one that --draw shows; right: with --draw" in refusal(
            *words, "--head", 0, *shown
        )
    assert "did you mean 'variable_block'?" in refusal("blocks", "variable_blocks", *words[2:])


def test_patterns_lists_every_pattern(longca):
    rows = longca("patterns").splitlines()
    assert [row.split(" | ")[0].strip("| ") for row in rows[2:]] == list(PATTERNS)
