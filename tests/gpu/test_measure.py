"""Measuring on a GPU: every dense kernel on awkward masks through a real worker, and what its records say."""

from dataclasses import replace

import pytest
import torch

from longca.cases import Case
from longca.files import write_atomically
from longca.kernels.registry import kernel_names, load_kernel
from longca.masks.mask import draw_mask, mask_to_json
from longca.masks.patterns import PATTERNS
from longca.measure.session import KernelSession
from longca.study.model import Protocol

pytestmark = pytest.mark.gpu
CASE = Case("dense", "", "auto", "causal", 1025, 0, 8, 2, 128, "bfloat16", "forward")


# What a library refuses by itself, in its own words, beyond what its adapter declares.
MAY_REFUSE = {"sdpa_efficient", "sdpa_cudnn", "cudnn"}


@pytest.mark.parametrize("kernel", kernel_names("dense"))
def test_what_is_declared_is_ok_and_the_rest_unsupported(kernel, tmp_path):
    support = load_kernel("dense", kernel).support
    heads = {} if support.grouped_heads else {"kv_heads": 8}
    with KernelSession("dense", kernel, Protocol(device="cuda", warmups=1, repetitions=5)) as session:
        loaded = session.opened.loaded
        if loaded is None or loaded.missing:
            pytest.skip(f"not here: {loaded and loaded.missing}")
        for pattern in PATTERNS:
            documents = [500, 1, 7, 517] if PATTERNS[pattern].takes_documents else None
            mask = draw_mask(pattern, 1025, documents=documents)
            path = tmp_path / f"{pattern}.json"
            write_atomically(path, mask_to_json(mask))
            for pass_ in ("forward", "backward"):
                case = replace(CASE, kernel=kernel, pattern=pattern, pass_=pass_, **heads)
                record, _ = session.measure(case, mask, path, 300)
                seen = (pattern, pass_, record.status, record.reason)
                reason = support.reason_against(case, "cuda", torch.cuda.get_device_capability())
                if record.status == "unsupported":
                    assert record.reason == reason or kernel in MAY_REFUSE, seen
                    continue
                assert record.status == "ok" and reason is None, seen
                state = record.environment["state"]["after"]
                assert state["sm_clock_mhz"] > 0 and state["power_w"] > 0
    assert record.environment["compute_capability"] and record.environment["driver"]


def test_after_memory_ran_out_the_same_process_goes_on(tmp_path):
    with KernelSession("dense", "naive", Protocol(device="cuda", warmups=1, repetitions=5)) as session:

        def measure(seqlen, pass_):
            mask, path = draw_mask("causal", seqlen), tmp_path / f"{seqlen}.json"
            write_atomically(path, mask_to_json(mask))
            case = replace(CASE, kernel="naive", seqlen=seqlen, q_heads=64, kv_heads=8, pass_=pass_)
            return session.measure(case, mask, path, 300)[0].status

        assert measure(1024, "backward") == "ok"
        process = session._worker
        assert [measure(131072, pass_) for pass_ in ("forward", "backward")] == ["out_of_memory"] * 2
        assert session._worker is process
        assert measure(1024, "forward") == "ok"
