"""The documents a mask was drawn with, held against the file they were drawn to before."""

import json
from pathlib import Path

from longca.errors import LongcaError
from longca.masks.mask.mask import Mask


def check_documents_file(mask: Mask, path: Path) -> None:
    """Refuse a mask whose documents are not those of the file.

    A pattern's own draws follow its documents in one random stream, so documents are replayed and not read.

    Raises:
        LongcaError: one line with the file and the key that differs.
    """
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise LongcaError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise LongcaError(f"{path}: is no JSON: {error}") from error
    if not isinstance(content, dict):
        raise LongcaError(f"{path}: must be a JSON object")
    for key in ("dataset", "seqlen", "seed", "sample"):
        found, right = content.get(key), getattr(mask, key)
        if found != right:
            raise LongcaError(
                f"{path}: documents file does not match: {key} is {found!r}, the mask's is {right!r}"
            )
    if content.get("documents") != list(mask.documents or ()):
        raise LongcaError(
            f"{path}: documents file does not match: documents are not what lengths and seed draw"
        )
