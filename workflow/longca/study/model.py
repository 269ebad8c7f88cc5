"""The study model: the one definition of what a config may say, and config/schema.json is derived from it."""

from typing import Annotated, Literal

from pydantic import Field, WithJsonSchema, model_validator

from longca.data.corpus import Corpus, check_dataset_name
from longca.data.histogram import PUBLISHED
from longca.data.packing import AUTO, LONG_SUFFIX
from longca.errors import LongcaError
from longca.names import unknown_name
from longca.study.axes import Count, DatasetName, DenseKernel, DType, Pattern, Strict
from longca.study.context_parallel import ContextParallelGrid
from longca.study.grids import DenseGrid, OneOrSeveral, SparseGrid
from longca.study.units import OPTIONAL_DURATION_SCHEMA, Duration, HeadsField, Tokens


class MaskParameters(Strict):
    """Sizes the window, global and block patterns take."""

    window: Annotated[int, Field(ge=0)] = 1024
    """tokens a query sees to each side of its own, inclusive"""
    global_tokens: Annotated[int, Field(ge=0)] = 1024
    """first tokens that see all and are seen by all"""
    block: Count = 1024
    """tokens a block of block_causal_document"""


class Control(Strict):
    """A dense forward measured on every card, at the start of a run and again in a long one, so that runs compare."""

    kernel: DenseKernel
    """a dense kernel that every machine of the study has"""
    pattern: Pattern = "full"
    """a static pattern"""
    seqlen: Tokens
    """tokens of its sequence"""
    heads: HeadsField
    """query heads - key-value heads, as `64-8`"""
    head_dim: Count = 128
    """elements a head"""
    dtype: DType = "bfloat16"
    """of q, k and v"""
    every: Annotated[Duration, Field(json_schema_extra={"default": "5m"})] = 300.0
    """a control this old on its card is measured again before the next kernel; s, m or h"""


# However long a call takes, it is timed so often at least.
FEWEST_SAMPLES = 5


class Protocol(Strict):
    """How a case is measured. A change of `sampling` makes older measurements invalid."""

    device: Literal["auto", "cpu", "cuda"] = "auto"
    """where; auto is the GPU where there is one"""
    device_model: Annotated[str, Field(min_length=1)] | None = None
    """a part of the device's name, as H200: on any other nothing is measured"""
    warmups: Count = 3
    """calls before the timed ones"""
    repetitions: Annotated[int, Field(ge=3)] = 20
    """timed calls, each a sample of the record"""
    sampling_time: Annotated[Duration | None, WithJsonSchema(OPTIONAL_DURATION_SCHEMA)] = None
    """a longer call is timed less often: as this allows, 5 times at least; s, m or h"""
    case_timeout: Annotated[Duration, Field(json_schema_extra={"default": "10m"})] = 600.0
    """the longest a case may take, preparing and verifying it included; s, m or h"""
    threads: Count | None = None
    """CPU threads of a case; all cores where it is left out"""
    control: Control | None = None
    """a cell by which runs and cards are compared; none is measured where it is left out"""

    def check_device(self, name: str) -> None:
        """Raise LongcaError where a device of this name is not of the model that is asked for."""
        if self.device_model is not None and self.device_model.lower() not in name.lower():
            raise LongcaError(
                f"measure.device_model is {self.device_model}, here is {name}; right: a machine that has one, "
                "which a job of SLURM's gets by its constraint or gres"
            )

    @property
    def sampling(self) -> dict[str, int | float]:
        """What decides how a call is sampled, as it stands in a measurement's key."""
        keys = ("warmups", "repetitions", "sampling_time")
        return {name: getattr(self, name) for name in keys if getattr(self, name) is not None}

    def samples_of(self, call_s: float) -> int:
        """How often a call that takes `call_s` seconds is timed."""
        if self.sampling_time is None or call_s <= 0:
            return self.repetitions
        return min(self.repetitions, max(FEWEST_SAMPLES, int(self.sampling_time / call_s)))


class Study(Strict):
    """One study: a grid of cases and where its results go."""

    study: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
    """name; results go to results/<name>/"""
    frozen: bool = False
    """its records are inputs, kept in the repository: nothing of it is drawn or measured again"""
    seed: Annotated[int, Field(ge=0)] = 42
    """of every draw: documents, masks, block maps"""
    datasets: dict[DatasetName, Corpus] = Field(default_factory=dict)
    """corpora of your own: a name each, used in `dense.datasets`"""
    mask: MaskParameters = MaskParameters()
    """sizes of mask patterns"""
    measure: Protocol = Protocol()
    """how a case is measured"""
    dense: Annotated[tuple[DenseGrid, ...], OneOrSeveral()] = ()
    """dense kernels over the static patterns: a grid, or a list of grids, measured in their order"""
    sparse: Annotated[tuple[SparseGrid, ...], OneOrSeveral()] = ()
    """block-sparse kernels over the dynamic patterns: a grid or a list of grids"""
    context_parallel: Annotated[tuple[ContextParallelGrid, ...], OneOrSeveral()] = ()
    """mechanisms over many ranks: a grid or a list of grids"""

    @model_validator(mode="after")
    def _something_to_measure(self) -> "Study":
        if not (self.dense or self.sparse or self.context_parallel):
            raise ValueError(
                "the study measures nothing; right: a grid under dense, sparse or context_parallel"
            )
        return self

    @model_validator(mode="after")
    def _datasets_are_known(self) -> "Study":
        for name in self.datasets:
            try:
                check_dataset_name(name)
            except ValueError as error:
                raise ValueError(f"datasets.{name}: {error}") from None
        known = {AUTO, *PUBLISHED, *self.datasets}
        for name in (name for grid in self.dense for name in grid.datasets):
            if name not in known:
                raise ValueError(f"dense.datasets: {unknown_name(name, known, 'dataset')}")
        # Long samples are drawn of each. `auto` chooses by length for one GPU: here a dataset has its own name.
        known = {found for name in known - {AUTO} for found in (name, name + LONG_SUFFIX)}
        for name in (name for grid in self.context_parallel for name in grid.datasets):
            if name not in known:
                raise ValueError(f"context_parallel.datasets: {unknown_name(name, known, 'dataset')}")
        return self
