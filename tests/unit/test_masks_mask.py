"""Drawing a mask, its file, and what a file edited by hand is told."""

import json
import random

import pytest
from hypothesis import given, settings
from masks_strategy import masks

from longca.data.histogram import Histogram, published_histogram
from longca.data.packing import sample_documents
from longca.errors import LongcaError
from longca.masks.mask import draw_mask, mask_to_json, read_mask
from longca.masks.patterns import PATTERNS

KEYS = ["pattern", "seqlen", "dataset", "seed", "sample", "documents", "parameters", "slices", "area"]


def test_sample_n_is_drawn_from_seed_plus_n():
    rng = random.Random(45)
    documents = sample_documents(rng, "pile", published_histogram("pile"), 4096)
    mask = draw_mask("prefix_lm_document", 4096, seed=42, sample=3)
    assert mask.documents == tuple(documents)
    assert mask.parameters == {"prefix": rng.randint(1, documents[0])}
    assert mask.slices == draw_mask("prefix_lm_document", 4096, seed=45).slices


def test_given_documents_take_no_draw():
    mask = draw_mask("prefix_lm_document", 100, documents=[60, 40])
    assert mask.parameters == {"prefix": random.Random(42).randint(1, 60)}


def test_given_histogram_replaces_the_published_one():
    tens = Histogram(bins=((10, 10),), weights=(1.0,), documents=(3,))
    assert draw_mask("full_document", 25, "corpus", tens).documents == (10, 10, 5)


@pytest.mark.parametrize(
    ("dataset", "seqlen"),
    [("pile", 12288), ("prolong64k", 12289), ("prolong64k", 65536), ("prolong512k", 65537)],
)
def test_dataset_auto_follows_the_length(dataset, seqlen):
    assert draw_mask("full_document", seqlen).slices == draw_mask("full_document", seqlen, dataset).slices


@pytest.mark.parametrize(
    ("pattern", "given", "complete"),
    [
        ("global_sliding", {}, {"window": 1024, "global_tokens": 1024}),
        ("global_sliding", {"window": 0}, {"window": 0, "global_tokens": 1024}),
        ("prefix_lm_causal", {"prefix": 4}, {"prefix": 4}),
        ("prefix_lm_causal", {}, {"prefix": random.Random(42).randint(1, 9)}),
    ],
)
def test_parameters_are_the_defaults_the_overrides_or_drawn(pattern, given, complete):
    assert draw_mask(pattern, 9, parameters=given).parameters == complete


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pattern": "casual"}, "'casual' is not a pattern; did you mean 'causal'. allowed: block_causal"),
        ({"pattern": "uniform_block"}, "pattern uniform_block: is dynamic"),
        ({"seqlen": 0}, "seqlen 0: must be at least 1"),
        ({"sample": -1}, "sample -1: must be 0 or more"),
        ({"dataset": "pile"}, "dataset 'pile': causal takes no sampled documents and exists under auto only"),
        ({"pattern": "block_causal_document", "dataset": "pile"}, "exists under auto only"),
        ({"pattern": "full_document", "dataset": "pille"}, "pille"),
        ({"documents": [4, 4]}, "documents: causal is not made of documents"),
        ({"histogram": published_histogram("pile")}, "lengths: causal takes no sampled documents"),
        ({"pattern": "full_document", "documents": [4, 5]}, "add up to 9 tokens; must add up to seqlen 8"),
        ({"pattern": "full_document", "documents": []}, "add up to 0 tokens; must add up to seqlen 8"),
        ({"pattern": "full_document", "documents": [9, -1]}, "one has -1 tokens"),
        ({"parameters": {"window": 3}}, "'window' is not a parameter of causal; allowed: none"),
        ({"pattern": "global_sliding", "parameters": {"windw": 3}}, "did you mean 'window'"),
        ({"pattern": "global_sliding", "parameters": {"window": -1}}, "window=-1: must be at least 0"),
        ({"pattern": "block_causal_document", "parameters": {"block": 0}}, "block=0: must be at least 1"),
    ],
)
def test_what_a_pattern_cannot_take_is_refused(arguments, message):
    with pytest.raises(LongcaError, match=message):
        draw_mask(**{"pattern": "causal", "seqlen": 8, **arguments})


