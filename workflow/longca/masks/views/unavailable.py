"""What a view says of a mask it cannot express."""

from longca.errors import LongcaError


class ViewUnavailable(LongcaError):  # noqa: N818 -- a statement about the mask, not an error in it
    """The view has no form for this mask; the message says what stands in the way."""
