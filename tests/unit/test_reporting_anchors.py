"""Expected against measured: which published figures a study is set beside, the ratio, and where it is flagged."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from reporting_records import dense_study, write_records

from longca.cases import Case
from longca.flops import attention_flops
from longca.reporting.anchors import RESOURCE, dense_anchors, read_anchors
from longca.reporting.names import table_file, table_names
from longca.reporting.tables import write_table
from longca.study.axes import MECHANISMS
from longca.study.loading import read_study

SHAPE = {
    "kernels": ["fa3", "fa2", "segments"],
    "patterns": ["full", "causal"],
    "seqlens": [8192, 65536],
    "heads": ["64-8"],
    "head_dim": 128,
    "dtype": "bfloat16",
    "passes": ["forward"],
}


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_resource_is_what_was_published() -> None:
    anchors = read_anchors()
    assert len(anchors) == 442 == RESOURCE.read_text().count("\n") - 1
    assert {anchor.source for anchor in anchors} == {"magi_attention", "fa3_paper"}
    # Nothing over the chip's dense 16-bit peak, each place once.
    assert all(0 < anchor.tflops_per_gpu < 989 for anchor in anchors)
    assert len({anchor[:-1] for anchor in anchors}) == len(anchors)
    (full,) = [a for a in anchors if a[2:7] == ("dense", "full", "forward", "fa3", 1) and a.seqlen == 8192]
    assert full.tflops_per_gpu == 671
    assert {a.method for a in anchors if a.family == "context_parallel"} - {
        "magi_attention",
        "hybrid_dcp",
    } == set(MECHANISMS)


def test_a_study_is_set_beside_what_it_measures() -> None:
    found = {(a.method, a.pattern, a.seqlen) for a in dense_anchors(dense_study(**SHAPE))}
    assert found == {(kernel, pattern, 8192) for kernel in ("fa3", "fa2") for pattern in ("full", "causal")}
    for change in ({"heads": ["32-8"]}, {"head_dim": 64}, {"dtype": "float16"}, {"kernels": ["segments"]}):
        assert "anchors" not in table_names(dense_study(**SHAPE | change))
    fewer = SHAPE | {"kernel_seqlens": {"fa3": [65536]}}
    assert {a.method for a in dense_anchors(dense_study(**fewer))} == {"fa2"}


def test_ratio_and_flag_of_every_anchor() -> None:
    study = dense_study(**SHAPE)
    published = {(a.method, a.pattern): a.tflops_per_gpu for a in dense_anchors(study)}
    ratios = {("fa3", "full"): 1.0, ("fa3", "causal"): 0.84, ("fa2", "full"): 1.16}

    def change(case: Case) -> dict[str, object]:
        ratio = ratios.get((case.kernel, case.pattern))
        if ratio is None:
            return {"status": "missing"}
        flops = attention_flops(case.seqlen**2 / 4, 64, 128, "forward")
        return {"milliseconds": flops / (ratio * published[case.kernel, case.pattern]) / 1e9}

    write_records(study, change)
    assert "anchors" in table_names(study)
    write_table(study, "anchors")
    rows = pq.read_table(table_file(study, "anchors", "parquet")).to_pylist()
    said = {(row["kernel"], row["pattern"]): (row["ratio"], row["flag"], row["status"]) for row in rows}
    assert said == {
        ("fa3", "full"): (pytest.approx(1.0), None, "ok"),
        ("fa3", "causal"): (pytest.approx(0.84), "differs", "ok"),
        ("fa2", "full"): (pytest.approx(1.16), "differs", "ok"),
        ("fa2", "causal"): (None, None, "missing"),
    }
    text = table_file(study, "anchors", "md").read_text()
    assert "beside magi_attention on H100" in text
    assert "2 of 3 measured differ by more than 15%" in text
    assert "| missing " in text


def test_the_h200_study_has_the_table(repository: Path) -> None:
    study = read_study(repository / "config" / "h200.yaml")
    assert {a.method for a in dense_anchors(study)} >= {"fa2", "fa3", "cudnn", "flashmask"}
    assert "anchors" not in table_names(read_study(repository / "config" / "smoke.yaml"))
