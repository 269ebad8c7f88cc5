"""Answers: ranked kernels on one GPU, ranked mechanisms on many."""

from collections.abc import Sequence
from dataclasses import dataclass

from longca.reporting.advice.choices import Choice, measured_choice, ranked
from longca.reporting.advice.modelled import modelled_choices
from longca.reporting.advice.question import Question, cells_for
from longca.reporting.cells import Cell, cells_of, devices
from longca.reporting.long import Row
from longca.reporting.mechanisms import as_mechanisms
from longca.reporting.words import plain


@dataclass(frozen=True)
class Answer:
    """What is ranked on which device, at the length that was measured; the notes say what to keep in mind."""

    what: str
    device: str
    seqlen: int
    choices: list[Choice]
    notes: tuple[str, ...]


def kernel_answers(question: Question, rows: Sequence[Row], source: str) -> list[Answer]:
    """Dense kernels ranked, on each device that measured. `rows`: long rows. Raises LongcaError as `cells_for` does."""
    cells = cells_for(question, cells_of([row for row in rows if row["family"] == "dense"]), source)
    return [
        Answer(
            "kernels",
            device,
            here[0].place.seqlen,
            ranked_cells(question.passes, here),
            _notes(question, here),
        )
        for device, here in _by_device(cells)
    ]


def mechanism_answers(question: Question, rows: Sequence[Row], source: str) -> list[Answer]:
    """Mechanisms on the question's GPUs: measured where the study measured so many ranks, modelled besides."""
    own = [row for row in rows if row["family"] == "context_parallel"]
    cells = [cell for cell in cells_of(as_mechanisms(own)) if cell.place.ranks == question.gpus]
    measured: list[Cell] = []
    if any(
        cell.place.pattern == question.pattern and cell.place.heads == str(question.heads) for cell in cells
    ):
        measured = cells_for(question, cells, source)
    modelled, notes = modelled_choices(question, rows, source)
    seqlen = measured[0].place.seqlen if measured else question.seqlen
    answers = [
        Answer("mechanisms", device, seqlen, ranked_cells(question.passes, here), _notes(question, here))
        for device, here in _by_device(measured)
    ]
    if modelled:
        device = plain(devices(rows)[0])
        answers.append(Answer("mechanisms, modelled", device, question.seqlen, ranked(modelled), notes))
    return answers


def ranked_cells(passes: Sequence[str], cells: Sequence[Cell]) -> list[Choice]:
    """The kernels or mechanisms of cells that differ in them and the pass alone, ranked over these passes."""
    by_name: dict[str, dict[str, Cell]] = {}
    for cell in cells:
        by_name.setdefault(cell.kernel, {})[cell.place.pass_] = cell
    return ranked(
        [
            measured_choice(name, {pass_: found.get(pass_) for pass_ in passes})
            for name, found in by_name.items()
        ]
    )


def _by_device(cells: Sequence[Cell]) -> list[tuple[str, list[Cell]]]:
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(plain(cell.place.device), []).append(cell)
    return list(groups.items())


def _notes(question: Question, cells: Sequence[Cell]) -> tuple[str, ...]:
    seqlen = cells[0].place.seqlen
    if seqlen == question.seqlen:
        return ()
    return (f"Measured at {seqlen} tokens, the length nearest to the {question.seqlen} asked for.",)
