"""The account of a run of `longca measure` on one series: a line of jobs/<series>.jsonl. Light: reporting reads it."""

import json
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=0)]


class Job(BaseModel):
    """How a run on one series spent its time; it grows while the run goes on.

    importing_s: waiting for workers to start; preparing_s: preparing and compiling, and cases that failed; verifying_s:
    the oracle and what is compared with it; measuring_s: warming up, timing, weighing memory; control_s: measuring the
    run's control.
    """

    model_config = ConfigDict(extra="forbid")
    series: str
    started_at: str
    wall_s: _Seconds
    to_first_measurement_s: _Seconds | None
    importing_s: _Seconds = 0.0
    preparing_s: _Seconds = 0.0
    verifying_s: _Seconds = 0.0
    measuring_s: _Seconds
    control_s: _Seconds = 0.0
    measured_cases: _Count
    kept_cases: _Count

    @classmethod
    def begin(cls, series: str) -> "Job":
        """The account of a run that begins now."""
        return cls(
            series=series,
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
            wall_s=0.0,
            to_first_measurement_s=None,
            measuring_s=0.0,
            measured_cases=0,
            kept_cases=0,
        )

    def to_line(self) -> str:
        """JSON, seconds to a millisecond."""
        columns = self.model_dump().items()
        return json.dumps({name: round(x, 3) if isinstance(x, float) else x for name, x in columns})