@settings(max_examples=50, deadline=None)
@given(mask=masks())
def test_file_gives_back_the_mask(mask, tmp_path_factory):
    path = tmp_path_factory.mktemp("masks") / "0.json"
    path.write_text(mask_to_json(mask))
    assert read_mask(path) == mask
    assert read_mask(path).digest == mask.digest


@pytest.mark.parametrize("pattern", PATTERNS)
def test_file_has_the_agreed_keys(pattern):
    content = json.loads(mask_to_json(draw_mask(pattern, 300)))
    assert list(content) == KEYS
    assert content["area"] == draw_mask(pattern, 300).area
    assert bool(content["documents"]) == PATTERNS[pattern].has_documents
    assert list(content["parameters"]) == list(PATTERNS[pattern].parameters)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("pattern", "causal_documents", "did you mean 'causal_document'"),
        ("pattern", "shared_question", "key slices: 3 slices; shared_question builds 4 here"),
        ("seqlen", 11, "documents: add up to 12 tokens; must add up to seqlen 11"),
        ("seqlen", "12", "key seqlen: should be a valid integer, found '12'"),
        ("seqlen", 0, "key seqlen: "),
        ("sample", -1, "key sample: "),
        ("documents", [3, 4, 4, 1], "key slices: 3 slices; causal_document builds 4 here"),
        (
            "documents",
            [3, 5, 4],
            r"key slices\.1: \[3, 7, 3, 7, 'causal'\]; causal_document builds \[3, 8, 3, 8, 'causal'\]",
        ),
        ("documents", [3, 4, 5.5], r"key documents\.2: "),
        ("parameters", {"window": 3}, "'window' is not a parameter of causal_document; allowed: none"),
        ("slices", [[0, 3, 0, 3, "causal"]], "key slices: 1 slices; causal_document builds 3 here"),
        ("slices", [[0, 3, 0, 3, "casual"]], r"key slices\.0\.4: "),
        ("slices", [[0, 3, 0, 3]], r"key slices\.0\.4: missing"),
        ("area", 32, "key area: 32; the slices keep 31 cells"),
        ("extra", 1, "key extra: Extra inputs are not permitted, found 1"),
        ("seed", None, "key seed: "),
    ],
)
def test_file_edited_by_hand_is_refused_by_file_and_key(key, value, message, tmp_path):
    content = json.loads(mask_to_json(draw_mask("causal_document", 12, documents=[3, 4, 5])))
    content[key] = value
    path = tmp_path / "0.json"
    path.write_text(json.dumps(content))
    with pytest.raises(LongcaError, match=message) as caught:
        read_mask(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("key", KEYS)
def test_file_without_a_key_is_refused_by_its_name(key, tmp_path):
    content = json.loads(mask_to_json(draw_mask("causal", 12)))
    del content[key]
    path = tmp_path / "0.json"
    path.write_text(json.dumps(content))
    with pytest.raises(LongcaError, match=f"key {key}: missing"):
        read_mask(path)


def test_file_must_name_every_parameter(tmp_path):
    content = json.loads(mask_to_json(draw_mask("global_sliding", 12)))
    del content["parameters"]["window"]
    path = tmp_path / "0.json"
    path.write_text(json.dumps(content))
    with pytest.raises(LongcaError, match="key parameters: lacks window, which global_sliding takes"):
        read_mask(path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"pattern": "causal"'])
def test_file_that_is_no_mask_is_refused(content, tmp_path):
    path = tmp_path / "0.json"
    path.write_bytes(content)
    with pytest.raises(LongcaError, match=f"^{path}: ") as caught:
        read_mask(path)
    assert "\n" not in str(caught.value)


def test_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(LongcaError, match="cannot be read: No such file"):
        read_mask(tmp_path / "0.json")
