"""Block maps against an independent loop, and their files."""

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from masks_strategy import cells

from longca.errors import LongcaError
from longca.masks.blocks import draw_block_map, load_block_map, save_block_map
from longca.masks.blocks.drawing import _highest
from longca.masks.slices import area, validate_slices

UNIFORM = [[2, 5], [3, 5], [6, 7], [0, 7], [5, 7], [1, 4], [4, 7], [4, 7]]
VARIABLE_ROWS = [265, 997, 311, 475]
VARIABLE_COLUMNS = [793, 137, 773, 345]


def by_hand(pattern, seqlen, block, density, kv_heads, seed, sample):
    """Sizes and kept blocks as the reference words them: one number, one row, one head at a time."""
    rng = np.random.Generator(np.random.PCG64(seed + sample))
    rows, columns = [], []
    for _ in range(kv_heads):
        for sizes in (rows, columns):
            if pattern == "uniform_block":
                blocks = [block] * (seqlen // block) + ([seqlen % block] if seqlen % block else [])
            else:
                blocks, spare = [seqlen], seqlen - 128 * (seqlen // block)
                if seqlen // block > 1:
                    cuts = sorted(rng.integers(0, spare, seqlen // block - 1, endpoint=True).tolist())
                    blocks = [end - first + 128 for first, end in pairwise([0, *cuts, spare])]
            sizes.append(blocks)
    kept = []
    for head in range(kv_heads):
        lines = []
        for row in rng.random((len(rows[head]), len(columns[head]))).tolist():
            best = sorted(range(len(row)), key=lambda j: (-row[j], j))[: max(1, int(density * len(row)))]
            lines.append([j in set(best) for j in range(len(row))])
        kept.append(lines)
    return rows, columns, kept


@pytest.mark.parametrize(
    ("pattern", "seqlen", "block", "density", "kv_heads", "sample"),
    [
        ("uniform_block", 1024, 64, 0.25, 2, 0),
        ("uniform_block", 1025, 64, 0.5, 3, 1),
        ("uniform_block", 1000, 128, 0.01, 1, 0),
        ("uniform_block", 100, 128, 1.0, 2, 0),
        ("uniform_block", 1, 64, 0.3, 1, 0),
        ("variable_block", 2048, 128, 0.25, 2, 0),
        ("variable_block", 4096, 256, 0.3, 2, 5),
        ("variable_block", 5001, 512, 0.5, 3, 2),
        ("variable_block", 300, 512, 0.5, 2, 0),
        ("variable_block", 7, 128, 0.5, 1, 0),
    ],
)
def test_maps_are_those_of_the_reference(pattern, seqlen, block, density, kv_heads, sample):
    drawn = draw_block_map(pattern, seqlen, block, density, kv_heads, seed=42, sample=sample)
    rows, columns, kept = by_hand(pattern, seqlen, block, density, kv_heads, 42, sample)
    assert drawn.row_sizes.tolist() == rows
    assert drawn.column_sizes.tolist() == columns
    assert drawn.kept.tolist() == kept
    cells_kept = [
        sum(r * c for r, line in zip(row, lines, strict=True) for c, k in zip(column, line, strict=True) if k)
        for row, column, lines in zip(rows, columns, kept, strict=True)
    ]
    assert drawn.area == sum(cells_kept) / kv_heads
    assert drawn.density == drawn.area / seqlen**2
    for head in range(kv_heads):
        slices = drawn.slices(head)
        validate_slices(slices, seqlen, seqlen)
        assert area(slices) == cells_kept[head]
        whole = np.repeat(np.repeat(np.array(kept[head]), rows[head], 0), columns[head], 1)
        assert (cells(slices, seqlen, seqlen) == whole).all()


def test_maps_stay_what_they_were():
    """numpy's stream and what is made of it: a change here changes every figure measured before."""
    uniform = draw_block_map("uniform_block", 1024, 128, 0.25, 1)
    assert [np.flatnonzero(row).tolist() for row in uniform.kept[0]] == UNIFORM
    variable = draw_block_map("variable_block", 2048, 512, 0.5, 1)
    assert variable.row_sizes.tolist() == [VARIABLE_ROWS]
    assert variable.column_sizes.tolist() == [VARIABLE_COLUMNS]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 3), min_size=6, max_size=6), min_size=1, max_size=4), st.integers(1, 6)
)
def test_ties_go_to_the_lower_index(scores, count):
    kept = _highest(np.array(scores, float), count)
    for row, line in zip(scores, kept, strict=True):
        assert np.flatnonzero(line).tolist() == sorted(sorted(range(6), key=lambda j: (-row[j], j))[:count])


