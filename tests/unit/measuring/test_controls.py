"""The control: measured once a while on a card, named by every record, and a doubt where it is off."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from longca.cases import study_series
from longca.measure.budget import NO_LIMIT
from longca.measure.controls import ControlFlags, Controls, controls_file, read_controls, references
from longca.measure.record import parse_record, read_records
from longca.measure.running import measure_series
from longca.study.loading import check_study

pytestmark = pytest.mark.usefixtures("fake_kernels")
CONTROL = {"kernel": "right", "seqlen": 64, "heads": "2-1", "head_dim": 16, "dtype": "float32", "every": "1h"}


def study(control=CONTROL):
    measure = {"device": "cpu", "warmups": 1, "repetitions": 3, "threads": 1}
    grid = {
        "kernels": ["right"],
        "patterns": ["causal"],
        "seqlens": [32],
        "heads": ["2-1"],
        "dtype": "float32",
    }
    measured = measure | ({"control": control} if control else {})
    return check_study({"study": "tiny", "measure": measured, "dense": grid}, "test")


def run(folder, one):
    measure_series(one, folder, study_series(one), NO_LIMIT, frozenset(), Console(quiet=True))
    return read_records(folder / "records/dense/auto/right/causal/2-1.jsonl")


def flags(records, controls):
    return [ControlFlags(controls).on(record).flags for record in records]


def test_every_record_names_the_control_before_it_and_a_young_one_is_not_measured_again(tmp_path):
    records = run(tmp_path, study())
    (control,) = read_controls(tmp_path)
    assert control.record.status == "ok" and control.record.seqlen == 64
    assert {record.environment["control"] for record in records} == {control.name}
    assert control.card == records[0].environment["host"] and control.card in control.name
    assert flags(records, [control]) == [record.flags for record in records]
    run(tmp_path, study())
    assert read_controls(tmp_path) == [control]
    # Two hours later, or on another card.
    line = json.loads(controls_file(tmp_path).read_text())
    line["measured_at"] = (datetime.now(UTC) - timedelta(hours=2)).isoformat(timespec="seconds")
    controls_file(tmp_path).write_text(json.dumps(line) + "\n")
    Controls(study(), tmp_path).current({"host": control.card})
    Controls(study(), tmp_path).current({"host": control.card, "gpu_uuid": "another"})
    assert [one.card for one in read_controls(tmp_path)] == [control.card, control.card, "another"]


def test_without_the_key_there_is_no_control(tmp_path):
    records = run(tmp_path, study(control=None))
    assert not controls_file(tmp_path).exists() and "control" not in records[0].environment


def test_a_control_that_cannot_run_is_a_doubt_about_every_record(tmp_path):
    records = run(tmp_path, study({**CONTROL, "kernel": "absent"}))
    (control,) = read_controls(tmp_path)
    assert control.record.status == "missing"
    assert [found[-1] for found in flags(records, [control])] == ["control_failed"] * 2


def test_a_control_further_than_three_percent_from_the_median_is_a_doubt(tmp_path):
    (record, *_) = run(tmp_path, study())
    record = record.model_copy(update={"flags": []})
    (first,) = read_controls(tmp_path)
    line = json.loads(controls_file(tmp_path).read_text())

    def control(name, factor):
        columns = {key: value for key, value in line.items() if key not in ("control", "card")}
        columns |= {"latency_ms": {key: factor * value for key, value in line["latency_ms"].items()}}
        columns |= {"samples_ms": [factor * sample for sample in line["samples_ms"]]}
        columns |= {"tflops": line["tflops"] / factor}
        return type(first)(name, "card", parse_record(json.dumps(columns), "test"))

    controls = [control("a", 1.0), control("b", 1.029), control("c", 0.96), control("d", 1.0)]
    assert list(references(controls).values()) == [pytest.approx(line["latency_ms"]["p50"])]

    def measured_after(name):
        return record.model_copy(update={"environment": record.environment | {"control": name}})

    records = [measured_after(name) for name in ("a", "b", "c", "d", "e")]
    assert flags(records, controls) == [[], [], ["control_off"], [], ["uncontrolled"]]
    lost = record.model_copy(update={"status": "crashed"})
    assert flags([lost], controls) == [[]]
