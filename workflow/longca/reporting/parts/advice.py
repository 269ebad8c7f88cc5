"""What to take: the rankings of `longca advise` for all that was measured, to choose from on the page."""

from typing import Any

from longca.reporting.advice.advising import ranked_cells
from longca.reporting.advice.choices import Choice
from longca.reporting.advice.question import PASSES
from longca.reporting.cells import Cell, cells_of
from longca.reporting.figures.drawing import packed_rows
from longca.reporting.mechanisms import as_mechanisms
from longca.reporting.parts.part import ReportData
from longca.reporting.words import digits, plain

# What a reader chooses, in the order of the page.
CHOSEN = {
    "device": "device",
    "ranks": "GPUs or ranks",
    "heads": "heads",
    "pattern": "pattern",
    "seqlen": "length (tokens)",
    "pass": "pass",
}


def advice(data: ReportData) -> dict[str, Any] | None:
    """Every choice of every question that the records answer; None where nothing is measured."""
    cells = list(data.cells.get("dense", []))
    if "context_parallel" in data.rows:
        cells += cells_of(as_mechanisms(data.rows["context_parallel"]))
    questions: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        place = cell.place
        asked = (plain(place.device), place.ranks, place.heads, place.pattern, place.seqlen)
        questions.setdefault((*asked, place.family, place.dataset, place.head_dim, place.dtype), []).append(
            cell
        )
    rows = [
        dict(zip(CHOSEN, (*asked[:5], word), strict=True)) | _row(choice)
        for asked, found in questions.items()
        for word, passes in PASSES.items()
        if any(cell.ok for cell in found)
        for choice in ranked_cells(passes, found)
    ]
    return {"advice": packed_rows(rows), "chosen": CHOSEN} if rows else None


def _row(choice: Choice) -> dict[str, Any]:
    numbers = {"ms": choice.ms, "tflops": choice.tflops}
    texts = {name: "–" if value is None else digits(value) for name, value in numbers.items()}
    ratio = "–" if choice.ratio is None else f"{choice.ratio:.2f}"
    return {"name": choice.name, **texts, "ratio": ratio, "why": choice.why}
