"""The file of a block map: .npz with packed bits, sizes and a line of JSON, read without pickle."""

import io
import json
import zipfile
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longca.errors import LongcaError
from longca.files import write_atomically
from longca.masks.blocks.block_map import BlockMap
from longca.masks.blocks.drawing import SMALLEST_VARIABLE_BLOCK
from longca.masks.problems import first_problem


class _Header(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    pattern: Literal["uniform_block", "variable_block"]
    seqlen: Annotated[int, Field(ge=1)]
    block: Annotated[int, Field(ge=1)]
    density_nominal: Annotated[float, Field(gt=0, le=1)]
    kv_heads: Annotated[int, Field(ge=1)]
    seed: int
    sample: Annotated[int, Field(ge=0)]


def save_block_map(block_map: BlockMap, path: Path) -> None:
    """Write the map in one rename; equal maps make equal files."""
    header = {name: getattr(block_map, name) for name in _Header.model_fields}
    content = io.BytesIO()
    np.savez_compressed(
        content,
        header=np.frombuffer(json.dumps(header).encode(), np.uint8),
        row_sizes=block_map.row_sizes.astype("<i8"),
        column_sizes=block_map.column_sizes.astype("<i8"),
        kept=np.packbits(block_map.kept, axis=2),
    )
    write_atomically(path, content.getvalue())


def load_block_map(path: Path) -> BlockMap:
    """Read a map and check that header, sizes and kept blocks fit together.

    Raises:
        LongcaError: one line with the file and what is wrong in it.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in ("header", "row_sizes", "column_sizes", "kept")}
        header = _Header.model_validate_json(arrays["header"].tobytes())
    except ValidationError as error:
        raise LongcaError(f"{path}: header, {first_problem(error)}") from error
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile) as error:
        raise LongcaError(f"{path}: is no block map: {error}") from error
    for name in ("row_sizes", "column_sizes"):
        _check_sizes(path, name, arrays[name], header)
    rows, columns = arrays["row_sizes"].shape[1], arrays["column_sizes"].shape[1]
    packed = arrays["kept"]
    if packed.dtype != np.uint8 or packed.shape != (header.kv_heads, rows, -(-columns // 8)):
        raise LongcaError(
            f"{path}: kept: {packed.dtype} {packed.shape} does not fit {rows} x {columns} blocks"
        )
    kept = np.unpackbits(packed, axis=2, count=columns).astype(bool)
    count = max(1, int(header.density_nominal * columns))
    wrong = np.argwhere(kept.sum(2) != count)
    if len(wrong):
        head, row = wrong[0].tolist()
        raise LongcaError(
            f"{path}: kept: head {head}, row {row} keeps {kept[head, row].sum()} blocks; must keep {count}"
        )
    return BlockMap(
        **header.model_dump(), row_sizes=arrays["row_sizes"], column_sizes=arrays["column_sizes"], kept=kept
    )


def _check_sizes(path: Path, name: str, sizes: np.ndarray, header: _Header) -> None:
    if sizes.dtype != np.int64 or sizes.ndim != 2 or len(sizes) != header.kv_heads or not sizes.shape[1]:
        raise LongcaError(
            f"{path}: {name}: {sizes.dtype} {sizes.shape}; must be int64 [{header.kv_heads}, blocks]"
        )
    if (sizes < 1).any() or (sizes.sum(1) != header.seqlen).any():
        raise LongcaError(
            f"{path}: {name}: must be positive and add up to seqlen {header.seqlen} for every head"
        )
    if header.pattern == "uniform_block" and (sizes[:, :-1] != header.block).any():
        raise LongcaError(f"{path}: {name}: must be {header.block} but for the last of each head")
    if header.pattern == "variable_block" and (sizes < min(SMALLEST_VARIABLE_BLOCK, header.seqlen)).any():
        raise LongcaError(f"{path}: {name}: must be at least {SMALLEST_VARIABLE_BLOCK}")
