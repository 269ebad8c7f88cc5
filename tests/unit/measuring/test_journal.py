"""Journals and their locks: whole lines stay, torn ones go, and one writer writes."""

import json
import os
import subprocess
import sys
import threading

import pytest

from longca.errors import LongcaError
from longca.measure.journal import Journal, case_key
from longca.measure.lock import JournalLock
from longca.measure.record import Record, read_records

RECORD = Record.model_validate(
    {
        "kernel": "naive",
        "family": "dense",
        "dataset": "auto",
        "dataset_resolved": None,
        "pattern": "causal",
        "seqlen": 64,
        "sample": 0,
        "q_heads": 4,
        "kv_heads": 2,
        "head_dim": 64,
        "dtype": "float32",
        "pass": "forward",
        "status": "unsupported",
        "reason": "two\nlines",
        "area": 2080,
        "density": 2080 / 64**2,
        "mask_digest": "d",
        "fingerprint": "f",
        "environment": {"device": "cpu"},
        "measured_at": "2026-01-01T00:00:00+00:00",
    }
)


def test_lines_are_read_back(tmp_path):
    path = tmp_path / "deep" / "4-2.jsonl"
    journal = Journal(path)
    journal.append("a", RECORD)
    journal.append("b", RECORD)
    again = Journal(path)
    assert again.keys() == {"a": RECORD, "b": RECORD}
    assert len(path.read_text().splitlines()) == 2


@pytest.mark.parametrize("kept_bytes", [1, 20, -2, -1])
def test_a_torn_last_line_is_cut_off_and_nothing_else(tmp_path, kept_bytes):
    path = tmp_path / "4-2.jsonl"
    journal = Journal(path)
    journal.append("a", RECORD)
    whole = path.read_bytes()
    journal.append("b", RECORD)
    line = path.read_bytes()[len(whole) :]
    path.write_bytes(whole + line[:kept_bytes])
    again = Journal(path)
    assert again.keys() == {"a": RECORD}
    again.append("b", RECORD)
    assert Journal(path).keys() == {"a": RECORD, "b": RECORD}


@pytest.mark.parametrize(
    "bad", ["{", "[]", '{"key": "a"}', '{"key": "a", "status": "ok"}', '{"key": 1}', '{"key": ["a"]}']
)
def test_a_bad_line_in_the_middle_is_named(tmp_path, bad):
    path = tmp_path / "4-2.jsonl"
    Journal(path).append("a", RECORD)
    path.write_text(path.read_text() + bad + "\n" + path.read_text())
    with pytest.raises(LongcaError, match=r"4-2\.jsonl:2: "):
        Journal(path)


SAMPLING = {"warmups": 1, "repetitions": 3}


@pytest.mark.parametrize(
    ("column", "other"),
    [
        ("kernel", "sdpa"),
        ("q_heads", 8),
        ("pass", "backward"),
        ("mask_digest", "e"),
        ("fingerprint", "g"),
        ("environment", {"device": "gpu"}),
    ],
)
def test_a_line_of_another_case_than_its_keys_is_named(tmp_path, column, other):
    path = tmp_path / "4-2.jsonl"
    key = case_key(RECORD.case.columns(), "d", "f", SAMPLING, "cpu")
    journal = Journal(path)
    assert journal.get(key, SAMPLING) is None
    journal.append("of another protocol", RECORD)
    journal.append(key, RECORD)
    assert journal.get(key, SAMPLING) == Journal(path).get(key, SAMPLING) == RECORD
    first, second = path.read_text().splitlines()
    path.write_text(f"{first}\n{json.dumps(json.loads(second) | {column: other})}\n")
    spoilt = Journal(path)
    assert set(spoilt.keys()) == {"of another protocol", key}
    with pytest.raises(
        LongcaError, match=rf"4-2\.jsonl:2: key: {key} .* right: remove that line, its case is m"
    ) as e:
        spoilt.get(key, SAMPLING)
    assert column not in ("kernel", "q_heads", "pass") or f"{column} {other}" in str(e.value)


def test_what_makes_a_key_another():
    base = ({"seqlen": 1}, "mask", "print", {"warmups": 1, "repetitions": 3}, "cpu")
    keys = {case_key(*base)}
    for place, other in enumerate([{"seqlen": 2}, "m", "p", {"warmups": 2, "repetitions": 3}, "gpu"]):
        keys.add(case_key(*base[:place], other, *base[place + 1 :]))
    assert len(keys) == 6


@pytest.mark.parametrize("line", ["nothing", '{"kernel": 1}', ""])
def test_a_bad_records_file_is_named_with_its_line(tmp_path, line):
    path = tmp_path / "records.jsonl"
    path.write_text(RECORD.to_line() + "\n" + line + "\n")
    with pytest.raises(LongcaError, match=r"records\.jsonl:2: "):
        read_records(path)


def test_a_record_has_numbers_only_where_it_is_ok():
    for spoil in (
        {"tflops": 1.0},
        {"reason": None},
        {"relative_error": {"out": 0.1}},
        {"status": "ok"},
        {"status": "fine"},
    ):
        with pytest.raises(ValueError, match="status"):
            Record.model_validate(json.loads(RECORD.to_line()) | spoil)


def test_a_dead_writers_lock_is_taken_over(tmp_path):
    path = tmp_path / "4-2.jsonl"
    script = (
        "import os,sys;from pathlib import Path;from longca.measure.lock import JournalLock;"
        "JournalLock(Path(sys.argv[1])).__enter__();os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=True)
    lock = path.with_suffix(".lock")
    assert json.loads(lock.read_text())["pid"] != os.getpid()
    with JournalLock(path):
        assert json.loads(lock.read_text())["pid"] == os.getpid()
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_got_a_dead_ones_number_is_not_taken_for_it(tmp_path):
    path = tmp_path / "4-2.jsonl"
    with JournalLock(path):
        holder = json.loads(path.with_suffix(".lock").read_text())
    path.with_suffix(".lock").write_text(json.dumps(holder | {"started": holder["started"] - 1000}))
    with JournalLock(path):
        pass


def test_a_second_writer_waits_for_a_living_one(tmp_path, capsys):
    path = tmp_path / "4-2.jsonl"
    script = (
        "import sys;from pathlib import Path;from longca.measure.lock import JournalLock\n"
        "with JournalLock(Path(sys.argv[1])):\n    print('held', flush=True); sys.stdin.read()"
    )
    first = subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert first.stdout.readline() == "held\n"
    entered = threading.Event()
    leave = threading.Event()

    def second():
        with JournalLock(path):
            entered.set()
            leave.wait(30)

    thread = threading.Thread(target=second)
    thread.start()
    try:
        assert not entered.wait(0.5)
        first.stdin.close()
        assert entered.wait(30)
        assert first.wait(30) == 0
    finally:
        leave.set()
        thread.join()
    assert "waiting for" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "x", "{}", "[1]", '{"host": 1'])
def test_a_lock_that_no_writer_leaves_is_taken_over(tmp_path, text):
    path = tmp_path / "4-2.jsonl"
    path.with_suffix(".lock").write_text(text)
    with JournalLock(path):
        assert json.loads(path.with_suffix(".lock").read_text())["pid"] == os.getpid()
    assert list(tmp_path.iterdir()) == []
