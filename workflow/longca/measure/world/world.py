"""A world of ranks, asked together and ended together: what all kinds of worlds have in common."""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import TracebackType

from pydantic import TypeAdapter

from longca.errors import LongcaError
from longca.measure.protocol import Answer, Loaded, Outcome, Ready, Request

_ANSWERS: TypeAdapter[Ready | Loaded | Outcome] = TypeAdapter(Answer)
_POLL_S = 1.0
# After one rank has failed the others may say what they saw for so long, that the cause be among it.
_GRACE_S = 2.0


class RankLostError(Exception):
    """A rank's process is gone; the message is how it ended."""


class WorldLostError(Exception):
    """The world is gone, all its ranks ended; `status` is crashed, out_of_memory or timeout, the message the reason."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


Reply = Ready | Loaded | Outcome | RankLostError


class World(ABC):
    """Ranks of one kernel. Use as a context manager: leaving it ends every rank, whatever it is at."""

    def __init__(self, world_size: int) -> None:
        self.world_size = world_size

    def start(self, timeout_s: float) -> tuple[Ready, Loaded]:
        """Start every rank; where rank 0 runs, and its library. Raises WorldLostError; LongcaError for two devices."""
        self._start()
        deadline = time.monotonic() + timeout_s
        everyone, (loaded, *_) = (self._answers(deadline, timeout_s) for _ in range(2))
        ready = everyone[0]
        assert isinstance(ready, Ready) and isinstance(loaded, Loaded)
        devices = sorted({one.environment["device"] for one in everyone if isinstance(one, Ready)})
        if len(devices) > 1:
            self.close()
            # The slowest would be every rank's figure.
            raise LongcaError(f"ranks are on {' and '.join(devices)}; right: one model of device for all")
        return ready, loaded

    def measure(self, request: Request, timeout_s: float) -> Outcome:
        """What came of a case. Raises WorldLostError where a rank fails or is late; the world is then gone."""
        self._send(request.model_dump_json())
        outcome = self._answers(time.monotonic() + timeout_s, timeout_s)[0]
        assert isinstance(outcome, Outcome) and outcome.number == request.number
        return outcome

    @abstractmethod
    def close(self) -> None:
        """End every rank."""

    @abstractmethod
    def _start(self) -> None:
        """Start every rank, without waiting for it."""

    @abstractmethod
    def _send(self, line: str) -> None:
        """Ask every rank."""

    @abstractmethod
    def _arrived(self, missing: set[int], longest_s: float) -> Mapping[int, str | RankLostError]:
        """What the `missing` ranks have said by now, or within so many seconds, by rank."""

    def _answers(self, deadline: float, timeout_s: float) -> list[Reply]:
        """One answer of every rank, by rank; where one fails or is late, the world ends."""
        replies: dict[int, Reply] = {}
        while len(replies) < self.world_size and time.monotonic() < deadline:
            missing = set(range(self.world_size)) - set(replies)
            longest_s = max(0.0, min(_POLL_S, deadline - time.monotonic()))
            for rank, said in self._arrived(missing, longest_s).items():
                reply = _ANSWERS.validate_json(said) if isinstance(said, str) else said
                replies[rank] = reply
                if _urgency(reply) is not None:
                    deadline = min(deadline, time.monotonic() + _GRACE_S)
        cause = _cause(replies)
        if cause is None and len(replies) == self.world_size:
            return [replies[rank] for rank in range(self.world_size)]
        self.close()
        if cause is not None:
            raise cause
        late = sorted(set(range(self.world_size)) - set(replies))
        who = "any rank" if len(late) == self.world_size > 1 else f"rank {', '.join(map(str, late))}"
        raise WorldLostError("timeout", f"no answer of {who} within {timeout_s:g} s")

    def __enter__(self) -> "World":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _urgency(reply: Reply) -> int | None:
    """How near a failure is to its cause, 0 the nearest; None for what is none.

    A rank that is gone makes the others' sends fail, and so does one without memory.
    """
    if isinstance(reply, RankLostError):
        return 0
    if isinstance(reply, Outcome) and reply.status in ("out_of_memory", "crashed"):
        return 1 if reply.status == "out_of_memory" else 2
    return None


def _cause(replies: Mapping[int, Reply]) -> WorldLostError | None:
    """The failure that the others come from: of the most urgent ones that of the first rank."""
    urgent = [(urgency, rank) for rank, reply in replies.items() if (urgency := _urgency(reply)) is not None]
    if not urgent:
        return None
    reply = replies[rank := min(urgent)[1]]
    if isinstance(reply, Outcome):
        return WorldLostError(reply.status, reply.reason or "")
    return WorldLostError("crashed", f"rank {rank} {reply}")
