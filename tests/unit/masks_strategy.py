"""Random masks of every static pattern, with the lengths, documents and parameters that trip tools up."""

import numpy as np
from hypothesis import strategies as st

from longca.masks.mask import Mask, draw_mask
from longca.masks.patterns import PATTERNS, Tokens
from longca.masks.slices import TYPES, Slice

SEQLENS = st.one_of(st.integers(1, 40), st.sampled_from([63, 64, 65, 127, 128, 129, 137, 192, 257]))


@st.composite
def documents_of(draw, seqlen):
    """Lengths that add up to seqlen: some of 1 token, some of none."""
    cuts = draw(st.lists(st.integers(0, seqlen), max_size=8))
    cuts += [cut + 1 for cut in cuts[::2] if cut < seqlen]
    return np.diff(np.array(sorted(cuts), int), prepend=0, append=seqlen).tolist()


@st.composite
def masks(draw, patterns=tuple(PATTERNS), seqlens=SEQLENS):
    """A mask whose parameters lie around 0, the tile and the whole sequence."""
    pattern = PATTERNS[draw(st.sampled_from(patterns))]
    seqlen = draw(seqlens)
    sizes = st.one_of(st.integers(0, 3), st.integers(0, seqlen + 2), st.integers(seqlen - 1, seqlen + 1))
    parameters = {name: max(draw(sizes), int(name == "block")) for name in pattern.parameters}
    documents = draw(documents_of(seqlen)) if pattern.has_documents else None
    return draw_mask(pattern.name, seqlen, parameters=parameters, documents=documents)


def predicate(mask: Mask) -> np.ndarray:
    """The cells the pattern's own rule keeps, bool [seqlen, seqlen]: no slices involved."""
    i, j = np.arange(mask.seqlen)[:, None], np.arange(mask.seqlen)[None, :]
    tokens = Tokens(mask.documents or (mask.seqlen,))
    return np.broadcast_to(PATTERNS[mask.pattern].keeps(i, j, tokens, mask.parameters), (mask.seqlen,) * 2)


def cells(slices, queries, keys) -> np.ndarray:
    """The cells slices keep, bool [queries, keys], from the definition alone; a cell kept twice fails."""
    kept = np.zeros((queries, keys), int)
    for q0, q1, k0, k1, kind in slices:
        r, c = np.arange(q1 - q0)[:, None], np.arange(k1 - k0)
        shift = (k1 - k0) - (q1 - q0)
        kept[q0:q1, k0:k1] += {
            "full": (r >= 0) & (c >= 0),
            "causal": c <= r + shift,
            "inv_causal": c >= r,
            "bi_causal": (r <= c) & (c <= r + shift),
        }[kind]
    assert kept.max(initial=0) <= 1
    return kept.astype(bool)


@st.composite
def slice_lists(draw, most=14):
    """Slices that share no cell, queries and keys: rows may keep nothing, keys and queries differ."""
    queries, keys = draw(st.integers(1, most)), draw(st.integers(1, most))
    slices, taken = [], np.zeros((queries, keys), bool)
    for _ in range(draw(st.integers(0, 4))):
        q0, q1 = sorted(draw(st.lists(st.integers(0, queries), min_size=2, max_size=2)))
        k0, k1 = sorted(draw(st.lists(st.integers(0, keys), min_size=2, max_size=2)))
        piece = Slice(q0, q1, k0, k1, draw(st.sampled_from(TYPES)))
        kept = cells([piece], queries, keys)
        if not (kept & taken).any():
            slices.append(piece)
            taken |= kept
    return slices, queries, keys


@st.composite
def bands(draw, most=14):
    """Arguments of `band` and the size of the mask around them."""
    queries, keys = draw(st.integers(1, most)), draw(st.integers(1, most))
    q0, q1 = sorted(draw(st.lists(st.integers(0, queries), min_size=2, max_size=2)))
    k0, k1 = sorted(draw(st.lists(st.integers(0, keys), min_size=2, max_size=2)))
    bound = st.none() | st.integers(-most, most)
    return (q0, q1, k0, k1, draw(bound), draw(bound)), queries, keys
