"""The twelve static patterns against their rules and the reference figures."""

import pytest
from hypothesis import given, settings
from masks_strategy import cells, masks, predicate

from longca.masks.mask import draw_mask
from longca.masks.patterns import DYNAMIC_PATTERNS, PATTERNS
from longca.masks.slices import area, validate_slices

# (pattern, seqlen, cells kept) with seed 42, sample 0, dataset auto.
GOLDEN = [
    ("full", 8192, 8192 * 8192),
    ("causal", 8192, 8192 * 8193 // 2),
    ("full_document", 8192, 15108732),
    ("full_document", 16384, 29567096),
    ("full_document", 32768, 42185234),
    ("full_document", 49152, 67918544),
    ("full_document", 65536, 269957288),
    ("causal_document", 8192, 7558462),
    ("causal_document", 16384, 14791740),
    ("causal_document", 32768, 21109001),
    ("causal_document", 49152, 33983848),
    ("causal_document", 65536, 135011412),
    ("full_sliding_window", 8192, 15735808),
    ("full_sliding_window", 49152, 99662848),
    ("causal_sliding_window", 8192, 7872000),
    ("causal_sliding_window", 49152, 49856000),
    ("shared_question", 8192, 10325629),
    ("shared_question", 49152, 60474663),
    ("global_sliding", 8192, 29366272),
    ("global_sliding", 49152, 197179392),
    ("causal_blockwise", 8192, 8271614),
    ("causal_blockwise", 49152, 141074943),
    ("prefix_lm_causal", 8192, 35222928),
    ("prefix_lm_document", 8192, 7849026),
    ("block_causal_document", 8192, 19922944),
]


@pytest.mark.parametrize(("pattern", "seqlen", "kept"), GOLDEN)
def test_area_is_the_reference_figure(pattern, seqlen, kept):
    assert draw_mask(pattern, seqlen).area == kept


@pytest.mark.parametrize(
    ("seqlen", "documents"), [(8192, 17), (16384, 25), (32768, 59), (49152, 77), (65536, 80)]
)
def test_documents_are_as_many_as_the_reference_says(seqlen, documents):
    assert len(draw_mask("causal_document", seqlen).documents) == documents


def test_own_draws_are_the_reference_ones():
    assert draw_mask("prefix_lm_causal", 8192).parameters == {"prefix": 1825}
    assert draw_mask("prefix_lm_document", 8192).parameters == {"prefix": 236}
    assert draw_mask("block_causal_document", 8192).documents == (2 * 1024, 1024, 5 * 1024)


def test_long_sample_is_the_reference_one():
    mask = draw_mask("full_document", 65536, context_parallel=True)
    assert len(mask.documents) == 52
    assert mask.documents[:6] == (134, 88, 173, 285, 145, 825)
    assert mask.area == 809184696
    assert mask == draw_mask("full_document", 65536, "auto", context_parallel=True)
    assert mask.slices == draw_mask("full_document", 65536, "prolong512k_long").slices


def test_all_patterns_have_figures():
    assert {pattern for pattern, _, _ in GOLDEN} == set(PATTERNS)
    assert len(PATTERNS) == 12
    assert not set(PATTERNS) & set(DYNAMIC_PATTERNS)


@settings(deadline=None)
@given(masks())
def test_slices_keep_what_the_rule_says(mask):
    kept = predicate(mask)
    validate_slices(mask.slices, mask.seqlen, mask.seqlen)
    assert (cells(mask.slices, mask.seqlen, mask.seqlen) == kept).all()
    assert mask.area == area(mask.slices) == kept.sum()


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("seqlen", [1, 2, 137, 300])
def test_drawn_masks_keep_what_the_rule_says(pattern, seqlen):
    for sample in range(3):
        mask = draw_mask(pattern, seqlen, sample=sample, parameters=_small(pattern))
        assert (cells(mask.slices, seqlen, seqlen) == predicate(mask)).all()
        if mask.documents is not None:
            assert sum(mask.documents) == seqlen and min(mask.documents) >= 1


@pytest.mark.parametrize("window", [1023, 1024, 1025])
def test_a_window_that_reaches_the_end_is_the_mask_without_one(window):
    for seqlen in (window, window + 1):
        windowed = draw_mask("causal_sliding_window", seqlen, parameters={"window": window})
        assert windowed.digest == draw_mask("causal", seqlen).digest
        around = draw_mask("full_sliding_window", seqlen, parameters={"window": window})
        assert around.digest == draw_mask("full", seqlen).digest
    seqlen = window + 2  # the first query is out of the last one's window, and the last key of the first's
    windowed = draw_mask("causal_sliding_window", seqlen, parameters={"window": window})
    assert windowed.area == draw_mask("causal", seqlen).area - 1
    around = draw_mask("full_sliding_window", seqlen, parameters={"window": window})
    assert around.area == seqlen**2 - 2


def test_global_tokens_that_reach_the_end_make_a_full_mask():
    for count in (137, 138):
        mask = draw_mask("global_sliding", 137, parameters={"window": 0, "global_tokens": count})
        assert mask.digest == draw_mask("full", 137).digest


def test_block_of_one_token_is_causal_and_a_block_of_all_is_full():
    documents = [3, 1, 5]
    for block, other in ((1, "causal_document"), (5, "full_document")):
        mask = draw_mask("block_causal_document", 9, documents=documents, parameters={"block": block})
        assert mask.digest == draw_mask(other, 9, documents=documents).digest


def test_prefix_of_nothing_is_causal_and_a_prefix_of_all_is_full():
    for prefix, other in ((0, "causal"), (9, "full"), (10, "full")):
        mask = draw_mask("prefix_lm_causal", 9, parameters={"prefix": prefix})
        assert mask.digest == draw_mask(other, 9).digest


def test_block_causal_documents_are_cut_to_a_length_that_is_no_multiple_of_the_block():
    mask = draw_mask("block_causal_document", 1025, parameters={"block": 128})
    assert sum(mask.documents) == 1025
    assert [length % 128 for length in mask.documents] == [0] * (len(mask.documents) - 1) + [1]
    assert all(length <= 8 * 128 for length in mask.documents)


def _small(pattern):
    sizes = {"window": 16, "global_tokens": 5, "block": 16}
    return {name: sizes[name] for name in PATTERNS[pattern].parameters if name in sizes}
