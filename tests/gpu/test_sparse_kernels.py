"""Block-sparse kernels on a GPU, through a real worker: ok in every pass they declare, and refused in the others."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from longca.cases import Case
from longca.kernels.registry import kernel_names, load_kernel
from longca.masks.blocks import draw_block_map, save_block_map
from longca.measure.session import KernelSession
from longca.study.model import Protocol

pytestmark = pytest.mark.gpu
CASE = Case("sparse", "", "auto", "uniform_block", 2048, 0, 8, 2, 128, "bfloat16", "forward", 64, 0.25)


@pytest.mark.parametrize("heads", [(8, 8), (8, 2)])
@pytest.mark.parametrize("kernel", kernel_names("sparse"))
def test_every_declared_pass_is_ok_on_every_kind_of_map(
    kernel: str, heads: tuple[int, int], tmp_path: Path
) -> None:
    support = load_kernel("sparse", kernel).support
    with KernelSession("sparse", kernel, Protocol(device="cuda", warmups=1, repetitions=5)) as session:
        missing = session.opened.loaded is not None and session.opened.loaded.missing
        if missing:
            pytest.skip(f"{kernel} is missing: {missing}")
        for pattern, block in (("uniform_block", 64), ("uniform_block", 128), ("variable_block", 256)):
            drawn = draw_block_map(pattern, CASE.seqlen, block, 0.25, heads[1])
            file = tmp_path / f"{pattern}{block}.npz"
            save_block_map(drawn, file)
            for pass_ in ("forward", "backward"):
                case = replace(
                    CASE,
                    kernel=kernel,
                    pattern=pattern,
                    block=block,
                    pass_=pass_,
                    q_heads=heads[0],
                    kv_heads=heads[1],
                )
                record, _ = session.measure(case, drawn, file, 300)
                declared = support.reason_against(case, "cuda", torch.cuda.get_device_capability())
                right = "ok" if declared is None else "unsupported"
                assert record.status == right, (pattern, block, pass_, record.status, record.reason)
