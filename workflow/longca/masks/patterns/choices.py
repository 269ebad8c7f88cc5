"""What a user may ask of a pattern, checked: its name, its parameters, its documents."""

from collections.abc import Mapping, Sequence

from longca.errors import LongcaError
from longca.masks.patterns import DEFAULT_PARAMETERS, DYNAMIC_PATTERNS, PATTERNS, SMALLEST_PARAMETER, Pattern
from longca.names import unknown_name


def find_pattern(name: str) -> Pattern:
    """The static pattern of this name.

    Raises:
        LongcaError: with the nearest name that exists.
    """
    if name in PATTERNS:
        return PATTERNS[name]
    if name in DYNAMIC_PATTERNS:
        raise LongcaError(
            f"pattern {name}: is dynamic, a block map of its own; draw it with `longca blocks {name}`"
        )
    raise LongcaError(unknown_name(name, PATTERNS, "pattern"))


def check_parameters(pattern: Pattern, given: Mapping[str, int]) -> None:
    """Refuse parameters the pattern does not take, and values it cannot take."""
    for name, value in given.items():
        if name not in pattern.parameters:
            raise LongcaError(unknown_name(name, pattern.parameters, f"parameter of {pattern.name}"))
        if value < SMALLEST_PARAMETER[name]:
            raise LongcaError(f"parameter {name}={value}: must be at least {SMALLEST_PARAMETER[name]}")


def complete_parameters(pattern: Pattern, given: Mapping[str, int]) -> dict[str, int]:
    """The pattern's defaults with the given values over them; a prefix not given is left to be drawn."""
    check_parameters(pattern, given)
    defaults = {name: DEFAULT_PARAMETERS[name] for name in pattern.parameters if name in DEFAULT_PARAMETERS}
    return {**defaults, **given}


def check_documents(pattern: Pattern, documents: Sequence[int], seqlen: int) -> None:
    """Refuse documents the pattern is not made of, or that do not fill the sequence. Empty ones are legal."""
    if not pattern.has_documents:
        raise LongcaError(f"documents: {pattern.name} is not made of documents")
    if min(documents, default=0) < 0:
        raise LongcaError(f"documents: one has {min(documents)} tokens; must be 0 or more")
    if sum(documents) != seqlen:
        raise LongcaError(f"documents: add up to {sum(documents)} tokens; must add up to seqlen {seqlen}")
