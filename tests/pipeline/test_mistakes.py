"""Mistakes in configs, corpora and files edited by hand: one clear line, and nothing half-written left."""

import json
from typing import Any

import pytest
from workspace import TINY, Workspace

CONFIG_MISTAKES: list[tuple[dict[str, Any], str]] = [
    (
        {"kernel": ["sdpa"]},
        "tiny.yaml: dense.kernel: 'kernel' is not a key of dense; did you mean 'kernels'?",
    ),
    ({"kernels": ["sdap"]}, "tiny.yaml: dense.kernels: 'sdap' is not a dense kernel; did you mean 'sdpa'?"),
    (
        {"patterns": ["casual"]},
        "tiny.yaml: dense.patterns: 'casual' is not a pattern; did you mean 'causal'?",
    ),
    ({"seqlens": ["8kb"]}, "tiny.yaml: dense.seqlens.0: '8kb' is no number of tokens; allowed:"),
    ({"seqlens": []}, "tiny.yaml: dense.seqlens: is empty; right: at least one value"),
    ({"head_dim": "64"}, "tiny.yaml: dense.head_dim: '64' is wrong; input should be a valid integer"),
]


@pytest.mark.parametrize(("changes", "words"), CONFIG_MISTAKES, ids=[words for _, words in CONFIG_MISTAKES])
def test_a_config_mistake_stops_before_any_job(fresh: Workspace, changes: dict[str, Any], words: str) -> None:
    fresh.write_study({**TINY, "dense": {**TINY["dense"], **changes}})
    run = fresh.run("all")
    assert run.code != 0
    assert words in run.output
    assert "Traceback" not in run.output
    assert not (fresh.folder / "results").exists()


def test_a_key_given_twice_is_refused(fresh: Workspace) -> None:
    config = fresh.folder / "tiny.yaml"
    config.write_text(config.read_text() + "seed: 1\nseed: 2\n")
    run = fresh.run("all")
    assert run.code != 0
    assert "tiny.yaml:" in run.output
    assert "key 'seed' stands there twice" in run.output
    assert not (fresh.folder / "results").exists()


def test_a_mask_edited_by_hand_is_not_measured(workspace: Workspace) -> None:
    workspace.write_study({**TINY, "dense": {**TINY["dense"], "kernels": ["sdpa"], "patterns": ["causal"]}})
    mask = workspace.result("masks/auto/causal/64/0.json")
    content = json.loads(mask.read_text())
    mask.write_text(json.dumps({**content, "area": content["area"] + 1}))
    run = workspace.run("dense")
    assert run.code != 0
    (line,) = {line for line in run.output.splitlines() if line.startswith("longca: error: ")}
    assert "results/tiny/masks/auto/causal/64/0.json" in line
    assert not workspace.result("records/dense/auto/sdpa/causal/2-1.jsonl").exists()
    mask.unlink()
    assert workspace.succeed("dense").jobs == {"mask": 1, "measure_dense": 1, "dense": 1}


def test_documents_that_do_not_add_up_make_no_mask(workspace: Workspace) -> None:
    documents = workspace.result("documents/auto/64/0.json")
    content = json.loads(documents.read_text())
    documents.write_text(json.dumps({**content, "documents": [60, 5]}))
    run = workspace.run("masks")
    assert run.code != 0
    (line,) = {line for line in run.output.splitlines() if line.startswith("longca: error: ")}
    assert "results/tiny/documents/auto/64/0.json" in line
    assert "documents are not what lengths and seed draw" in line
    assert not workspace.result("masks/auto/causal_document/64/0.json").exists()


def test_a_bad_line_of_a_corpus_makes_no_lengths(fresh: Workspace) -> None:
    corpus = fresh.folder / "corpus.jsonl"
    corpus.write_text('{"text": "one document"}\n{"text": "cut off\n')
    own = {"own": {"layout": "text", "files": ["corpus.jsonl"]}}
    dense = {**TINY["dense"], "patterns": ["causal_document"], "datasets": ["own"]}
    fresh.write_study({**TINY, "datasets": own, "dense": dense})
    run = fresh.run("masks")
    assert run.code != 0
    assert "longca: error: corpus.jsonl: line 2: no valid JSON" in run.output
    left = [path.name for path in fresh.result(".").rglob("*") if path.is_file()]
    assert left == ["own.log"]
    corpus.write_text('{"text": "one document"}\n')
    assert fresh.succeed("masks").jobs["lengths"] == 1
    corpus.write_text('{"text": "one document"}\n{"text": "and another, longer one"}\n')
    assert fresh.succeed("masks", "-n").jobs["lengths"] == 1


def test_a_corpus_without_files_stops_before_any_job(fresh: Workspace) -> None:
    own = {"own": {"layout": "text", "files": ["nowhere/*.jsonl"]}}
    dense = {**TINY["dense"], "patterns": ["causal_document"], "datasets": ["own"]}
    fresh.write_study({**TINY, "datasets": own, "dense": dense})
    run = fresh.run("masks")
    assert run.code != 0
    assert "tiny.yaml: datasets.own.files: 'nowhere/*.jsonl' matches no file" in run.output
    assert not (fresh.folder / "results").exists()


@pytest.mark.parametrize("name", ["a{{x,y}}.jsonl", "{dataset}/b.jsonl"])
def test_a_corpus_path_that_snakemake_cannot_say_is_refused(fresh: Workspace, name: str) -> None:
    file = fresh.folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text('{"text": "one document"}\n')
    own = {"own": {"layout": "text", "files": [name]}}
    dense = {**TINY["dense"], "patterns": ["causal_document"], "datasets": ["own"]}
    fresh.write_study({**TINY, "datasets": own, "dense": dense})
    run = fresh.run("masks", "-n")
    assert run.code != 0
    assert f"tiny.yaml: datasets.own.files: {name} has a name in braces" in run.output
    assert "WildcardError" not in run.output


def test_braces_that_are_no_wildcard_are_read(fresh: Workspace) -> None:
    (fresh.folder / "a {} {b c}.jsonl").write_text('{"text": "one document"}\n')
    own = {"own": {"layout": "text", "files": ["a {} *.jsonl"]}}
    dense = {**TINY["dense"], "patterns": ["causal_document"], "datasets": ["own"], "seqlens": [64]}
    fresh.write_study({**TINY, "datasets": own, "dense": dense})
    assert fresh.succeed("masks").jobs["lengths"] == 1
