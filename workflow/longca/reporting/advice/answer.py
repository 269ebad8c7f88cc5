"""An answer: what is ranked, where, and what to keep in mind."""

from dataclasses import dataclass

from longca.reporting.advice.choices import Choice


@dataclass(frozen=True)
class Answer:
    """What is ranked on which device, at the length that was measured; the notes say what to keep in mind."""

    what: str
    device: str
    seqlen: int
    choices: list[Choice]
    notes: tuple[str, ...]
