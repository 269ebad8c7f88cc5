"""cuDNN's attention as two graphs of its frontend, forward and backward, over tensors [tokens, heads, head_dim].

Whole sequences are a batch of one. Packed ones are a batch whose entries begin at ragged offsets, counted in elements.
"""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import cudnn
import torch

from longca.cases import Case
from longca.kernels.interface import UnsupportedError
from longca.kernels.native_form import NativeForm

_TYPES = {"float16": cudnn.data_type.HALF, "bfloat16": cudnn.data_type.BFLOAT16}


@dataclass
class Geometry:
    """Shapes, mask and ragged offsets of a case, as both graphs take them."""

    case: Case
    form: NativeForm
    device: torch.device
    offsets: dict[str, torch.Tensor] = field(default_factory=dict)
    lengths: dict[str, torch.Tensor] = field(default_factory=dict)
    batch: int = 1
    queries: int = 0
    keys: int = 0

    def __post_init__(self) -> None:
        case, packed = self.case, self.form.packed
        self.queries = self.keys = case.seqlen
        if packed is None:
            return
        self.batch, (self.queries, self.keys) = len(packed.cu_seqlens_q) - 1, packed.longest
        starts = dict(zip(("q", "kv"), packed.on(self.device), strict=True))
        self.lengths = {side: start.diff().reshape(-1, 1, 1, 1) for side, start in starts.items()}
        strides = {
            "q": case.q_heads * case.head_dim,
            "kv": case.kv_heads * case.head_dim,
            "stats": case.q_heads,
        }
        for name, elements in strides.items():
            start = starts["kv" if name == "kv" else "q"]
            self.offsets[name] = (start.long() * elements).reshape(-1, 1, 1, 1)

    def masking(self) -> dict[str, Any]:
        """A band around the diagonal, which cuDNN's left bound counts in and flash-attention's does not."""
        bounds: dict[str, Any] = {}
        if self.form.left >= 0:
            bounds["diagonal_band_left_bound"] = self.form.left + 1
        if self.form.causal or self.form.right >= 0:
            bounds["diagonal_band_right_bound"] = 0 if self.form.causal else self.form.right
        return bounds | ({"diagonal_alignment": cudnn.diagonal_alignment.TOP_LEFT} if bounds else {})


class Graph:
    """A graph under construction, then its plan; `feed` maps its inputs to data that is the same in every call."""

    def __init__(self, geometry: Geometry) -> None:
        self.geometry = geometry
        self.type = _TYPES[geometry.case.dtype]
        self.feed: dict[Any, torch.Tensor] = {}
        self.graph = cudnn.pygraph(
            handle=_handle(),
            io_data_type=self.type,
            intermediate_data_type=cudnn.data_type.FLOAT,
            compute_data_type=cudnn.data_type.FLOAT,
        )
        constants = {
            **geometry.offsets,
            **{f"{side} length": data for side, data in geometry.lengths.items()},
        }
        self.constants = {name: self._constant(name, data) for name, data in constants.items()}

    def _constant(self, name: str, data: torch.Tensor) -> Any:
        node = self.graph.tensor_like(data)
        node.set_name(name)
        self.feed[node] = data
        return node

    def padding(self) -> dict[str, Any]:
        """What a ragged batch needs besides its offsets."""
        if not self.geometry.lengths:
            return {}
        lengths = {"seq_len_q": self.constants["q length"], "seq_len_kv": self.constants["kv length"]}
        return {"use_padding_mask": True, **lengths}

    def described(self, node: Any, side: str) -> Any:
        """Give a node its shape [batch, heads, tokens, head_dim], strides and offsets; side: q, kv or stats.

        Memory is tokens first, but for the statistics of a batch of one.
        """
        case, geometry = self.geometry.case, self.geometry
        heads = case.kv_heads if side == "kv" else case.q_heads
        tokens = geometry.keys if side == "kv" else geometry.queries
        width = 1 if side == "stats" else case.head_dim
        heads_first = side == "stats" and not geometry.offsets
        node.set_dim([geometry.batch, heads, tokens, width])
        steps = (tokens, 1) if heads_first else (width, heads * width)
        node.set_stride([tokens * heads * width, *steps, 1])
        node.set_data_type(cudnn.data_type.FLOAT if side == "stats" else self.type)
        if side in geometry.offsets:
            node.set_ragged_offset(self.constants[side])
        return node

    def input(self, name: str, side: str) -> Any:
        """An input that a call brings."""
        return self.described(self.graph.tensor(name=name, dim=[1, 1, 1, 1], stride=[1, 1, 1, 1]), side)

    def output(self, node: Any, side: str) -> None:
        """Make a result of the graph one that a call receives."""
        node.set_output(True)
        self.described(node, side)

    def plan(self) -> None:
        """Choose and build the execution plan. Raises UnsupportedError with cuDNN's words where there is none."""
        try:
            self.graph.validate()
            self.graph.build_operation_graph()
            self.graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
            self.graph.check_support()
        except cudnn.cudnnGraphNotSupportedError as error:
            raise UnsupportedError(str(error)) from error
        self.graph.build_plans()

    def run(self, data: dict[Any, torch.Tensor]) -> None:
        """Execute the plan on the current stream."""
        workspace = torch.empty(
            self.graph.get_workspace_size(), dtype=torch.uint8, device=self.geometry.device
        )
        cudnn.set_stream(handle=_handle(), stream=torch.cuda.current_stream().cuda_stream)
        self.graph.execute(self.feed | data, workspace, handle=_handle())


@cache
def _handle() -> Any:
    """cuDNN's handle of this process, which has one device."""
    return cudnn.create_handle()
