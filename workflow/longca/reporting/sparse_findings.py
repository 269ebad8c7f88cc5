"""The order of block-sparse kernels that arXiv 2510.17896 reports: reproduced or refuted here, computed from cells.

A comparison with a kernel that has no number says not tested, and why. Two cells are told apart where the p20 to p80
ranges of their throughputs do not meet.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from longca.reporting.cells import Cell
from longca.reporting.findings import Finding
from longca.reporting.words import count, plain, status_words

_PATTERN = "uniform_block"
_BOTH = ("forward", "backward")
_VERDICTS = ("reproduced", "refuted", "neither reproduced nor refuted", "not tested")
# The paper's order: the faster kernel, the slower one, the block size, the passes both have.
_ORDER = (
    ("vsa", "vsa_triton", 64, _BOTH),
    ("vsa_triton", "flashinfer", 64, ("forward",)),
    ("flashinfer", "fa2_sparse", 128, ("forward",)),
)


@dataclass(frozen=True)
class _Pair:
    """Two cells of which the paper has the first faster."""

    faster: Cell
    slower: Cell

    @property
    def ratio(self) -> float:
        return (self.faster.throughput() or 0.0) / (self.slower.throughput() or 0.0)

    @property
    def lead(self) -> int:
        """1 where the first is faster beyond the spread, -1 where the second is, 0 where their ranges meet."""
        return self.faster.is_ahead_of(self.slower) - self.slower.is_ahead_of(self.faster)


def paper_order(cells: Sequence[Cell]) -> list[Finding]:
    """A finding a device: each comparison of the paper, with its verdict and the ratios behind it."""
    found = []
    for device in dict.fromkeys(cell.place.device for cell in cells):
        here = [cell for cell in cells if cell.place.device == device and cell.place.pattern == _PATTERN]
        heading = f"The paper's order of block-sparse kernels (arXiv 2510.17896), {plain(device)}"
        sentences = (*_kernel_order(here), *_block_order(here), *_pass_order(here))
        found.append(Finding(heading, sentences))
    return found


def verdicts_in_short(cells: Sequence[Cell]) -> list[str]:
    """The verdicts of `paper_order` without the ratios behind them, a line a verdict: what stands beside a figure."""
    lines = []
    for finding in paper_order(cells):
        subjects: dict[str, list[str]] = {verdict: [] for verdict in _VERDICTS}
        for subject, sentence in finding.sentences:
            subjects[sentence.partition(":")[0]].append(subject)
        if finding.sentences:
            lines.append(f"{finding.heading}:")
        lines += [f"{verdict}: {'; '.join(about)}" for verdict, about in subjects.items() if about]
    return lines


def _kernel_order(cells: Sequence[Cell]) -> Iterator[tuple[str, str]]:
    kernels = {cell.kernel for cell in cells}
    for faster, slower, block, passes in _ORDER:
        if not kernels & {faster, slower}:
            continue
        for pass_ in passes:
            of = {
                name: [c for c in cells if (c.kernel, c.place.block, c.place.pass_) == (name, block, pass_)]
                for name in (faster, slower)
            }
            places = {cell.place: cell for cell in of[slower]}
            pairs = [_Pair(cell, places[cell.place]) for cell in of[faster] if cell.place in places]
            yield f"{faster} over {slower}, blocks of {block}, {pass_}", _verdict(pairs, of)


def _block_order(cells: Sequence[Cell]) -> Iterator[tuple[str, str]]:
    """Blocks of 128 over blocks of 64, for each kernel that is asked for both."""
    for kernel in dict.fromkeys(cell.kernel for cell in cells):
        for pass_ in _BOTH:
            own = [cell for cell in cells if cell.kernel == kernel and cell.place.pass_ == pass_]
            small = {cell.place: cell for cell in own if cell.place.block == 64}
            large = [(cell, cell.place._replace(block=64)) for cell in own if cell.place.block == 128]
            pairs = [_Pair(cell, small[place]) for cell, place in large if place in small]
            if any(pair.faster.ok and pair.slower.ok for pair in pairs):
                yield f"blocks of 128 over blocks of 64, {kernel}, {pass_}", _verdict(pairs, {kernel: own})


def _pass_order(cells: Sequence[Cell]) -> Iterator[tuple[str, str]]:
    """The backward as the bottleneck: it computes 2.5 times the forward's FLOPs, and does so at a lower rate."""
    for kernel in dict.fromkeys(cell.kernel for cell in cells):
        own = {cell.place: cell for cell in cells if cell.kernel == kernel}
        pairs = [
            _Pair(cell, backward)
            for place, cell in own.items()
            if place.pass_ == "forward" and (backward := own.get(place._replace(pass_="backward")))
        ]
        both = [pair for pair in pairs if pair.faster.ok and pair.slower.ok]
        if both:
            times = [(p.slower.latency("p50") or 0.0) / (p.faster.latency("p50") or 1.0) for p in both]
            said = f"{_verdict(pairs, {kernel: list(own.values())})[:-1]}; backward takes {_span(times)} times as long."
            yield f"backward as the bottleneck, {kernel}: forward over backward", said


def _verdict(pairs: Iterable[_Pair], asked: dict[str, list[Cell]]) -> str:
    """Reproduced, refuted or neither, over the pairs with two numbers; `asked`: each kernel's cells, ok or not."""
    tested = [pair for pair in pairs if pair.faster.ok and pair.slower.ok]
    if not tested:
        without = [_why_not(name, cells) for name, cells in asked.items() if not any(c.ok for c in cells)]
        return f"not tested: {'; '.join(without) or 'they have no number on the same map'}."
    leads = [pair.lead for pair in tested]
    rates = (
        f"{_span([pair.ratio for pair in tested])} times the throughput, {len(tested)} cells{_flags(tested)}"
    )
    if all(lead > 0 for lead in leads):
        return f"reproduced: {rates}."
    if all(lead < 0 for lead in leads):
        return f"refuted: {rates}."
    won, lost = leads.count(1), leads.count(-1)
    return (
        f"neither reproduced nor refuted: faster in {won}, slower in {lost}, level within the spread in "
        f"{leads.count(0)} of {len(leads)} cells ({rates})."
    )


def _why_not(kernel: str, cells: Sequence[Cell]) -> str:
    if not cells:
        return f"{kernel} is not in this grid"
    statuses = status_words(count([row["status"] for cell in cells for row in cell.rows]))
    reasons = dict.fromkeys(plain(reason, 80) for cell in cells if not cell.ok for reason in cell.reasons)
    return f"{kernel} {statuses}" + (f" ({'; '.join(reasons)})" if reasons else "")


def _flags(pairs: Iterable[_Pair]) -> str:
    flags = dict.fromkeys(flag for p in pairs for cell in (p.faster, p.slower) for flag in cell.flags)
    return f", some flagged {', '.join(flag.replace('_', ' ') for flag in flags)}" if flags else ""


def _span(values: Sequence[float]) -> str:
    low, high = (f"{value:.2f}" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"
