"""A case without its pass on one rank: its data, its mechanism, and the calls that are verified and timed."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch

from longca.cases import Case
from longca.kernels.interface import Prepared
from longca.masks.mask import Mask
from longca.measure.memory import peak_bytes
from longca.measure.protocol import Outcome
from longca.measure.tensors import draw_tensors
from longca.measure.timing import first_call
from longca.measure.verify import Verifier
from longca.measure.world.alone import Computation, NoKernel
from longca.measure.world.gate import Gate
from longca.measure.world.making import make_mechanism, make_setting
from longca.measure.world.together import Together
from longca.parallel.gather import gather
from longca.parallel.groups import Groups
from longca.parallel.local_form import LocalForm
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
        self.setting = make_setting(case, mask, form.load(), device)
        self.mechanism = make_mechanism(self.arrangement, groups, self.setting)
        self.prepare_ms = (time.perf_counter() - start) * 1e3
        self.imbalance = imbalance(mask.slices, mask.seqlen, self.setting.sharding.shards)
        whole = draw_tensors(case, device, gradients=True)
        # Before the mechanism has its hands on the data; one rank compares what all have gathered.
        self._verifier = Verifier(case, mask, whole, oracles) if together.rank == 0 else None
        shard = self.mechanism.shard
        self._q, self._k, self._v, self._dout = (
            scatter(tensor, shard) for tensor in (whole.q, whole.k, whole.v, whole.dout)
        )
        self._computation = Computation(self.setting, self.mechanism.calls, self.arrangement.head_chunks)
        silent = replace(self.setting, kernel=NoKernel())
        self._communication = make_mechanism(self.arrangement, groups, silent)
        self._first_ms: dict[str, float] = {}
        self._sent: dict[str, int] = {}
        self._gate: Gate | None = None

    @property
    def _passes(self) -> tuple[str, ...]:
        return self._form.support.passes[self._device.type]

    @property
    def flags(self) -> list[str]:
        """That the mechanism is a simpler one on this topology."""
        return ["degenerate"] if self.arrangement.really != self.arrangement.mechanism else []

    @property
    def backend(self) -> str:
        """What ran: the mechanism it really is, `copies` where engines carry its messages, the path of its kernel."""
        plans = [call.plan for call in self.mechanism.calls]
        kernel = self._form.backend(plans[0]) if plans else "no call of the kernel"
        copies = ["copies"] if self.groups.copies else []
        return ", ".join([self.arrangement.really, *copies, kernel])

    @property
    def relative_error(self) -> dict[str, float | None] | None:
        """Of the gathered tensors, once they were compared."""
        verdict = self._gate.verdict if self._gate else None
        return verdict.relative_error if verdict else None

    @property
    def is_fresh(self) -> bool:
        """Whether it was not compared yet."""
        return self._gate is None

    def forward(self) -> torch.Tensor:
        """out of this rank's rows."""
        return self.mechanism.forward(self._q, self._k, self._v)

    def backward(self) -> tuple[torch.Tensor, ...]:
        """dq, dk, dv of this rank's rows, of the last forward."""
        return self.mechanism.backward(self._dout)

    def verify(self) -> Outcome | None:
        """Compare what all ranks computed with the oracle, once for both passes; what is wrong, or None."""
        if self._gate is None:
            self._first("forward", self.forward)
            if "backward" in self._passes:
                self._first("backward", self.backward)
            self._gate = Gate(self._gathered(), self._verifier, self._together)
        return self._gate.before()

    def verify_again(self, pass_: str) -> Outcome | None:
        """What is wrong with a pass after it was timed, or None."""
        assert self._gate is not None
        return self._gate.after(pass_)

    def _gathered(self) -> Prepared:
        backward = None
        if "backward" in self._passes:

            def backward() -> tuple[torch.Tensor, ...]:
                return tuple(self._whole(gradient) for gradient in self.backward())

        release = self.mechanism.release
        return Prepared(lambda: self._whole(self.forward()), backward, release, "hsd", self.backend)

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
        """The allocator's peak over the inputs, and the mailboxes; a backward's includes its forward."""
        self.mechanism.release()
        call = self.forward if pass_ == "forward" else lambda: (self.forward(), self.backward())
        return peak_bytes(call, self._device) + self.groups.mailbox_bytes

    def _first(self, pass_: str, call: Callable[[], object]) -> None:
        self.groups.traffic.clear()
        self._first_ms[pass_] = first_call(call, self._device)
        self._sent[pass_] = self.groups.traffic.total

    def _communication_forward(self) -> object:
        return self._communication.forward(self._q, self._k, self._v)

    def _communication_backward(self) -> object:
        return self._communication.backward(self._dout)

    def _whole(self, local: torch.Tensor) -> torch.Tensor:
        return gather(local, self.setting.sharding, self.arrangement.topology)
