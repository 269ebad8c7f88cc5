"""The data a case is measured on."""

import torch

from longca.cases import Case
from longca.kernels.interface import Tensors


def draw_tensors(case: Case, device: torch.device, gradients: bool) -> Tensors:
    """Standard-normal q, k, v and dout of a case, the same in every run on one kind of device."""
    generator = torch.Generator(device).manual_seed(0)
    dtype = getattr(torch, case.dtype)

    def draw(heads: int) -> torch.Tensor:
        shape = (heads, case.seqlen, case.head_dim)
        return torch.randn(shape, generator=generator, device=device, dtype=torch.float32).to(dtype)

    q, k, v, dout = draw(case.q_heads), draw(case.kv_heads), draw(case.kv_heads), draw(case.q_heads)
    return Tensors(q, k, v, dout, gradients)
