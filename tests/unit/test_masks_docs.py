"""docs/masks.md says what the code does."""

import re

import pytest
from hypothesis import given, settings
from masks_strategy import masks

from longca.masks.mask import draw_mask
from longca.masks.patterns import DYNAMIC_PATTERNS, PATTERNS
from longca.masks.views.support import patterns_table


@pytest.fixture(scope="module")
def text(repository):
    return (repository / "docs/masks.md").read_text()


def test_table_is_what_longca_patterns_prints(text):
    assert re.search("<!-- longca patterns -->\n(.*)\n<!-- end -->", text, re.S)[1] == patterns_table()


@pytest.mark.parametrize("name", PATTERNS)
def test_every_pattern_has_its_sentence_rule_picture_and_area(name, text, repository):
    section = re.search(rf"### {name}\n(.*?)\n##", text, re.S)[1]
    assert PATTERNS[name].summary in section
    assert f"`{PATTERNS[name].rule}`" in section
    assert section.endswith(f"at 8192: {draw_mask(name, 8192).area}\n")
    assert f'src="masks/{name}.svg"' in section
    assert (repository / f"docs/masks/{name}.svg").read_text().startswith("<svg ")


@pytest.mark.parametrize("name", DYNAMIC_PATTERNS)
def test_every_dynamic_pattern_has_its_picture(name, text, repository):
    assert f'src="masks/{name}.svg"' in text
    assert (repository / f"docs/masks/{name}.svg").read_text().startswith("<svg ")


@settings(max_examples=300, deadline=None)
@given(masks())
def test_area_formulas_of_the_docs_hold(mask):
    s, lengths = mask.seqlen, mask.documents or (mask.seqlen,)
    w, g, p, block = (mask.parameters.get(name, 0) for name in ("window", "global_tokens", "prefix", "block"))
    g = min(g, s)
    causal = sum(length * (length + 1) // 2 for length in lengths)
    n = s - g

    def window(tokens: int) -> int:
        return tokens * (2 * w + 1) - w * (w + 1) if w < tokens else tokens**2

    blocks = [
        min(block, length - top) * min(top + block, length)
        for length in lengths
        for top in (range(0, length, block) if block else ())
    ]
    formulas = {
        "full": s**2,
        "causal": causal,
        "full_document": sum(length**2 for length in lengths),
        "causal_document": causal,
        "full_sliding_window": window(s),
        "causal_sliding_window": s * (w + 1) - w * (w + 1) // 2 if w < s else causal,
        "shared_question": causal + lengths[0] * (s - lengths[0]),
        "global_sliding": g * (2 * s - g) + window(n),
        "causal_blockwise": causal + lengths[-1] * (s - lengths[-1]),
        "prefix_lm_causal": causal + min(p, s) * (min(p, s) - 1) // 2,
        "prefix_lm_document": causal + sum(min(p, length) * (min(p, length) - 1) // 2 for length in lengths),
        "block_causal_document": sum(blocks),
    }
    assert mask.area == formulas[mask.pattern]
