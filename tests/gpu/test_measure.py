"""Measuring on a GPU: every dense kernel on awkward masks through a real worker, and what its records say."""

from dataclasses import replace

import pytest

from longca.cases import Case
from longca.files import write_atomically
from longca.kernels.registry import kernel_names
from longca.masks.mask import draw_mask, mask_to_json
from longca.masks.patterns import PATTERNS
from longca.measure.session import KernelSession
from longca.study.model import Protocol

pytestmark = pytest.mark.gpu
CASE = Case("dense", "", "auto", "causal", 1025, 0, 8, 2, 128, "bfloat16", "forward")


@pytest.mark.parametrize("kernel", kernel_names("dense"))
def test_every_pattern_is_ok_in_both_passes(kernel, tmp_path):
    with KernelSession("dense", kernel, Protocol(device="cuda", warmups=1, repetitions=5)) as session:
        for pattern in PATTERNS:
            documents = [500, 1, 7, 517] if PATTERNS[pattern].takes_documents else None
            mask = draw_mask(pattern, 1025, documents=documents)
            path = tmp_path / f"{pattern}.json"
            write_atomically(path, mask_to_json(mask))
            for pass_ in ("forward", "backward"):
                case = replace(CASE, kernel=kernel, pattern=pattern, pass_=pass_)
                record, _ = session.measure(case, mask, path, 300)
                assert record.status == "ok", (pattern, pass_, record.status, record.reason)
                state = record.environment["state"]["after"]
                assert state["sm_clock_mhz"] > 0 and state["power_w"] > 0
    assert record.environment["compute_capability"] and record.environment["driver"]
