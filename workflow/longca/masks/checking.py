"""What every mask is held to as it is drawn, so that a new pattern's mistake is found before it is measured."""

from longca.errors import LongcaError
from longca.masks.mask import Mask
from longca.masks.slices import validate_slices


def check_mask(mask: Mask) -> Mask:
    """The mask, its slices inside it and disjoint, and some cell kept: areas and so throughputs are then right.

    Raises LongcaError naming the pattern and what is wrong with its slices.
    """
    place = f"pattern {mask.pattern} at {mask.seqlen} tokens"
    try:
        validate_slices(mask.slices, mask.seqlen, mask.seqlen)
    except LongcaError as error:
        raise LongcaError(f"{place}: {error}") from None
    if not mask.area:
        raise LongcaError(f"{place}: keeps no cell; right: slices that keep one at least")
    return mask
