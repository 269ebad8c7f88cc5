"""A study that pins a model of device is measured on no other, and a world of ranks is of one model."""

import pytest
from rich.console import Console

from longca.cases import study_series
from longca.errors import LongcaError
from longca.measure.budget import NO_LIMIT
from longca.measure.protocol import Loaded, Ready
from longca.measure.running import measure_series
from longca.measure.world.world import World
from longca.study.loading import check_study


def study(**measure):
    grid = {"kernels": ["naive"], "patterns": ["causal"], "seqlens": [32], "heads": ["2-1"], "head_dim": 16}
    grid |= {"dtype": "float32"}
    protocol = {"device": "cpu", "warmups": 1, "repetitions": 3, "threads": 1}
    return check_study({"study": "pinned", "measure": protocol | measure, "dense": grid}, "test")


@pytest.mark.parametrize(
    ("model", "name", "fits"),
    [
        (None, "NVIDIA H100 PCIe", True),
        ("H100", "NVIDIA H100 PCIe", True),
        ("h100 pcie", "NVIDIA H100 PCIe", True),
        ("H100 PCIe", "NVIDIA H100 80GB HBM3", False),
        ("H200", "NVIDIA H100 80GB HBM3", False),
    ],
)
def test_a_part_of_the_name_is_enough(model, name, fits):
    protocol = study(**({"device_model": model} if model else {})).measure
    if fits:
        protocol.check_device(name)
    else:
        with pytest.raises(LongcaError, match=rf"measure\.device_model is {model}, here is {name}; right: "):
            protocol.check_device(name)


def test_on_another_model_nothing_is_measured(tmp_path):
    pinned = study(device_model="H200")
    with pytest.raises(LongcaError, match="device_model is H200, here is "):
        measure_series(pinned, tmp_path, study_series(pinned), NO_LIMIT, frozenset(), Console(quiet=True))
    assert not list(tmp_path.rglob("*.jsonl"))


class TwoRanks(World):
    """Ranks that say they run on these devices, each as its process would."""

    def __init__(self, *devices: str) -> None:
        super().__init__(len(devices))
        loaded = Loaded(versions={}, missing=None)
        ready = [Ready(device="cuda", environment={"device": device}) for device in devices]
        self.answers = [
            {rank: one for rank, one in enumerate(ready)},
            dict.fromkeys(range(len(devices)), loaded),
        ]
        self.closed = False

    def _start(self):
        pass

    def _send(self, line):
        pass

    def _arrived(self, missing, longest_s):
        return {rank: one.model_dump_json() for rank, one in self.answers.pop(0).items()}

    def close(self):
        self.closed = True


def test_ranks_are_all_on_one_model():
    assert TwoRanks("NVIDIA H200", "NVIDIA H200").start(1.0)[0].environment == {"device": "NVIDIA H200"}
    mixed = TwoRanks("NVIDIA H200", "NVIDIA H100 PCIe")
    with pytest.raises(LongcaError, match="ranks are on NVIDIA H100 PCIe and NVIDIA H200; right: one model"):
        mixed.start(1.0)
    assert mixed.closed
