"""What devices can do at most: figures a study keeps beside its records. Light: reporting reads them without torch."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from longca.errors import LongcaError
from longca.files import write_atomically


@dataclass(frozen=True)
class Ceilings:
    """Medians of a device: TFLOP/s of a matrix product of `dtype`, GB/s of a copy, bytes read and written counted."""

    device: str
    dtype: str
    matrix_product_tflops: float
    copy_gb_per_s: float


def ceilings_file(results: Path) -> Path:
    """Where a study's ceilings lie."""
    return results / "ceilings.json"


def keep_ceilings(results: Path, measured: Ceilings) -> Path:
    """Write a device's ceilings beside those of others; returns the file."""
    others = [
        one for one in read_ceilings(results) if (one.device, one.dtype) != (measured.device, measured.dtype)
    ]
    file = ceilings_file(results)
    write_atomically(file, json.dumps([asdict(one) for one in [*others, measured]], indent=1) + "\n")
    return file


def read_ceilings(results: Path) -> list[Ceilings]:
    """The ceilings of every device of a study; none where none were measured. Raises LongcaError for a bad file."""
    file = ceilings_file(results)
    if not file.exists():
        return []
    try:
        return [Ceilings(**entry) for entry in json.loads(file.read_text(encoding="utf-8"))]
    except (ValueError, TypeError) as error:
        raise LongcaError(
            f"{file}: holds no ceilings ({error}); right: as `longca ceilings` writes them"
        ) from error
