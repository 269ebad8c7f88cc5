"""Progress of a series: what a terminal's live line says case by case, and the plain lines of a log."""

import io
from typing import Any

import pytest
from rich.console import Console

from longca.cases import Case, Series, study_series
from longca.measure import progress as module
from longca.measure.progress import series_progress
from longca.measure.record import Record
from longca.study.loading import check_study

GRID = {
    "kernels": ["sdpa"],
    "patterns": ["causal"],
    "seqlens": [64, 128],
    "heads": ["2-1"],
    "head_dim": 16,
    "dtype": "float32",
}
STUDY = check_study({"study": "tiny", "measure": {"device": "cpu"}, "dense": GRID}, "test")
(SERIES,) = study_series(STUDY)


def record(case: Case, **changes: Any) -> Record:
    measured = {
        "latency_ms": {"p20": 1.0, "p50": 1.0, "p80": 1.0},
        "samples_ms": [1.0],
        "tflops": 0.125,
        "peak_memory_bytes": 0,
        "prepare_ms": 0.0,
        "compile_ms": 0.0,
        "relative_error": {"out": 0.0},
    }
    common = {
        "dataset_resolved": None,
        "area": 1.0,
        "density": 0.5,
        "mask_digest": "",
        "fingerprint": "",
        "environment": {},
        "measured_at": "2026-01-01T00:00:00Z",
    }
    own = {"status": "ok"} | measured if changes.get("status", "ok") == "ok" else {"reason": "a reason"}
    return Record.model_validate(case.columns() | common | own | changes)


def shown(
    series: Series, steps: list[tuple[float, dict[str, Any], bool]], terminal: bool, monkeypatch
) -> list[str]:
    """The lines that were on the screen one after the other; a step is its time, the record's changes, and kept."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(module, "predict_seconds", lambda case, **_: float(case.seqlen))
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=terminal, width=110, color_system=None)
    with series_progress(STUDY, series, series.cases, console) as show:
        for number, (seconds, changes, kept) in enumerate(steps, 1):
            now[0] += seconds
            show(number, record(series.cases[number - 1], **changes), kept)
    texts = screen.getvalue().replace("\x1b[2K", "\r").replace("\x1b[1A", "").replace("\x1b[?25l", "")
    return [
        text.strip()
        for text in texts.replace("\x1b[?25h", "").replace("\n", "\r").split("\r")
        if text.strip()
    ]


def test_a_terminal_has_one_live_line(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [
        (0.0, {}, True),  # kept: tells nothing about time
        (6.4, {}, False),  # 64 tokens
        (20.0, {"status": "crashed"}, False),  # 128 tokens
        (0.1, {"status": "unsupported"}, False),
    ]
    name = "dense/auto/sdpa/causal/2-1"
    texts = list(dict.fromkeys(shown(SERIES, steps, terminal=True, monkeypatch=monkeypatch)))
    assert texts == [
        f"{name} case 1 of 4: 64 forward",
        f"{name} case 2 of 4: 64 backward; before it ok 0.125 TFLOP/s",
        f"{name} case 3 of 4: 128 forward; before it ok 0.125 TFLOP/s; about 0:26 left",
        # 26.4 s for 192 tokens, 128 to go.
        f"{name} case 4 of 4: 128 backward; before it crashed a reason; about 0:18 left",
        f"{name} done: 2 ok, 1 crashed, 1 unsupported; 0:26",
    ]


def test_a_log_has_a_line_a_case(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [(0.0, {}, True), (1.0, {}, False), (1.0, {"status": "timeout"}, False)]
    assert shown(SERIES, steps, terminal=False, monkeypatch=monkeypatch) == [
        "dense/auto/sdpa/causal/2-1 1/4: 64 forward ok, kept 0.125 TFLOP/s",
        "dense/auto/sdpa/causal/2-1 2/4: 64 backward ok 0.125 TFLOP/s",
        "dense/auto/sdpa/causal/2-1 3/4: 128 forward timeout a reason",
    ]


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0:00"), (59.6, "1:00"), (3599.0, "59:59"), (7325.0, "2:02:05")]
)
def test_times_as_a_clock_says_them(seconds: float, said: str) -> None:
    assert module._clock(seconds) == said
