"""A mask is held to what its area, and so every throughput, rests on: as it is drawn, before it is measured."""

from dataclasses import replace

import pytest
from typer.testing import CliRunner

from longca.cases import study_series
from longca.cli.main import app
from longca.errors import LongcaError
from longca.masks.checking import check_mask
from longca.masks.mask import Mask, draw_mask
from longca.masks.patterns import PATTERNS
from longca.masks.slices import Slice
from longca.measure.masks import case_mask
from longca.study.loading import check_study

WRONG = {
    "twice": ([Slice(0, 8, 0, 4, "full"), Slice(0, 8, 0, 4, "full")], "two slices both keep query 0, key 0"),
    "overlap": ([Slice(0, 8, 0, 8, "causal"), Slice(4, 8, 0, 2, "full")], "two slices both keep query 4"),
    "outside": ([Slice(0, 8, 0, 9, "full")], "must be ranges inside 8 queries x 8 keys"),
    "reversed": ([Slice(4, 2, 0, 8, "full")], "must be ranges inside"),
    "typo": ([Slice(0, 8, 0, 8, "casual")], "type 'casual' is none of"),
    "nothing": ([], "keeps no cell"),
    "no cell": ([Slice(0, 0, 0, 8, "full")], "keeps no cell"),
}


def mask_of(slices: list[Slice]) -> Mask:
    return Mask("mine", 8, "auto", 42, 0, None, {}, tuple(slices))


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_mask_is_refused(name: str) -> None:
    slices, told = WRONG[name]
    with pytest.raises(LongcaError, match="pattern mine at 8 tokens: .*" + told):
        check_mask(mask_of(slices))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern_is_right(pattern: str) -> None:
    for seqlen in (1, 137, 1025):
        mask = draw_mask(pattern, seqlen, "auto")
        assert check_mask(mask) is mask


def test_a_new_patterns_mistake_ends_before_it_is_written_or_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    wrong, told = WRONG["twice"]
    monkeypatch.setitem(PATTERNS, "full", replace(PATTERNS["full"], build=lambda *_: wrong))
    file = tmp_path / "mask.json"
    done = CliRunner().invoke(app, ["mask", "full", "--seqlen", "8", "--output", str(file)])
    assert isinstance(done.exception, LongcaError) and told in str(done.exception) and not file.exists()
    grid = {"kernels": ["naive"], "patterns": ["full"], "seqlens": [8], "heads": ["2-1"]}
    study = check_study({"study": "tiny", "dense": grid}, "test")
    (case, *_) = study_series(study)[0].cases
    with pytest.raises(LongcaError, match=told):
        case_mask(study, tmp_path, case)
    assert not list(tmp_path.rglob("*.json"))
