"""Differentiable attention over cuDNN's two planned graphs."""

from typing import Any

import torch

from longca.cases import Case
from longca.kernels.cudnn_graph import Geometry, Graph
from longca.kernels.interface import UnsupportedError
from longca.kernels.native_form import NativeForm


class CudnnAttention:
    """Called with q [tokens, heads, head_dim] and k, v [tokens, kv_heads, head_dim], returns out as q is."""

    def __init__(self, case: Case, form: NativeForm, device: torch.device, gradients: bool) -> None:
        """Plans the forward, and the backward where `gradients`; a backward cuDNN refuses is refused when called."""
        self.scale = case.head_dim**-0.5
        self.geometry = Geometry(case, form, device)
        self._plan_forward(Graph(self.geometry))
        self._refusal: UnsupportedError | None = None
        if gradients:
            try:
                self._plan_backward(Graph(self.geometry))
            except UnsupportedError as error:
                self._refusal = error

    def __call__(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
        return _Attention.apply(q, k, v, self)

    def _plan_forward(self, graph: Graph) -> None:
        sides = {"q": "q", "k": "kv", "v": "kv"}
        inputs = {name: graph.input(name, side) for name, side in sides.items()}
        options = graph.padding() | self.geometry.masking()
        out, stats = graph.graph.sdpa(**inputs, attn_scale=self.scale, generate_stats=True, **options)
        graph.output(out, "q")
        graph.output(stats, "stats")
        graph.plan()
        self._forward, self._forward_nodes = graph, (*inputs.values(), out, stats)

    def _plan_backward(self, graph: Graph) -> None:
        sides = {"q": "q", "k": "kv", "v": "kv", "o": "q", "dO": "q", "stats": "stats"}
        inputs = {name: graph.input(name, side) for name, side in sides.items()}
        options = graph.padding() | self.geometry.masking()
        if self.geometry.lengths:
            # Else its workspace would be as for a batch of sequences as long as the longest.
            options |= dict.fromkeys(
                ("max_total_seq_len_q", "max_total_seq_len_kv"), self.geometry.case.seqlen
            )
        gradients = graph.graph.sdpa_backward(**inputs, attn_scale=self.scale, **options)
        for node, side in zip(gradients, ("q", "kv", "kv"), strict=True):
            graph.output(node, side)
        graph.plan()
        self._backward, self._backward_nodes = graph, (*inputs.values(), *gradients)

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """out as q is, and float32 statistics of its rows, which the backward takes."""
        out, stats = torch.empty_like(q), q.new_empty(q.shape[:2], dtype=torch.float32)
        self._forward.run(dict(zip(self._forward_nodes, (q, k, v, out, stats), strict=True)))
        return out, stats

    def backward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """dq, dk, dv of q, k, v, out, dout, stats. Raises UnsupportedError where cuDNN has no plan for it."""
        if self._refusal is not None:
            raise self._refusal
        gradients = tuple(torch.empty_like(tensor) for tensor in inputs[:3])
        self._backward.run(dict(zip(self._backward_nodes, (*inputs, *gradients), strict=True)))
        return gradients


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, planned: CudnnAttention) -> Any:
        out, stats = planned.forward(q, k, v)
        ctx.save_for_backward(q, k, v, out, stats)
        ctx.planned = planned
        return out

    @staticmethod
    def backward(ctx: Any, *grad_outputs: torch.Tensor) -> Any:
        q, k, v, out, stats = ctx.saved_tensors
        return (*ctx.planned.backward(q, k, v, out, grad_outputs[0].contiguous(), stats), None)
