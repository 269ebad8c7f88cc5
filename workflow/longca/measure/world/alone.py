"""A mechanism's two halves by themselves: its calls of the local kernel on one rank, and what it sends."""

from collections.abc import Sequence
from typing import Any

import torch

from longca.parallel.local import LocalCall, Setting


class Computation:
    """The same local calls as a pass makes, on random tensors, without communication, merges or sums.

    What a call costs does not depend on the values, but on how much memory they take: q, k, v and dout are four
    tensors, and each call has keys of its own, as in a ring, where queries stay and keys come by.
    """

    def __init__(self, setting: Setting, calls: Sequence[LocalCall], passes: tuple[str, ...]) -> None:
        self._setting, self._calls = setting, calls
        self._tensors: dict[tuple[object, ...], torch.Tensor] = {}
        self._results: list[tuple[torch.Tensor, torch.Tensor]] = []

    def forward(self) -> None:
        """Every call of a forward."""
        for number, call in enumerate(self._calls):
            self._forward(number, call)

    def backward(self) -> None:
        """Every call of a backward; their out and lse are made once, by a first forward."""
        if not self._results:
            self._results = [self._forward(number, call) for number, call in enumerate(self._calls)]
        for number, (call, (out, lse)) in enumerate(zip(self._calls, self._results, strict=True)):
            q, k, v = self._inputs(number, call)
            dout = self._tensor(call.q_heads, call.queries, "dout")
            self._setting.kernel.backward(q, k, v, out, lse, dout, call.plan)

    def _forward(self, number: int, call: LocalCall) -> tuple[torch.Tensor, torch.Tensor]:
        return self._setting.kernel.forward(*self._inputs(number, call), call.plan)

    def _inputs(self, number: int, call: LocalCall) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        keys = call.kv_heads, call.keys
        q = self._tensor(call.q_heads, call.queries, "q")
        return q, self._tensor(*keys, "k", number), self._tensor(*keys, "v", number)

    def _tensor(self, heads: int, rows: int, *role: object) -> torch.Tensor:
        name = heads, rows, *role
        if name not in self._tensors:
            setting = self._setting
            drawn = torch.randn(heads, rows, setting.head_dim, device=setting.device)
            self._tensors[name] = drawn.to(setting.dtype)
        return self._tensors[name]


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
