"""Answers as tables for reading."""

from longca.reporting.advice.answer import Answer
from longca.reporting.advice.question import Question
from longca.reporting.sections import Section
from longca.reporting.words import digits


def advice_section(question: Question, answer: Answer) -> Section:
    """A ranking as a table: the fastest first and bold, what has no number last."""
    passes = " and ".join(question.passes)
    gpus = f" over {question.gpus} GPUs" if answer.what != "kernels" else ""
    title = (
        f"{answer.what.capitalize()} for {question.pattern}{gpus}, {answer.seqlen} tokens, heads {question.heads}, "
        f"{passes}, {answer.device}"
    )
    rate = "TFLOP/s" if answer.what == "kernels" else "TFLOP/s a GPU"
    rows = tuple(
        (
            one.name,
            "–" if one.ms is None else digits(one.ms),
            "–" if one.tflops is None else digits(one.tflops),
            "–" if one.ratio is None else f"{one.ratio:.2f}",
            one.origin,
            one.why,
        )
        for one in answer.choices
    )
    best = (
        frozenset((0, column) for column in range(3))
        if rows and answer.choices[0].ms is not None
        else frozenset()
    )
    headers = ("Name", "Time (ms)", f"Throughput ({rate})", "Times the fastest", "Origin", "Why")
    return Section(title, headers, rows, best, numeric=False, note=" ".join(answer.notes))
