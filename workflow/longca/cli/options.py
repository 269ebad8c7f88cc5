"""Options that several commands have, how they are read, and how one that means nothing is refused."""

from collections.abc import Mapping
from typing import Annotated

import typer

from longca.errors import LongcaError
from longca.units import parse_tokens


def _seqlen(text: str) -> int:
    try:
        return parse_tokens(text)
    except ValueError as error:
        raise LongcaError(f"--seqlen: {error}") from None


Seqlen = Annotated[
    int, typer.Option(parser=_seqlen, metavar="TOKENS", help="Tokens of the sequence, as 2048 or 8k.")
]


def refuse_given(options: Mapping[str, object], why: str) -> None:
    """Raise LongcaError for the first of these options that is given, where it would count for nothing.

    options: by name, with its value, which is None (or, of a repeatable one, an empty list) where it is not given.
    """
    for option, value in options.items():
        if value not in (None, []):
            raise LongcaError(f"{option}: {why}")
