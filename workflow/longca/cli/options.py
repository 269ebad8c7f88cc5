"""Options that several commands have, and how they are read."""

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
