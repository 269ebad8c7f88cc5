"""Numbers with units, as people write them in a config or a command: 48k tokens, 8m of time, 64-8 heads."""

import re
from typing import NamedTuple

_TOKENS = {"": 1, "k": 1024, "M": 1024 * 1024}
_SECONDS = {"s": 1, "m": 60, "h": 3600}


def parse_tokens(value: object) -> int:
    """Tokens as a whole number or with a binary unit: 2048, '48k' (49152), '1M'. Raises ValueError."""
    match = re.fullmatch(r"([0-9]+)([a-zA-Z]*)", str(value)) if not isinstance(value, bool | float) else None
    if match is None or match[2] not in _TOKENS or int(match[1]) == 0:
        raise ValueError(
            f"{value!r} is no number of tokens; allowed: a whole number above 0, or with k or M, as 48k"
        )
    return int(match[1]) * _TOKENS[match[2]]


def parse_duration(value: object) -> float:
    """A duration in seconds from '90s', '8m' or '2h'. Raises ValueError."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([a-zA-Z]*)", str(value))
    if match is None or match[2] not in _SECONDS or float(match[1]) == 0:
        raise ValueError(
            f"{value!r} is no duration; allowed: a number above 0 with s, m or h, as 90s, 8m, 2h"
        )
    return float(match[1]) * _SECONDS[match[2]]


class Heads(NamedTuple):
    """Query heads and key-value heads of one attention, written `64-8`."""

    query: int
    kv: int

    def __str__(self) -> str:
        return f"{self.query}-{self.kv}"


def parse_heads(value: object) -> Heads:
    """Heads from '64-8': query heads, key-value heads, the second dividing the first. Raises ValueError."""
    if isinstance(value, Heads):
        return value
    match = re.fullmatch(r"([1-9][0-9]*)-([1-9][0-9]*)", str(value))
    if match is None:
        raise ValueError(f"{value!r} is no pair of heads; allowed: query heads - key-value heads, as 64-8")
    heads = Heads(int(match[1]), int(match[2]))
    if heads.query % heads.kv:
        raise ValueError(
            f"{value!r}: the {heads.kv} key-value heads do not divide the {heads.query} query heads"
        )
    return heads
