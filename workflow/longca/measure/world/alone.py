"""A mechanism's two halves by themselves: its calls of the local kernel on one rank, and what it sends."""

from collections.abc import Sequence
from typing import Any

import torch

from longca.parallel.local import LocalCall, Setting


class Computation:
    """The same local calls as a pass makes, on random tensors, without communication, merges or sums.

    Calls of one shape share their tensors: what they cost does not depend on the values.
    """

    def __init__(self, setting: Setting, calls: Sequence[LocalCall], passes: tuple[str, ...]) -> None:
        self._setting, self._calls = setting, calls
        self._tensors: dict[tuple[int, int], torch.Tensor] = {}
        self._results: list[tuple[torch.Tensor, torch.Tensor]] = []

    def forward(self) -> None:
        """Every call of a forward."""
        for call in self._calls:
            self._forward(call)

    def backward(self) -> None:
        """Every call of a backward; their out and lse are made once, by a first forward."""
        if not self._results:
            self._results = [self._forward(call) for call in self._calls]
        for call, (out, lse) in zip(self._calls, self._results, strict=True):
            q, k, v = self._inputs(call)
            self._setting.kernel.backward(q, k, v, out, lse, q, call.plan)

    def _forward(self, call: LocalCall) -> tuple[torch.Tensor, torch.Tensor]:
        return self._setting.kernel.forward(*self._inputs(call), call.plan)

    def _inputs(self, call: LocalCall) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        q = self._tensor(call.q_heads, call.queries)
        k = self._tensor(call.kv_heads, call.keys)
        return q, k, k

    def _tensor(self, heads: int, rows: int) -> torch.Tensor:
        if (heads, rows) not in self._tensors:
            setting = self._setting
            drawn = torch.randn(heads, rows, setting.head_dim, device=setting.device)
            self._tensors[heads, rows] = drawn.to(setting.dtype)
        return self._tensors[heads, rows]


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
