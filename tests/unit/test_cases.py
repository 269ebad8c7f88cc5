"""Cases and series: what a study's grid comes to, and where it stands on disk."""

from pathlib import Path
from typing import Any

from longca.cases import Series, grid_series, study_series
from longca.masks.mask import draw_mask
from longca.study.loading import check_study

DENSE: dict[str, Any] = {
    "kernels": ["sdpa", "flex"],
    "patterns": ["causal", "causal_document"],
    "seqlens": [512, "1k"],
    "heads": ["4-2", "4-4"],
    "datasets": ["auto", "pile"],
    "kernel_seqlens": {"flex": ["1k"]},
    "samples": 2,
}
SPARSE: dict[str, Any] = {
    "kernels": ["segments"],
    "patterns": "all",
    "seqlens": ["1k"],
    "blocks": {"uniform_block": [64, 128], "variable_block": [256]},
    "densities": [0.1, 1.0],
    "heads": ["4-2"],
}


def series(**grids: Any) -> list[Series]:
    return study_series(check_study({"study": "tiny", **grids}, "tiny.yaml"))


def test_a_dense_series_has_all_lengths_samples_and_passes_of_one_place() -> None:
    own = series(dense=DENSE)
    names = [one.name.as_posix() for one in own]
    assert names[:3] == [
        "dense/auto/sdpa/causal/4-2",
        "dense/auto/sdpa/causal/4-4",
        "dense/auto/sdpa/causal_document/4-2",
    ]
    assert len(names) == len(set(names)) == 2 * (2 + 4)
    points = [(case.seqlen, case.sample, case.pass_) for case in own[2].cases]
    assert points == [(s, n, p) for s in (512, 1024) for n in (0, 1) for p in ("forward", "backward")]
    assert {(case.q_heads, case.kv_heads, case.head_dim, case.dtype) for case in own[1].cases} == {
        (4, 4, 128, "bfloat16")
    }


def test_samples_are_of_patterns_in_which_something_is_drawn() -> None:
    """A second sample is asked of a pattern just where it is another mask than the first."""
    grid = {**DENSE, "kernels": ["sdpa"], "patterns": "all", "seqlens": [4096], "kernel_seqlens": {}}
    for one in series(dense=grid):
        (first, second) = (draw_mask(one.pattern, 4096, sample=sample) for sample in (0, 1))
        samples = {case.sample for case in one.cases}
        assert samples == ({0} if first.slices == second.slices else {0, 1}), one.pattern
        assert len(one.cases) == 2 * len(samples)


def test_a_pattern_without_documents_is_measured_under_auto_alone() -> None:
    places = {(one.pattern, one.dataset) for one in series(dense=DENSE)}
    assert places == {("causal", "auto"), ("causal_document", "auto"), ("causal_document", "pile")}


def test_a_kernel_may_have_fewer_lengths() -> None:
    lengths = {one.kernel: {case.seqlen for case in one.cases} for one in series(dense=DENSE)}
    assert lengths == {"sdpa": {512, 1024}, "flex": {1024}}


def test_a_sparse_series_has_all_lengths_blocks_and_densities() -> None:
    uniform, variable = series(sparse=SPARSE)
    assert uniform.name == Path("sparse/segments/uniform_block/4-2")
    assert [(case.block, case.density_nominal) for case in uniform.cases[::2]] == [
        (64, 0.1),
        (64, 1.0),
        (128, 0.1),
        (128, 1.0),
    ]
    assert {case.block for case in variable.cases} == {256}


def test_both_passes_share_a_mask_file() -> None:
    dense, sparse = series(dense=DENSE)[2], series(sparse=SPARSE)[0]
    assert [path.as_posix() for path in dense.mask_files] == [
        f"masks/auto/causal_document/{seqlen}/{sample}.json" for seqlen in (512, 1024) for sample in (0, 1)
    ]
    assert [path.as_posix() for path in sparse.mask_files] == [
        f"blocks/uniform_block/1024/{block}/{density}/2/0.npz"
        for block in (64, 128)
        for density in ("0.1", "1.0")
    ]


def test_a_density_keeps_all_its_digits_in_the_path() -> None:
    close = [0.1234567, 0.1234568]
    (own, _) = series(sparse={**SPARSE, "densities": close})
    assert len(own.mask_files) == 4


def test_several_grids_share_their_series_and_each_asks_for_what_no_earlier_one_has() -> None:
    wide = {"kernels": ["sdpa", "flex"], "patterns": ["causal", "full"], "seqlens": [512], "heads": ["4-2"]}
    long = {**wide, "kernels": ["sdpa"], "patterns": ["causal"], "seqlens": [256, 512, 1024]}
    other = {**wide, "kernels": ["flex"], "patterns": ["causal"], "heads": ["4-4"]}
    study = check_study({"study": "tiny", "dense": [wide, long, other], "sparse": SPARSE}, "tiny.yaml")
    own = {one.name.as_posix(): [case.seqlen for case in one.cases[::2]] for one in study_series(study)}
    assert own == {
        "dense/auto/sdpa/causal/4-2": [512, 256, 1024],
        "dense/auto/sdpa/full/4-2": [512],
        "dense/auto/flex/causal/4-2": [512],
        "dense/auto/flex/full/4-2": [512],
        "dense/auto/flex/causal/4-4": [512],
        "sparse/segments/uniform_block/4-2": [1024] * 4,
        "sparse/segments/variable_block/4-2": [1024] * 2,
    }
    first, second, third, sparse = grid_series(study)
    assert [len(part) for part in (first, second, third, sparse)] == [4, 1, 1, 2]
    assert [case.seqlen for case in second[0].cases] == [256, 256, 1024, 1024]


def test_columns_are_the_records_own() -> None:
    dense, sparse = series(dense=DENSE)[0].cases[0], series(sparse=SPARSE)[0].cases[0]
    assert dense.columns() == {
        "family": "dense",
        "kernel": "sdpa",
        "dataset": "auto",
        "pattern": "causal",
        "seqlen": 512,
        "sample": 0,
        "q_heads": 4,
        "kv_heads": 2,
        "head_dim": 128,
        "dtype": "bfloat16",
        "pass": "forward",
    }
    assert sparse.columns()["block"] == 64
    assert sparse.columns()["density_nominal"] == 0.1
