"""Cells of a table: what a kernel came to at one place of the grid on one device, over all samples."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from longca.flops import attention_flops
from longca.reporting.long import Row
from longca.reporting.words import NOT_MEASURED, count, plain, status_words, worst

NO_DEVICE = "no device yet"
# A smaller lead may be the card's: one cell of one kernel, on card after card, lies within 2 % (the controls in
# docs/findings.md).
LEVEL = 0.02
WITHIN_SPREAD = f"p20 to p80 meet, or less than {LEVEL:.0%} apart, as one cell is from card to card"


class Place(NamedTuple):
    """What the cells of a table's row share; `block` and nominal `density` are block-sparse's, else None.

    ranks: that a case is spread over, 1 outside context parallel.
    """

    family: str
    device: str
    dataset: str
    q_heads: int
    kv_heads: int
    head_dim: int
    dtype: str
    pass_: str
    pattern: str
    seqlen: int
    block: int | None
    density: float | None
    ranks: int

    @property
    def heads(self) -> str:
        """Query heads and key-value heads, as in paths."""
        return f"{self.q_heads}-{self.kv_heads}"

    @property
    def subject(self) -> str:
        """What a sentence is about: it runs over lengths, or for a block-sparse pattern over densities."""
        return self.pattern if self.block is None else f"{self.pattern} {self.block}, {self.seqlen} tokens"


@dataclass(frozen=True)
class Cell:
    """A kernel at a place: the rows of all its samples, measured or not.

    It has numbers only where every sample is ok, so that the kernels of a row are compared on the same masks.
    """

    place: Place
    kernel: str
    rows: tuple[Row, ...]

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many samples came to each status."""
        return count([row["status"] for row in self.rows])

    @cached_property
    def ok(self) -> bool:
        """Whether every sample was measured and verified."""
        return set(self.counts) == {"ok"}

    @property
    def status(self) -> str:
        """The status that most needs a reader's eye."""
        return worst(self.counts)

    @property
    def words(self) -> str:
        """The statuses as words."""
        return status_words(self.counts)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not ok, each reason once."""
        return tuple(dict.fromkeys(row["reason"] for row in self.rows if row["reason"]))

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags of any sample, each once."""
        return tuple(dict.fromkeys(flag for row in self.rows for flag in row.get("flags") or ()))

    @cached_property
    def machine(self) -> str:
        """The device, and the software that a number depends on most, each version once."""
        said = [plain(self.place.device)]
        for name in ("torch", "cuda", "driver"):
            values = dict.fromkeys(str(v) for row in self.rows if (v := row.get(f"environment_{name}")))
            said += [f"{name} {plain(', '.join(values), 40)}"] if values else []
        return ", ".join(said)

    def throughput(self, quantile: str = "p50") -> float | None:
        """TFLOP/s a rank at a quantile (p20, p50, p80) of latency: FLOPs summed by times summed; None unless ok."""
        if not self.ok:
            return None
        place, milliseconds = self.place, sum(row[f"latency_ms_{quantile}"] for row in self.rows)
        area = sum(row["area"] for row in self.rows)
        flops = attention_flops(area, place.q_heads, place.head_dim, place.pass_) / place.ranks
        return flops / milliseconds / 1e9

    def is_ahead_of(self, other: "Cell") -> bool:
        """Whether it is faster beyond the spread of samples, p20 to p80, and of runs."""
        # A slow call is a low throughput.
        slow, fast = self.throughput("p80") or 0.0, other.throughput("p20") or 0.0
        ahead = (self.throughput() or 0.0) > (1 + LEVEL) * (other.throughput() or 0.0)
        return ahead and slow > fast

    def latency(self, quantile: str) -> float | None:
        """Milliseconds at a quantile, summed over the samples; None unless ok."""
        return sum(row[f"latency_ms_{quantile}"] for row in self.rows) if self.ok else None

    @property
    def peak_memory_bytes(self) -> int | None:
        """The largest peak of the samples, in bytes; None unless ok."""
        return max(row["peak_memory_bytes"] for row in self.rows) if self.ok else None

    def error(self, tensors: Sequence[str]) -> float | None:
        """The largest relative error of `tensors` over the samples compared with the oracle, or None."""
        errors = [row.get(f"relative_error_{tensor}") for row in self.rows for tensor in tensors]
        return max((error for error in errors if error is not None), default=None)


def devices(rows: Iterable[Row]) -> list[str]:
    """Devices that measured something, in the order of the rows; NO_DEVICE where nothing is measured yet."""
    seen = dict.fromkeys(device_of(row) for row in rows if row["status"] != NOT_MEASURED)
    return list(seen) or [NO_DEVICE]


def device_of(row: Row) -> str:
    """The device a record was measured on."""
    return row.get("environment_device") or "unknown device"


def cells_of(rows: Sequence[Row]) -> list[Cell]:
    """The cells of a long table, in its order, for each device the whole grid.

    Records of different devices never meet in a place: on each, what another one measured is `not measured`.
    """
    return [cell for device in devices(rows) for cell in _cells_on(device, rows)]


def _cells_on(device: str, rows: Sequence[Row]) -> list[Cell]:
    found: dict[tuple[Place, str], list[Row]] = {}
    for row in rows:
        elsewhere = row["status"] != NOT_MEASURED and device_of(row) != device
        shown = {**row, **_not_measured_here(device)} if elsewhere else row
        found.setdefault((_place(device, row), row["kernel"]), []).append(shown)
    return [Cell(place, kernel, tuple(samples)) for (place, kernel), samples in found.items()]


def _not_measured_here(device: str) -> Row:
    errors = {f"relative_error_{tensor}": None for tensor in ("out", "dq", "dk", "dv")}
    return {
        "status": NOT_MEASURED,
        "reason": f"measured on another device than {device}",
        "flags": [],
        **errors,
    }


def _place(device: str, row: Row) -> Place:
    return Place(
        row["family"],
        device,
        row["dataset"],
        row["q_heads"],
        row["kv_heads"],
        row["head_dim"],
        row["dtype"],
        row["pass"],
        row["pattern"],
        row["seqlen"],
        row.get("block"),
        row.get("density_nominal"),
        row.get("world_size") or 1,
    )
