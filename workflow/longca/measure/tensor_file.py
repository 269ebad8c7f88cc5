"""Tensors in a file as they lie in memory, through a page-locked buffer: both ways as fast as the file system copies.

Shapes and dtypes do not stand in it: who reads knows them.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile

import torch

# Copied at a time: large for a bus, small for page-locked memory.
_PIECE_BYTES = 16 << 20


def write_tensors(file: Path, tensors: Sequence[torch.Tensor], within_s: float) -> bool:
    """Write tensors one after another, aside and then renamed; whether that was done.

    Given up, without a trace, as soon as the pieces written say that the whole would take longer than `within_s`.
    """
    size = sum(tensor.nbytes for tensor in tensors)
    buffer = _buffer(tensors[0].device)
    start, written = time.perf_counter(), 0
    # Others may be writing the same file: each aside by itself, and whoever is last leaves it.
    with NamedTemporaryFile(dir=file.parent, suffix=".part", delete=False) as out:
        for piece in _pieces(tensors):
            part = buffer[: len(piece)]
            part.copy_(piece)
            out.write(part.numpy().data)
            written += len(piece)
            worth = (time.perf_counter() - start) * size / written <= within_s
            if not worth:
                break
    aside = Path(out.name)
    if worth:
        aside.rename(file)
    else:
        aside.unlink()
    return worth


def read_tensors(file: Path, tensors: Sequence[torch.Tensor]) -> None:
    """Fill contiguous tensors from what `write_tensors` wrote. Raises OSError where the file is of another size."""
    size = sum(tensor.nbytes for tensor in tensors)
    if file.stat().st_size != size:
        raise OSError(f"{file} has {file.stat().st_size} bytes, right: {size}")
    buffer = _buffer(tensors[0].device)
    with file.open("rb") as source:
        for piece in _pieces(tensors):
            part = buffer[: len(piece)]
            source.readinto(part.numpy().data)
            piece.copy_(part)


def _buffer(device: torch.device) -> torch.Tensor:
    return torch.empty(_PIECE_BYTES, dtype=torch.uint8, pin_memory=device.type == "cuda")


def _pieces(tensors: Sequence[torch.Tensor]) -> Iterator[torch.Tensor]:
    """Views of the tensors' bytes, in order."""
    for tensor in tensors:
        yield from tensor.view(-1).view(torch.uint8).split(_PIECE_BYTES)
