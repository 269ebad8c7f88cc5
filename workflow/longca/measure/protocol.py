"""Lines of JSON between `longca measure` and its worker processes: what is asked and what comes back."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

# Raise this when a change of timing, memory or verification makes earlier measurements mean something else.
PROTOCOL_VERSION = 1


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Ready(_Message):
    """A worker's first line, before it imports the kernel's library: where it runs (see device.describe)."""

    kind: Literal["ready"] = "ready"
    device: Literal["cpu", "cuda"]
    environment: dict[str, Any]


class Loaded(_Message):
    """The kernel's library: version by distribution (None: it has none), and why it cannot be imported, or None.

    serves: whether requests are answered; not where the kernel's own module is what cannot be imported.
    """

    kind: Literal["loaded"] = "loaded"
    versions: dict[str, str | None]
    missing: str | None
    serves: bool = True


class Request(_Message):
    """Measure one case on the mask or map in `mask_file`; without `gradients` a forward is checked by out alone."""

    number: int
    gradients: bool
    case: dict[str, Any]
    mask_file: str
    warmups: int
    repetitions: int


class Outcome(_Message):
    """What came of a case: the columns of its record that only the worker knows, with the record's names and units.

    number: of the request that this answers; -1 where no worker was asked.
    """

    kind: Literal["outcome"] = "outcome"
    number: int = -1
    status: str
    reason: str | None = None
    samples_ms: list[float] | None = None
    peak_memory_bytes: int | None = None
    prepare_ms: float | None = None
    compile_ms: float | None = None
    relative_error: dict[str, float | None] | None = None
    backend: str | None = None
    flags: list[str] = Field(default_factory=list)
    peak_tflops: float | None = None
    state: dict[str, Any] = Field(default_factory=dict)
    # When the timed calls began (seconds of the machine's monotonic clock) and how long they took.
    timed_from: float | None = None
    timed_for_s: float = 0.0


Answer = Annotated[Ready | Loaded | Outcome, Field(discriminator="kind")]
