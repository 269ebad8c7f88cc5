"""Lines of JSON between `longca measure` and its worker processes: what is asked and what comes back."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

# Raise this when a change of timing, memory or verification makes earlier measurements mean something else.
PROTOCOL_VERSION = 2


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
    """Measure one case on the mask or map in `mask_file`; without `gradients` a forward is checked by out alone.

    Without `repetitions` it is compiled only: prepared and called once. sampling_s: how long calls are timed, see
    timing.warm_up. oracles: the folder of verify.Verifier.
    """

    number: int
    gradients: bool
    case: dict[str, Any]
    mask_file: str
    warmups: int
    repetitions: int
    sampling_s: float | None = None
    oracles: str | None = None


class Outcome(_Message):
    """What came of a case: the columns of its record that only the worker knows, with the record's names and units.

    number: of the request that this answers; -1 where no worker was asked. clean: after out_of_memory, whether the
    worker has all memory back, and can go on.
    """

    kind: Literal["outcome"] = "outcome"
    number: int = -1
    status: str
    reason: str | None = None
    clean: bool = False
    samples_ms: list[float] | None = None
    peak_memory_bytes: int | None = None
    prepare_ms: float | None = None
    compile_ms: float | None = None
    relative_error: dict[str, float | None] | None = None
    backend: str | None = None
    flags: list[str] = Field(default_factory=list)
    peak_tflops: float | None = None
    # The columns of context parallel alone.
    parallel: dict[str, Any] = Field(default_factory=dict)
    state: dict[str, Any] = Field(default_factory=dict)
    # When warm-ups began (seconds of the machine's monotonic clock), and how long timing and weighing memory took.
    timed_from: float | None = None
    timed_for_s: float = 0.0
    # What this case paid of the cell that its passes share.
    prepared_for_s: float = 0.0
    verified_for_s: float = 0.0


Answer = Annotated[Ready | Loaded | Outcome, Field(discriminator="kind")]
