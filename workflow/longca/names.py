"""Choosing a name out of a known set, with the message a user needs when it is not there."""

import difflib
from collections.abc import Iterable


def unknown_name(value: object, allowed: Iterable[str], what: str) -> str:
    """The sentence for a `value` that is not among `allowed`: the nearest name first, then all of them."""
    names = sorted(allowed)
    near = difflib.get_close_matches(str(value), names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{value!r} is not a {what}; {hint}allowed: {', '.join(names) or 'none'}"
