"""A case without its pass on one rank: its data, its mechanism, and the calls that are verified and timed."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch

from longca.cases import Case
from longca.errors import LongcaError
from longca.kernels.interface import Prepared, UnsupportedError
from longca.masks.mask import Mask
from longca.measure.memory import peak_bytes
from longca.measure.protocol import Outcome
from longca.measure.tensors import draw_tensors
from longca.measure.timing import first_call
from longca.measure.verify import Verdict, Verifier
from longca.measure.world.alone import Computation, NoKernel
from longca.measure.world.together import Together
from longca.parallel.gather import gather
from longca.parallel.groups import Groups
from longca.parallel.local import Setting
from longca.parallel.local_form import LocalForm
from longca.parallel.mechanism import Mechanism
from longca.parallel.registry import load_mechanism
from longca.parallel.sharding import shard_sequence
from longca.parallel.shards import scatter
from longca.parallel.work import imbalance


class Calls(NamedTuple):
    """What takes turns: the pass, its calls of the local kernel alone, what it sends alone."""

    whole: Callable[[], object]
    computation: Callable[[], object]
    communication: Callable[[], object]


class RankCell:
    """Made by all ranks together, but for what one of them may raise; nothing is sent before `verify`.

    Raises UnsupportedError for heads, chunks or a restricted mask that the arrangement or its kernel does not take.
    """

    def __init__(
        self,
        form: LocalForm,
        case: Case,
        mask: Mask,
        groups: Groups,
        device: torch.device,
        together: Together,
        oracles: Path,
    ) -> None:
        assert case.arrangement is not None
        self.case, self.arrangement, self.groups = case, case.arrangement, groups
        self._form, self._device, self._together = form, device, together
        start = time.perf_counter()
        self.setting = self._setting(mask)
        self.mechanism = self._mechanism(self.setting)
        self.prepare_ms = (time.perf_counter() - start) * 1e3
        self.imbalance = imbalance(mask.slices, mask.seqlen, self.setting.sharding.shards)
        whole = draw_tensors(case, device, gradients=True)
        # Before the mechanism has its hands on the data; one rank compares what all have gathered.
        self._verifier = Verifier(case, mask, whole, oracles) if together.rank == 0 else None
        shard = self.mechanism.shard
        self._q, self._k, self._v, self._dout = (
            scatter(tensor, shard) for tensor in (whole.q, whole.k, whole.v, whole.dout)
        )
        self._computation = Computation(self.setting, self.mechanism.calls, self._passes)
        self._communication = self._mechanism(replace(self.setting, kernel=NoKernel()))
        self._first_ms: dict[str, float] = {}
        self._sent: dict[str, int] = {}
        self.verdict: Verdict | None = None

    @property
    def _passes(self) -> tuple[str, ...]:
        return self._form.support.passes[self._device.type]

    @property
    def flags(self) -> list[str]:
        """That the mechanism is a simpler one on this topology."""
        return ["degenerate"] if self.arrangement.really != self.arrangement.mechanism else []

    @property
    def backend(self) -> str:
        """What ran: the mechanism it really is, and the path of its kernel."""
        plans = [call.plan for call in self.mechanism.calls]
        return (
            f"{self.arrangement.really}, {self._form.backend(plans[0]) if plans else 'no call of the kernel'}"
        )

    @property
    def relative_error(self) -> dict[str, float | None] | None:
        """Of the gathered tensors, known to rank 0."""
        return self.verdict.relative_error if self.verdict else None

    def forward(self) -> torch.Tensor:
        """out of this rank's rows."""
        return self.mechanism.forward(self._q, self._k, self._v)

    def backward(self) -> tuple[torch.Tensor, ...]:
        """dq, dk, dv of this rank's rows, of the last forward."""
        return self.mechanism.backward(self._dout)

    def verify(self, again: bool = False) -> Outcome | None:
        """Compare what all ranks computed with the oracle, once, and after timing `again`; what is wrong, or None."""
        if self.verdict is None:
            self._first("forward", self.forward)
            if "backward" in self._passes:
                self._first("backward", self.backward)
        elif not again:
            return None
        gradients = "backward" in self._passes
        gathered = Prepared(
            lambda: self._whole(self.forward()),
            lambda: tuple(self._whole(gradient) for gradient in self.backward()),
            self.mechanism.release,
            "hsd",
            self.backend,
        )
        if self._verifier is not None:
            verdict = self._verifier.check(gathered, gradients)
        else:
            gathered.forward()
            if gradients and gathered.backward is not None:
                gathered.backward()
            verdict = Verdict({}, None)
        self.verdict = self._together.gather(verdict)[0]
        if self.verdict is None or self.verdict.wrong is None:
            return None
        reason = f"after it was timed, {self.verdict.wrong}" if again else self.verdict.wrong
        return Outcome(
            status="wrong", reason=reason, relative_error=self.verdict.relative_error, backend=self.backend
        )

    def calls(self, pass_: str) -> Calls:
        """The calls that are timed for a pass, each called once already."""
        forward = Calls(self.forward, self._computation.forward, self._communication_forward)
        # A backward is of a forward that stays; in both kinds of call.
        for call in forward:
            call()
        if pass_ == "forward":
            return forward
        backward = Calls(self.backward, self._computation.backward, self._communication_backward)
        for call in backward:
            call()
        return backward

    def sent_bytes(self, pass_: str) -> int:
        """Bytes this rank sent in its first pass of this kind."""
        return self._sent[pass_]

    def first_ms(self, pass_: str) -> float:
        """Milliseconds of the first calls a pass needs, compilation included."""
        passes = ("forward",) if pass_ == "forward" else ("forward", "backward")
        return sum(self._first_ms[name] for name in passes)

    def peak_bytes(self, pass_: str) -> int:
        """The allocator's peak over the inputs; a backward's includes its forward."""
        self.mechanism.release()
        call = self.forward if pass_ == "forward" else lambda: (self.forward(), self.backward())
        return peak_bytes(call, self._device)

    def _first(self, pass_: str, call: Callable[[], object]) -> None:
        self.groups.traffic.clear()
        self._first_ms[pass_] = first_call(call, self._device)
        self._sent[pass_] = self.groups.traffic.total

    def _communication_forward(self) -> object:
        return self._communication.forward(self._q, self._k, self._v)

    def _communication_backward(self) -> object:
        return self._communication.backward(self._dout)

    def _setting(self, mask: Mask) -> Setting:
        case, topology = self.case, self.arrangement.topology
        sharding = shard_sequence(
            self.arrangement.sharding, topology.ring, mask.seqlen, mask.slices, mask.documents or None
        )
        shape = (case.q_heads, case.kv_heads, case.head_dim, getattr(torch, case.dtype), self._device)
        return Setting(mask.slices, sharding, *shape, self._form.load())

    def _mechanism(self, setting: Setting) -> Mechanism:
        form = load_mechanism(self.arrangement.mechanism)
        try:
            return Mechanism(form, self.groups, setting, self.arrangement.head_chunks)
        except LongcaError as error:  # chunks that do not divide the heads of a rank
            raise UnsupportedError(str(error)) from error

    def _whole(self, local: torch.Tensor) -> torch.Tensor:
        return gather(local, self.setting.sharding, self.arrangement.topology)
