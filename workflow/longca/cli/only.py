"""`--only`: some cases of a study, named by keys of their series and by their own."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from longca.errors import LongcaError
from longca.names import unknown_name

if TYPE_CHECKING:
    from longca.cases import Case, Series
    from longca.study.model import Study

_SERIES_KEYS = ("family", "dataset", "mechanism", "kernel", "pattern", "heads", "world_size")
_CASE_KEYS = ("seqlen", "pass")
Only = Annotated[
    list[str] | None,
    typer.Option(help="Cases of the study, as kernel=sdpa,pattern=causal,seqlen=8k; repeatable."),
]


def choose(study: "Study", only: list[str] | None) -> "list[Series]":
    """The series that any of the --only texts names, with the cases it names; all without one."""
    from longca.cases import study_series

    series = study_series(study)
    if not only:
        return series
    wanted = [_parse(text) for text in only]

    def is_wanted(one: "Series", case: "Case") -> bool:
        values = {key: str(getattr(one, key)) for key in _SERIES_KEYS}
        values |= {"seqlen": str(case.seqlen), "pass": case.pass_}
        return any(keys.items() <= values.items() for keys in wanted)

    chosen = [replace(one, cases=tuple(case for case in one.cases if is_wanted(one, case))) for one in series]
    if not any(one.cases for one in chosen):
        raise LongcaError(
            f"--only {' --only '.join(only)}: no case of study {study.study} is meant; it has {len(series)} series"
        )
    return [one for one in chosen if one.cases]


def _parse(text: str) -> dict[str, str]:
    """The keys and values of one --only, seqlen in tokens."""
    from longca.units import parse_tokens

    known = (*_SERIES_KEYS, *_CASE_KEYS)
    keys: dict[str, str] = {}
    for part in text.split(","):
        key, _, value = part.partition("=")
        if key not in known:
            raise LongcaError(f"--only {text}: {unknown_name(key, known, 'key of a series or case')}")
        if key in keys:
            raise LongcaError(f"--only {text}: {key} stands there twice; right: an --only for each value")
        if not value:
            raise LongcaError(f"--only {text}: {key} has no value; right: key=value, as kernel=sdpa")
        try:
            keys[key] = str(parse_tokens(value)) if key == "seqlen" else value
        except ValueError as error:
            raise LongcaError(f"--only {text}: seqlen: {error}") from None
    return keys
