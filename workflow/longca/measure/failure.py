"""What an error means: the outcome of a case that raised."""

import torch

from longca.kernels.interface import FallbackError, UnsupportedError
from longca.measure.protocol import Outcome


def outcome_of(error: Exception) -> Outcome:
    """unsupported, fallback, out_of_memory or, whatever else a library raises, crashed; with the reason in one line."""
    reason = " ".join(str(error).split())[:500] or type(error).__name__
    if isinstance(error, UnsupportedError):
        return Outcome(status="unsupported", reason=reason)
    if isinstance(error, FallbackError):
        return Outcome(status="fallback", reason=reason)
    if is_out_of_memory(error):
        return Outcome(status="out_of_memory", reason=reason)
    return Outcome(status="crashed", reason=f"{type(error).__name__}: {reason}")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out; torch's CPU allocator says so in a plain RuntimeError."""
    known = isinstance(error, torch.OutOfMemoryError | MemoryError)
    return known or "can't allocate memory" in str(error)
