"""Answers: ranked kernels on one GPU, ranked mechanisms on many."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from longca.errors import LongcaError
from longca.reporting.advice.answer import Answer
from longca.reporting.advice.choices import Choice, measured_choice, ranked
from longca.reporting.advice.default_masks import default_draw
from longca.reporting.advice.degenerate import without_doubles
from longca.reporting.advice.modelled import modelled_answer
from longca.reporting.advice.question import (
    Question,
    cells_for,
    check_length,
    check_measured,
    check_modelled,
    was_measured,
)
from longca.reporting.cells import Cell, cells_of
from longca.reporting.long import Row
from longca.reporting.mechanisms import as_mechanisms
from longca.reporting.scale.areas import Draw
from longca.reporting.scale.ground import check_not_block_sparse, documents_of
from longca.reporting.scale.level import listed
from longca.reporting.words import plain


def answers(
    question: Question, rows: Sequence[Row], source: str, draw: Draw | None = None
) -> Iterator[Answer]:
    """Kernels, as far as they were measured on one GPU, and mechanisms where GPUs are asked about; one by one.

    rows: long rows of `source`. draw: the masks of its study; None: only its records are known. Raises LongcaError,
    after the answers there are, where the next one has nothing to stand on.
    """
    check_not_block_sparse(question.pattern)
    check_length(question)
    if not any(row["family"] in ("dense", "context_parallel") for row in rows):
        raise LongcaError(f"--study: {source} has neither dense kernels nor mechanisms; right: one that has")
    cells = cells_of([row for row in rows if row["family"] == "dense"])
    if question.gpus is None or was_measured(question, cells):
        yield from kernel_answers(question, rows, source)
    if question.gpus is not None:
        yield from mechanism_answers(question, rows, source, draw)


def kernel_answers(question: Question, rows: Sequence[Row], source: str) -> list[Answer]:
    """Dense kernels ranked, on each device that measured. `rows`: long rows. Raises LongcaError as `cells_for` does."""
    own = [row for row in rows if row["family"] == "dense"]
    ranks = sorted({row["world_size"] for row in rows if row["family"] == "context_parallel"})
    if not own and ranks:
        raise LongcaError(
            f"--gpus: {source} has no kernel on one GPU, only mechanisms; right: --gpus, as {ranks[-1]}, "
            "which was measured"
        )
    cells = cells_for(question, cells_of(own), source)
    return _measured_answers("kernels", question, cells)


def mechanism_answers(
    question: Question, rows: Sequence[Row], source: str, draw: Draw | None = None
) -> list[Answer]:
    """Mechanisms on the question's GPUs: measured where the study measured so many ranks, modelled besides.

    Raises LongcaError where there is neither, and where the pattern or the heads were not measured at all.
    """
    own = [row for row in rows if row["family"] == "context_parallel"]
    on_ranks = cells_of(as_mechanisms(own))
    dense = cells_of([row for row in rows if row["family"] == "dense"])
    check_measured(question, [*dense, *on_ranks], source)
    cells = [cell for cell in on_ranks if cell.place.ranks == question.gpus]
    measured = cells_for(question, cells, source) if was_measured(question, cells) else []
    answers = _measured_answers("mechanisms", question, measured)
    if not answers:
        check_modelled(question)
    try:
        return [*answers, modelled_answer(question, rows, source, draw or default_draw(rows, source))]
    except LongcaError as error:
        if not answers:
            raise LongcaError(
                f"--gpus: {source} has nothing on {question.gpus} ranks, and nothing can be modelled: {error}"
            ) from None
        return [
            replace(one, notes=(*one.notes, f"Nothing is modelled beside it: {error}.")) for one in answers
        ]


def ranked_cells(passes: Sequence[str], cells: Sequence[Cell]) -> list[Choice]:
    """The kernels or mechanisms of cells that differ in them and the pass alone, ranked over these passes."""
    by_name: dict[str, dict[str, Cell]] = {}
    for cell in without_doubles(cells):
        by_name.setdefault(cell.kernel, {})[cell.place.pass_] = cell
    return ranked(
        [
            measured_choice(name, {pass_: found.get(pass_) for pass_ in passes})
            for name, found in by_name.items()
        ]
    )


def _measured_answers(what: str, question: Question, cells: Sequence[Cell]) -> list[Answer]:
    """The cells ranked, on each device that measured them."""
    return [
        Answer(
            what, device, here[0].place.seqlen, ranked_cells(question.passes, here), _notes(question, here)
        )
        for device, here in _by_device(cells)
    ]


def _by_device(cells: Sequence[Cell]) -> list[tuple[str, list[Cell]]]:
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(plain(cell.place.device), []).append(cell)
    return list(groups.items())


def _notes(question: Question, cells: Sequence[Cell]) -> tuple[str, ...]:
    seqlen, dataset = cells[0].place.seqlen, cells[0].place.dataset
    local_kernels = dict.fromkeys(str(cell.rows[0]["local_kernel"]) for cell in cells if cell.place.ranks > 1)
    documents = documents_of(question.pattern, dataset, seqlen)
    over, on = (
        f"{word} {said}" if said else ""
        for word, said in (("over", listed(list(local_kernels))), ("on", documents))
    )
    rests_on = ", ".join(filter(None, (over, on)))
    nearest = f"Measured at {seqlen} tokens, the length nearest to the {question.seqlen} asked for."
    return (
        *([nearest] if seqlen != question.seqlen else []),
        *([f"Measured {rests_on}."] if rests_on else []),
    )
