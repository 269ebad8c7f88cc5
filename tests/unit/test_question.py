"""A question without a study: its table says of each number what doubts there are."""

import io

import pytest
from reporting_records import dense_study, record
from rich.console import Console

from longca.cases import study_series
from longca.measure import question
from longca.measure.question import Question, ask


def test_flags_stand_beside_their_number_as_words(monkeypatch: pytest.MonkeyPatch) -> None:
    (case, *_) = study_series(dense_study())[0].cases
    doubtful = record(case, flags=["gradients_unverified", "noisy"])
    refused = record(case, status="unsupported")
    monkeypatch.setattr(question, "_records", lambda *_: [record(case), doubtful, refused])
    screen = io.StringIO()
    asked = Question(["naive"], "full", "1024", None, None, None, None, "cpu")
    Console(file=screen, width=200).print(ask(asked))
    assert [" ".join(line.split()) for line in screen.getvalue().splitlines()[-4:-1]] == [
        "naive forward 0.268 1 (0.9-1.1) 1.0 ok: naive, own path",
        "naive forward 0.268 1 (0.9-1.1) 1.0 ok: naive, own path (flagged gradients unverified, noisy)",
        "naive forward unsupported: its reason",
    ]