def test_samples_and_heads_differ_and_digests_tell_them_apart():
    maps = [draw_block_map("uniform_block", 4096, 64, 0.25, 2, sample=sample) for sample in (0, 1)]
    assert maps[0].digest != maps[1].digest
    assert (maps[0].kept[0] != maps[0].kept[1]).any()
    assert maps[1].digest == draw_block_map("uniform_block", 4096, 64, 0.25, 2, seed=43).digest


def test_maps_of_the_longest_sequences_are_made_of_blocks_not_cells():
    drawn = draw_block_map("uniform_block", 131072, 64, 0.25, 8)
    assert drawn.kept.shape == (8, 2048, 2048)
    assert (drawn.kept.sum(2) == 512).all()
    assert drawn.density == 0.25


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"pattern": "uniform_blok"},
            "'uniform_blok' is not a dynamic pattern; did you mean 'uniform_block'",
        ),
        ({"pattern": "causal"}, "'causal' is not a dynamic pattern; allowed: uniform_block, variable_block"),
        ({"seqlen": 0}, "seqlen 0: must be at least 1"),
        ({"block": 0}, "block 0: must be at least 1"),
        ({"pattern": "variable_block", "block": 127}, "block 127: must be at least 128 for variable_block"),
        ({"density": 0.0}, "density 0.0: must be above 0 and at most 1"),
        ({"density": 1.5}, "density 1.5: must be above 0 and at most 1"),
        ({"density": float("nan")}, "density nan: must be above 0 and at most 1"),
        ({"kv_heads": 0}, "kv_heads 0: must be at least 1"),
        ({"sample": -1}, "sample -1: must be at least 0"),
    ],
)
def test_what_no_map_can_take_is_refused(arguments, message):
    good = {"pattern": "uniform_block", "seqlen": 512, "block": 64, "density": 0.5, "kv_heads": 1}
    with pytest.raises(LongcaError, match=message):
        draw_block_map(**{**good, **arguments})


@pytest.mark.parametrize(("pattern", "block"), [("uniform_block", 64), ("variable_block", 256)])
def test_file_gives_back_the_map(pattern, block, tmp_path):
    drawn = draw_block_map(pattern, 2049, block, 0.3, 3, sample=2)
    path = tmp_path / "folder" / "2.npz"
    save_block_map(drawn, path)
    read = load_block_map(path)
    for name in (
        "pattern",
        "seqlen",
        "block",
        "density_nominal",
        "kv_heads",
        "seed",
        "sample",
        "digest",
        "area",
    ):
        assert getattr(read, name) == getattr(drawn, name)
    assert read.kept.dtype == bool and (read.kept == drawn.kept).all()
    assert (read.row_sizes == drawn.row_sizes).all() and (read.column_sizes == drawn.column_sizes).all()
    before = path.read_bytes()
    save_block_map(drawn, path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["2.npz"]


def _arrays(path):
    with np.load(path) as archive:
        return dict(archive)


def _flip(arrays):
    arrays["kept"][0, 3, 0] ^= 0b10000000


def _grow(arrays):
    arrays["row_sizes"][0, 0] += 1


def _shrink(arrays):
    arrays["row_sizes"][0, :2] += (-64, 64)


def _reheader(arrays):
    arrays["header"] = np.frombuffer(
        arrays["header"].tobytes().replace(b'"seed": 42', b'"seed": "x"'), np.uint8
    )


def _lose(arrays):
    del arrays["column_sizes"]


def _reshape(arrays):
    arrays["kept"] = arrays["kept"][:, :-1]


def _pickle(arrays):
    arrays["kept"] = np.array([{"a": 1}], object)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (_flip, "kept: head 0, row 3 keeps . blocks; must keep 2"),
        (_grow, "row_sizes: must be positive and add up to seqlen 512"),
        (_shrink, "row_sizes: must be positive"),
        (_reheader, "header, key seed: should be a valid integer, found 'x'"),
        (_lose, "is no block map: .*column_sizes"),
        (_reshape, "kept: uint8"),
        (_pickle, "is no block map: "),
    ],
)
def test_file_edited_by_hand_is_refused(edit, message, tmp_path):
    path = tmp_path / "0.npz"
    save_block_map(draw_block_map("uniform_block", 512, 64, 0.25, 2), path)
    arrays = _arrays(path)
    edit(arrays)
    np.savez(path, **arrays)
    with pytest.raises(LongcaError, match=message) as caught:
        load_block_map(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_file_torn_or_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "0.npz"
    save_block_map(draw_block_map("uniform_block", 512, 64, 0.25, 2), path)
    whole = path.read_bytes()
    rng = random.Random(1)
    for content in (b"", b"{}", whole[: len(whole) // 2], whole[:-1], rng.randbytes(300)):
        path.write_bytes(content)
        with pytest.raises(LongcaError, match=f"^{path}: is no block map"):
            load_block_map(path)
    with pytest.raises(LongcaError, match=r"is no block map: .*No such file"):
        load_block_map(tmp_path / "1.npz")
