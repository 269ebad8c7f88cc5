"""Ceilings: measured on the device a study is of, kept beside those of other devices."""

from dataclasses import replace
from pathlib import Path

import pytest

from longca.errors import LongcaError
from longca.measure import ceiling_timing
from longca.measure.ceilings import Ceilings, ceilings_file, keep_ceilings, read_ceilings


def test_a_product_and_a_copy_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """1 ms a call: 2 x 64^3 FLOPs and 2 x 4096 bytes in it."""
    monkeypatch.setattr(ceiling_timing, "_SIZES", {"cpu": (64, 4096)})
    monkeypatch.setattr(
        ceiling_timing, "time_calls", lambda call, device, repetitions: [call() is None or 1.0] * repetitions
    )
    found = ceiling_timing.measure_ceilings("cpu", "float32")
    assert found.matrix_product_tflops == pytest.approx(2 * 64**3 / 1e-3 / 1e12)
    assert found.copy_gb_per_s == pytest.approx(2 * 4096 / 1e-3 / 1e9)
    assert "thread" in found.device


def test_each_device_has_one_entry(tmp_path: Path) -> None:
    one = Ceilings("a GPU", "bfloat16", 700.0, 4000.0)
    for kept in (one, replace(one, device="another"), replace(one, copy_gb_per_s=4100.0)):
        keep_ceilings(tmp_path, kept)
    assert read_ceilings(tmp_path) == [replace(one, device="another"), replace(one, copy_gb_per_s=4100.0)]


def test_what_is_no_dtype_or_no_file_of_ceilings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LongcaError, match="'randn' is no dtype of torch"):
        ceiling_timing.measure_ceilings("cpu", "randn")
    assert read_ceilings(tmp_path) == []
    ceilings_file(tmp_path).write_text('[{"device": "x"}]')
    with pytest.raises(LongcaError, match=r"ceilings.json: holds no ceilings"):
        read_ceilings(tmp_path)
