"""The support table: declarations beside what was measured, derived and never typed."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from reporting_records import by_kernel, dense_study, write_records

from longca.kernels.interface import Support
from longca.kernels.registry import KernelModuleError
from longca.reporting import support
from longca.reporting.long import Row, read_rows
from longca.reporting.names import table_file
from longca.reporting.support import support_sections
from longca.reporting.tables import write_table
from longca.study.model import Study

DECLARED = {
    "naive": Support(frozenset({"full", "causal"}), {"cpu": ("forward", "backward")}, frozenset({"float32"})),
    "sdpa": Support(
        frozenset({"full"}),
        {"cpu": ("forward",), "cuda": ("forward", "backward")},
        frozenset({"float32"}),
        without={"causal": "has no causal form"},
    ),
}


@pytest.fixture(autouse=True)
def _declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(support, "load_kernel", lambda _, name: SimpleNamespace(support=DECLARED[name]))


def rows(study: Study, partial: bool = False) -> dict[tuple[str, ...], Row]:
    """The support table's rows by kernel, pattern, pass and type of device."""
    write_table(study, "support", partial)
    read = read_rows(table_file(study, "support", "parquet"))
    return {(row["kernel"], row["pattern"], row["pass"], row["device_type"]): row for row in read}


def test_what_is_declared_stands_beside_what_was_measured() -> None:
    study = dense_study(passes=["forward", "backward"])
    write_records(study, by_kernel(sdpa={"status": "unsupported", "reason": "torch says no"}))
    found = rows(study)
    assert len(found) == 8
    good, refused = found["naive", "causal", "forward", "cpu"], found["sdpa", "causal", "forward", "cpu"]
    assert (good["declared"], good["declared_reason"], good["measured"]) == ("supported", None, "ok")
    assert (refused["declared"], refused["declared_reason"]) == ("unsupported", "has no causal form")
    assert (refused["measured"], refused["measured_reason"]) == ("unsupported", "torch says no")
    assert found["sdpa", "full", "backward", "cpu"]["declared_reason"] == "has no backward pass on cpu"


def test_a_promise_that_was_not_kept_shows() -> None:
    study = dense_study(seqlens=[512, 1024])
    write_records(
        study, lambda case: {"status": "wrong"} if (case.kernel, case.seqlen) == ("naive", 512) else {}
    )
    broken = rows(study)["naive", "full", "forward", "cpu"]
    assert (broken["declared"], broken["measured"], broken["cases"]) == (
        "supported",
        "wrong 1 of 2, ok 1 of 2",
        2,
    )


def test_a_shape_that_is_refused_among_others_is_partly_supported(monkeypatch: pytest.MonkeyPatch) -> None:
    only_equal = Support(
        frozenset({"full"}), {"cpu": ("forward",)}, frozenset({"float32"}), grouped_heads=False
    )
    monkeypatch.setitem(DECLARED, "sdpa", only_equal)
    study = dense_study(heads=["4-2", "4-4"], patterns=["full"])
    write_records(study)
    partly = rows(study)["sdpa", "full", "forward", "cpu"]
    assert partly["declared"] == "partly supported"
    assert partly["declared_reason"] == "takes equal query and key-value heads only"


def test_each_type_of_device_is_held_against_its_own_declaration() -> None:
    study = dense_study(patterns=["full"])
    gpu = {"device": "a GPU", "compute_capability": "9.0"}
    write_records(study, by_kernel(sdpa={"environment": gpu}))
    found = rows(study)
    assert found["naive", "full", "forward", "cpu"]["measured"] == "ok"
    assert found["naive", "full", "forward", "cuda"]["declared_reason"] == "does not run on cuda"
    assert found["naive", "full", "forward", "cuda"]["measured"] == "not measured"
    assert found["sdpa", "full", "forward", "cuda"]["measured"] == "ok"


def test_before_anything_is_measured_the_declarations_stand_there() -> None:
    found = rows(dense_study(), partial=True)
    assert {row["measured"] for row in found.values()} == {"not measured"}
    assert {key[3] for key in found} == {"cpu"}


def test_a_reader_sees_the_reason_in_the_row() -> None:
    study = dense_study()
    write_records(study, by_kernel(sdpa={"status": "crashed", "reason": "segmentation fault"}))
    (section,) = support_sections(list(rows(study).values()))
    assert section.title == "Forward support of dense kernels on cpu: declared, and what was measured"
    assert (
        "sdpa",
        "causal",
        "unsupported",
        "crashed",
        "has no causal form; segmentation fault",
    ) in section.rows
    assert ("naive", "full", "supported", "ok", "–") in section.rows
    assert all(text for row in section.rows for text in row)


def test_a_kernel_that_cannot_be_imported_is_missing_and_the_others_stand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = []

    def load(family: str, name: str) -> SimpleNamespace:
        tried.append(name)
        if name == "sdpa":
            raise KernelModuleError("kernel sdpa: ModuleNotFoundError: No module named 'theirs'")
        return SimpleNamespace(support=DECLARED[name])

    monkeypatch.setattr(support, "load_kernel", load)
    study = dense_study(passes=["forward", "backward"])
    write_records(study, by_kernel(sdpa={"status": "missing", "reason": "No module named 'theirs'"}))
    found = rows(study)
    absent = found["sdpa", "causal", "forward", "cpu"]
    assert (absent["declared"], absent["measured"]) == ("missing", "missing")
    assert absent["declared_reason"] == "kernel sdpa: ModuleNotFoundError: No module named 'theirs'"
    assert found["naive", "causal", "forward", "cpu"]["declared"] == "supported"
    # An import that fails may be slow: each kernel once.
    assert sorted(tried) == ["naive", "sdpa"]
