"""A stand-in for nvidia-cudnn-frontend: graphs of sdpa and its backward over raw memory, strides and ragged offsets."""

import sys
from types import SimpleNamespace

import torch
from sparse_fakes import attend, install

TYPES = SimpleNamespace(HALF=torch.float16, BFLOAT16=torch.bfloat16, FLOAT=torch.float32)


class NotSupportedError(Exception):
    """cudnnGraphNotSupportedError."""


class Node:
    """A tensor of a graph: shape, strides and offsets, no data."""

    def __init__(self, name=""):
        self.name, self.offset, self.dim, self.stride, self.is_output = name, None, None, None, False

    def set_dim(self, dim):
        self.dim = list(dim)
        return self

    def set_stride(self, stride):
        self.stride = list(stride)
        return self

    def set_data_type(self, dtype):
        self.dtype = dtype
        return self

    def set_ragged_offset(self, node):
        self.offset = node
        return self

    def set_output(self, is_output):
        self.is_output = is_output
        return self

    def set_name(self, name):
        self.name = name
        return self

    def entry(self, data, batch, given, length):
        """View [heads, tokens, width] of a batch entry in `data`."""
        assert data.dtype == self.dtype, (self.name, data.dtype)
        start = int(given[self.offset].flatten()[batch]) if self.offset else batch * self.stride[0]
        shape = (self.dim[1], length, self.dim[3])
        return data.as_strided(shape, self.stride[1:], start)


class Graph:
    """One operation; `refused` names the operations that have no plan."""

    refused: frozenset[str] = frozenset()

    def __init__(self, handle, io_data_type, intermediate_data_type, compute_data_type):
        assert intermediate_data_type == compute_data_type == torch.float32 and handle == "handle"

    def tensor(self, name, dim, stride):
        return Node(name)

    def tensor_like(self, data):
        assert data.dtype in (torch.int32, torch.int64) and data.dim() == 4
        return Node()

    def sdpa(self, q, k, v, generate_stats, **options):
        assert generate_stats
        self.operation, self.inputs, self.options = "sdpa", (q, k, v), options
        self.outputs = Node("out"), Node("stats")
        return self.outputs

    def sdpa_backward(self, q, k, v, o, dO, stats, **options):  # noqa: N803
        self.operation, self.inputs, self.options = "sdpa_backward", (q, k, v, o, dO, stats), options
        self.outputs = Node("dq"), Node("dk"), Node("dv")
        return self.outputs

    def validate(self):
        assert all(node.is_output and node.dim for node in self.outputs)

    def check_support(self):
        if self.operation in self.refused:
            raise NotSupportedError(f"no engine for {self.operation}")

    def build_operation_graph(self): ...

    def create_execution_plans(self, modes): ...

    def build_plans(self): ...

    def get_workspace_size(self):
        return 16

    def kept(self, rows, columns):
        """The band: cuDNN keeps column + left bound > row, and column <= row + right bound."""
        i, j = torch.arange(rows)[:, None], torch.arange(columns)
        left, right = (self.options.get(f"diagonal_band_{side}_bound") for side in ("left", "right"))
        kept = torch.ones(rows, columns, dtype=torch.bool)
        kept &= torch.ones(1, dtype=torch.bool) if left is None else j + left > i
        return kept & (torch.ones(1, dtype=torch.bool) if right is None else j <= i + right)

    def execute(self, data, workspace, handle):
        assert workspace.numel() == 16 and handle == "handle"
        q, k, *_ = self.inputs
        for batch in range(q.dim[0]):
            lengths = [
                int(data[self.options[name]].flatten()[batch]) if name in self.options else node.dim[2]
                for name, node in (("seq_len_q", q), ("seq_len_kv", k))
            ]
            self._run(data, batch, *lengths)

    def _run(self, data, batch, rows, columns):
        def entries(nodes, names):
            length = {"k": columns, "v": columns, "dk": columns, "dv": columns}
            return [
                node.entry(data[node], batch, data, length.get(name, rows))
                for node, name in zip(nodes, names, strict=True)
            ]

        kept = self.kept(rows, columns)
        if self.operation == "sdpa":
            q, k, v = entries(self.inputs, "qkv")
            out, stats = entries(self.outputs, ("out", "stats"))
            out.copy_(attend(q, k, v, kept))
            stats.fill_(7.0)
            return
        q, k, v, out, dout, stats = entries(self.inputs, ("q", "k", "v", "o", "dout", "stats"))
        assert (stats == 7.0).all(), "the forward's statistics, where it wrote them"
        leaves = [tensor.detach().clone().requires_grad_() for tensor in (q, k, v)]
        with torch.enable_grad():
            again = attend(*leaves, kept)
            assert torch.allclose(again, out)
            gradients = torch.autograd.grad(again, leaves, dout)
        for node, gradient in zip(entries(self.outputs, ("dq", "dk", "dv")), gradients, strict=True):
            node.copy_(gradient)


def cudnn_frontend(monkeypatch, refused=()) -> None:
    """cudnn, whose graphs of the operations `refused` find no plan."""
    graph = type("pygraph", (Graph,), {"refused": frozenset(refused)})
    install(
        monkeypatch,
        "cudnn",
        pygraph=graph,
        data_type=TYPES,
        heur_mode=SimpleNamespace(A=0, FALLBACK=1),
        diagonal_alignment=SimpleNamespace(TOP_LEFT="top left"),
        cudnnGraphNotSupportedError=NotSupportedError,
        create_handle=lambda: "handle",
        set_stream=lambda handle, stream: None,
    )
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(cuda_stream=0))
    for name in ("longca.kernels.cudnn_graph", "longca.kernels.cudnn_attention"):
        monkeypatch.delitem(sys.modules, name, raising=False)
