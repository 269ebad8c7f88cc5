"""Which tiles to skip and which to leave unmasked, from the extrema of the column vectors alone.

Source: FlashMask (arXiv 2410.01359), section 4.2: a tile whose rows lie within [greatest start, least end) of its keys
is hidden whole; one whose rows lie before the least start or after the greatest end is kept whole.
"""

# ruff: noqa: N803
# mypy: ignore-errors
import triton
import triton.language as tl


@triton.jit
def classify(extrema, blocks, block, row0, row1):
    """Whether rows [row0, row1) of a key block are kept in part at least, and whether they are kept whole.

    Either `block` is a vector (one tile of rows, many key blocks) or the rows are (one key block, many tiles).
    extrema int32 [8, blocks]: least and greatest LTS, LTE, UTS, UTE of each block of keys.
    """
    lts_least, lts_most = tl.load(extrema + block), tl.load(extrema + blocks + block)
    lte_least, lte_most = tl.load(extrema + 2 * blocks + block), tl.load(extrema + 3 * blocks + block)
    uts_least, uts_most = tl.load(extrema + 4 * blocks + block), tl.load(extrema + 5 * blocks + block)
    ute_least, ute_most = tl.load(extrema + 6 * blocks + block), tl.load(extrema + 7 * blocks + block)
    hidden_below = (row0 >= lts_most) & (row1 <= lte_least)
    hidden_above = (row0 >= uts_most) & (row1 <= ute_least)
    whole_below = (row1 <= lts_least) | (row0 >= lte_most)
    whole_above = (row1 <= uts_least) | (row0 >= ute_most)
    return (hidden_below | hidden_above) == 0, whole_below & whole_above


@triton.jit
def pack(flags, lanes):
    """Up to 64 flags as the bits of one int64."""
    one = tl.full(lanes.shape, 1, tl.int64)
    return tl.sum(tl.where(flags, one << lanes.to(tl.int64), 0), 0)


@triton.jit
def lowest(bits):
    """The index of the lowest set bit: the exponent of that power of two as a float."""
    power = (bits & -bits).to(tl.float32)
    return ((power.to(tl.int32, bitcast=True) >> 23) & 255) - 127


@triton.jit
def load_columns(
    columns, width, column, CAUSAL: tl.constexpr, LOWER_END: tl.constexpr, UPPER_START: tl.constexpr
):
    """LTS, LTE, UTS, UTE of these keys, from int32 [4, width]. What the mask's form does not need is not read: its
    place holds LTS again."""
    lts = tl.load(columns + column)
    lte, uts, ute = lts, lts, lts
    if LOWER_END:
        lte = tl.load(columns + width + column)
    if UPPER_START:
        uts = tl.load(columns + 2 * width + column)
    if not CAUSAL:
        ute = tl.load(columns + 3 * width + column)
    return lts, lte, uts, ute


@triton.jit
def hide(
    scores, value, row, column, lts, lte, uts, ute,
    CAUSAL: tl.constexpr, LOWER_END: tl.constexpr, UPPER_START: tl.constexpr,
):  # fmt: skip
    """`value` where a query does not see a key; rows and the keys' vectors are shaped to broadcast to the scores.

    Without LOWER_END what is hidden below the diagonal reaches the last query, without UPPER_START what is hidden above
    it starts at the first; CAUSAL hides all of the upper triangle.
    """
    hidden = row >= lts
    if LOWER_END:
        hidden &= row < lte
    if CAUSAL:
        hidden |= row < column
    else:
        above = row < ute
        if UPPER_START:
            above &= row >= uts
        hidden |= above
    return tl.where(hidden, value, scores)


@triton.jit
def spans_kernel(extrema, spans, queries, blocks, ROWS: tl.constexpr, CHUNK: tl.constexpr):
    """spans int32 [tiles, 3]: the first and end key block each tile of ROWS queries sees a part of, and how many."""
    row0 = tl.program_id(0) * ROWS
    row1 = tl.minimum(row0 + ROWS, queries)
    first, end, count = blocks, 0, 0
    for base in range(0, blocks, CHUNK):
        block = base + tl.arange(0, CHUNK)
        kept, _ = classify(extrema, blocks, tl.minimum(block, blocks - 1), row0, row1)
        kept &= block < blocks
        first = tl.minimum(first, tl.min(tl.where(kept, block, blocks), 0))
        end = tl.maximum(end, tl.max(tl.where(kept, block + 1, 0), 0))
        count += tl.sum(kept.to(tl.int32), 0)
    line = spans + tl.program_id(0) * 3
    tl.store(line, first)
    tl.store(line + 1, end)
    tl.store(line + 2, count)


@triton.jit
def transposed_spans_kernel(extrema, spans, queries, tiles, blocks, ROWS: tl.constexpr, CHUNK: tl.constexpr):
    """The same for each key block: the first and end tile of ROWS queries that sees a part of it, and how many."""
    first, end, count = tiles, 0, 0
    for base in range(0, tiles, CHUNK):
        tile = base + tl.arange(0, CHUNK)
        row1 = tl.minimum((tile + 1) * ROWS, queries)
        kept, _ = classify(extrema, blocks, tl.program_id(0), tile * ROWS, row1)
        kept &= tile < tiles
        first = tl.minimum(first, tl.min(tl.where(kept, tile, tiles), 0))
        end = tl.maximum(end, tl.max(tl.where(kept, tile + 1, 0), 0))
        count += tl.sum(kept.to(tl.int32), 0)
    line = spans + tl.program_id(0) * 3
    tl.store(line, first)
    tl.store(line + 1, end)
    tl.store(line + 2, count)
