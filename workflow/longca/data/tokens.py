"""Counting tokens with a BPE whose vocabulary ships inside an installed package; nothing is downloaded."""

import base64
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import resources

# One text is encoded in pieces of about this many characters: it bounds the memory of a huge document, and
# keeps a run of a million spaces from overflowing the stack of the tokeniser's regular expression.
PIECE_CHARACTERS = 100_000
# After a letter or digit that white space or plain punctuation follows, every GPT-like pre-tokeniser starts a
# new word.
WORD_END = re.compile(r"[^\W_](?=[\s.,;:!?()。，、])")


@cache
def load_tokenizer(name: str) -> Callable[[str], list[int]]:
    """The function that turns text into token ids, special tokens neither added nor recognised.

    `name` is one of TOKENIZERS. Loading takes about half a second and 120 MiB at its peak, then it is kept.
    """
    return TOKENIZERS[name]()


def count_tokens(encode: Callable[[str], list[int]], text: str) -> int:
    """Tokens of `text`, encoded piece by piece."""
    return sum(len(encode(piece)) for piece in pieces(text))


def pieces(text: str, size: int = PIECE_CHARACTERS) -> Iterator[str]:
    """Cut `text` into pieces of `size` to 2 * `size` characters at word ends, so that tokens add up exactly.

    Only where `size` characters in a row hold no word end (a run of spaces, one giant word) is a piece cut
    anywhere, which can add a token or two a cut.
    """
    start = 0
    while len(text) - start > size:
        found = WORD_END.search(text, start + size - 1, start + 2 * size)
        end = found.end() if found else min(start + 2 * size, len(text))
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


def _load_tekken() -> Callable[[str], list[int]]:
    """Mistral's Tekken (131,072 entries, Apache-2.0), from the vocabulary file that mistral-common ships."""
    import tiktoken

    # The data file alone: importing the package's own tokeniser class would bring in a network client and
    # image codecs.
    file = resources.files("mistral_common").joinpath("data/tekken_240911.json")
    model = json.loads(file.read_bytes())
    config = model["config"]
    ordinary = config["default_vocab_size"] - config["default_num_special_tokens"]
    encoding = tiktoken.Encoding(
        name="tekken",
        pat_str=config["pattern"],
        mergeable_ranks={
            base64.b64decode(entry["token_bytes"]): entry["rank"] for entry in model["vocab"][:ordinary]
        },
        special_tokens={},
    )
    return encoding.encode_ordinary


TOKENIZERS: dict[str, Callable[[], Callable[[str], list[int]]]] = {"tekken": _load_tekken}
