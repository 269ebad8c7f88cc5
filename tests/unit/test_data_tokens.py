"""Token counts: against the vocabulary's own library, and exact whatever the size of a text."""

from importlib import resources

import pytest
from data_corpora import TEXTS
from hypothesis import given, settings
from hypothesis import strategies as st

from longca.data.tokens import PIECE_CHARACTERS, count_tokens, load_tokenizer, pieces


@pytest.fixture(scope="module")
def reference():
    """Mistral's own tokeniser over the same file."""
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    with resources.as_file(resources.files("mistral_common") / "data" / "tekken_240911.json") as file:
        return Tekkenizer.from_file(file)


@pytest.mark.parametrize("text", [*TEXTS, "<s>[INST] control tokens are plain text </s>"])
def test_tokens_are_those_of_the_vocabularys_own_library(text: str, reference) -> None:
    encode = load_tokenizer("tekken")
    assert encode(text) == [
        token - reference.num_special_tokens for token in reference.encode(text, bos=False, eos=False)
    ]
    assert count_tokens(encode, text) == len(encode(text))


def test_no_token_in_no_text() -> None:
    assert count_tokens(load_tokenizer("tekken"), "") == 0


@settings(deadline=None)
@given(st.text(max_size=300), st.integers(1, 40))
def test_pieces_are_the_text(text: str, size: int) -> None:
    cut = list(pieces(text, size))
    assert "".join(cut) == text
    assert all(0 < len(piece) <= 2 * size for piece in cut)


ANYTHING = st.one_of(
    st.text(max_size=8), st.text(alphabet="abXYé東京α0٣Ⅷ\u0301_' \t\n\r.,-/。\u3000\x1c", max_size=8)
)
WORD_ENDS = st.tuples(
    st.sampled_from("aZé東αß09٣Ⅷ"), st.sampled_from(" \t\n\r.,;:!?()。，、\u3000\u2028\x1c")
).map("".join)


@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(ANYTHING, WORD_ENDS).map("".join), min_size=3, max_size=60).map("".join))
def test_tokens_of_pieces_add_up(text: str) -> None:
    # A word ends every ten characters at most, so each cut of pieces of twenty is at a word end.
    encode = load_tokenizer("tekken")
    cut = list(pieces(text, 20))
    assert all(len(piece) <= 31 for piece in cut)
    assert sum(len(encode(piece)) for piece in cut) == len(encode(text))


def test_a_long_text_counts_as_a_whole() -> None:
    encode = load_tokenizer("tekken")
    text = "".join(f"{text} {number}\n" for number in range(400) for text in TEXTS)
    assert len(text) > 10 * PIECE_CHARACTERS
    assert len(list(pieces(text))) > 5
    assert count_tokens(encode, text) == len(encode(text))


@pytest.mark.parametrize("character", [" ", "\n", "x", "1", "漢", "\u0301", "\0"])
def test_a_million_of_one_character_can_be_counted(character: str) -> None:
    encode = load_tokenizer("tekken")
    run = 1_000_000
    tokens = count_tokens(encode, f"start{character * run}end")
    # A token of this vocabulary is at most 128 characters long; no character makes more than its UTF-8 bytes.
    assert run / 128 <= tokens <= run * len(character.encode()) + 2


def test_lone_surrogates_count_like_replacement_characters() -> None:
    encode = load_tokenizer("tekken")
    assert count_tokens(encode, "a\ud800b") == count_tokens(encode, "a\ufffdb")
