"""A histogram of document lengths in a few figures."""

import math
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from longca.data.histogram import Histogram


@dataclass(frozen=True)
class Summary:
    """Lengths in tokens. documents and tokens are None for a publication that gives shares only.

    For bins wider than one length the figures take lengths as evenly spread inside a bin.
    """

    documents: int | None
    tokens: int | None
    mean: float
    median: float
    p90: float
    longest: int


def summarize(histogram: Histogram) -> Summary:
    """Documents, tokens, and the mean, median, 90th percentile and maximum of the lengths.

    A percentile is the smallest length that at least so many documents do not pass.
    """
    bins, counts = histogram.bins, histogram.documents
    counted = None not in counts and all(lower == upper for lower, upper in bins)
    documents = sum(filter(None, counts)) if counted else None
    tokens = sum(lower * (count or 0) for (lower, _), count in zip(bins, counts, strict=True))
    middles = math.fsum(
        weight * (lower + upper) / 2 for weight, (lower, upper) in zip(histogram.weights, bins, strict=True)
    )
    return Summary(
        documents=documents,
        tokens=tokens if counted else None,
        mean=tokens / documents if documents else middles / math.fsum(histogram.weights),
        median=_percentile(histogram, 0.5),
        p90=_percentile(histogram, 0.9),
        longest=max(upper for _, upper in bins),
    )


def _percentile(histogram: Histogram, share: float) -> float:
    ordered = sorted(zip(histogram.bins, histogram.weights, strict=True))
    left = share * math.fsum(histogram.weights)
    for (lower, upper), weight in ordered:
        # The slack keeps a share that is reached exactly from being missed by the last bit of a sum.
        if weight > 0 and weight >= left - 1e-12:
            return lower + (upper - lower) * left / weight
        left -= weight
    return float(ordered[-1][0][1])


def print_summary(name: str, histogram: Histogram, notes: list[str]) -> None:
    """Print the figures of dataset `name` as a table, and the notes below it."""
    summary = summarize(histogram)
    table = Table(title=name, title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    for label, value in (
        ("documents", summary.documents),
        ("tokens", summary.tokens),
        ("mean length", summary.mean),
        ("median", summary.median),
        ("90th percentile", summary.p90),
        ("longest", summary.longest),
    ):
        table.add_row(label, "not published" if value is None else f"{value:,.0f}")
    console = Console()
    console.print(table)
    for note in notes:
        console.print(f"- {note}", markup=False, highlight=False, soft_wrap=True)
