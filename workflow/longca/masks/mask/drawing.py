"""How a mask is drawn."""

import random
from collections.abc import Mapping, Sequence

from longca.data.histogram import Histogram, published_histogram
from longca.data.packing import AUTO, base_dataset, resolve_dataset, sample_documents
from longca.errors import LongcaError
from longca.masks.mask.mask import Mask
from longca.masks.patterns import Pattern
from longca.masks.patterns.choices import check_documents, complete_parameters, find_pattern


def draw_mask(
    pattern: str,
    seqlen: int,
    dataset: str = AUTO,
    histogram: Histogram | None = None,
    seed: int = 42,
    sample: int = 0,
    parameters: Mapping[str, int] | None = None,
    documents: Sequence[int] | None = None,
    context_parallel: bool = False,
) -> Mask:
    """Draw sample number `sample` of a pattern from one random.Random(seed + sample).

    Documents are drawn first where the pattern takes them, then the pattern's own draws. `documents` are
    taken as they are, without a draw. `parameters` override the defaults and the draws. `histogram` None is
    the published one of the dataset that `dataset` resolves to (with `context_parallel`, `auto` resolves to
    the long samples).

    Raises:
        LongcaError: for an unknown pattern, dataset or parameter, or a value the pattern cannot take.
    """
    known = find_pattern(pattern)
    if seqlen < 1:
        raise LongcaError(f"seqlen {seqlen}: must be at least 1")
    if sample < 0:
        raise LongcaError(f"sample {sample}: must be 0 or more")
    check_dataset(known, dataset)
    if histogram is not None and not known.takes_documents:
        raise LongcaError(f"lengths: {pattern} takes no sampled documents, so no lengths to draw them from")
    chosen = complete_parameters(known, parameters or {})
    rng = random.Random(seed + sample)
    drawn: tuple[int, ...] = ()
    if documents is not None:
        check_documents(known, documents, seqlen)
        drawn = tuple(documents)
    elif known.takes_documents:
        resolved = resolve_dataset(dataset, seqlen, context_parallel)
        if histogram is None:
            histogram = published_histogram(base_dataset(resolved))
        drawn = tuple(sample_documents(rng, resolved, histogram, seqlen))
    drawn, chosen = known.draw(rng, seqlen, drawn, chosen)
    return Mask(
        pattern=pattern,
        seqlen=seqlen,
        dataset=dataset,
        seed=seed,
        sample=sample,
        documents=drawn if known.has_documents else None,
        parameters={name: chosen[name] for name in known.parameters},
        slices=tuple(known.build(seqlen, drawn, chosen)),
    )


def check_dataset(pattern: Pattern, dataset: str) -> None:
    """Refuse another dataset than `auto` where documents are not sampled: the mask would be the same."""
    if dataset != AUTO and not pattern.takes_documents:
        raise LongcaError(
            f"dataset {dataset!r}: {pattern.name} takes no sampled documents and exists under {AUTO} only"
        )
