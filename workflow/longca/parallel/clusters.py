"""The clusters that the cost model knows by name: workflow/resources/clusters.yaml."""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from longca.errors import LongcaError
from longca.names import unknown_name

RESOURCE = Path(__file__).parents[2] / "resources" / "clusters.yaml"


@dataclass(frozen=True)
class Link:
    """A way from one GPU to another: bytes a second one way, seconds a message; assumed: nobody here measured it."""

    bytes_per_s: float
    latency_s: float
    assumed: bool

    def seconds(self, messages: float, size: float) -> float:
        """Of so many messages of `size` bytes in all."""
        return messages * self.latency_s + size / self.bytes_per_s


@dataclass(frozen=True)
class Cluster:
    """Nodes of `gpus_per_node`, what joins GPUs inside a node, and what joins nodes, a GPU."""

    name: str
    what: str
    gpus_per_node: int
    inside: Link
    between: Link

    def with_inside(self, link: Link) -> "Cluster":
        """The same cluster with a measured link inside its nodes."""
        return replace(self, inside=link)


@cache
def clusters() -> dict[str, Cluster]:
    """All clusters by name."""
    content = yaml.safe_load(RESOURCE.read_text(encoding="utf-8"))
    return {name: _cluster(name, entry) for name, entry in content.items()}


def find_cluster(name: str) -> Cluster:
    """A cluster by its name. Raises LongcaError for an unknown one."""
    known = clusters()
    if name not in known:
        raise LongcaError(unknown_name(name, known, "cluster"))
    return known[name]


def _cluster(name: str, entry: dict[str, Any]) -> Cluster:
    links = {
        where: Link(
            entry[where]["gigabytes_per_s"] * 1e9,
            entry[where]["microseconds"] * 1e-6,
            assumed=where in entry["assumed"],
        )
        for where in ("inside", "between")
    }
    return Cluster(name, entry["what"], entry["gpus_per_node"], **links)
