"""A mechanism's two halves by themselves: its calls of the local kernel on one rank, and what it sends."""

from collections.abc import Sequence
from typing import Any

import torch

from longca.parallel.local import LocalCall, Setting


class Computation:
    """The same local calls as a pass makes, on random tensors, without communication, merges or sums.

    What a call costs does not depend on the values, but on how much memory they take: q, k, v and dout are four
    tensors, and each call has keys of its own, as in a ring, where queries stay and keys come by. The calls are those
    of `chunks` chunks of heads, one chunk after another, each with queries of its own.
    """

    def __init__(self, setting: Setting, calls: Sequence[LocalCall], chunks: int) -> None:
        self._setting, self._calls, self._chunks = setting, calls, chunks
        self._tensors: dict[tuple[str, int, int, int], torch.Tensor] = {}
        self._results: list[tuple[torch.Tensor, torch.Tensor]] = []

    def forward(self) -> None:
        """Every call of a forward."""
        for index, call in enumerate(self._calls):
            self._forward(index, call)

    def backward(self) -> None:
        """Every call of a backward; their out and lse are made once, by a first forward."""
        if not self._results:
            self._results = [self._forward(index, call) for index, call in enumerate(self._calls)]
        for index, (call, (out, lse)) in enumerate(zip(self._calls, self._results, strict=True)):
            q, k, v = self._inputs(index, call)
            dout = self._of_queries("dout", index, call)
            self._setting.kernel.backward(q, k, v, out, lse, dout, call.plan)

    def _forward(self, index: int, call: LocalCall) -> tuple[torch.Tensor, torch.Tensor]:
        return self._setting.kernel.forward(*self._inputs(index, call), call.plan)

    def _inputs(self, index: int, call: LocalCall) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        k, v = (self._tensor(name, index, call.kv_heads, call.keys) for name in ("k", "v"))
        return self._of_queries("q", index, call), k, v

    def _of_queries(self, name: str, index: int, call: LocalCall) -> torch.Tensor:
        chunk = index * self._chunks // len(self._calls)
        return self._tensor(name, chunk, call.q_heads, call.queries)

    def _tensor(self, name: str, place: int, heads: int, rows: int) -> torch.Tensor:
        key = name, place, heads, rows
        if key not in self._tensors:
            setting = self._setting
            drawn = torch.randn(heads, rows, setting.head_dim, device=setting.device)
            self._tensors[key] = drawn.to(setting.dtype)
        return self._tensors[key]


class NoKernel:
    """A local kernel that has no plan and so is never called: what is left of a mechanism is what it sends."""

    @staticmethod
    def plan(*arguments: Any) -> None:
        """None, for any mask and shape."""

    @staticmethod
    def forward(*arguments: Any) -> Any:
        """Never called."""
        raise AssertionError("a kernel without a plan was called")

    backward = forward
