"""One cluster for all tests, and a checkout whose profile is adapted to it as profiles/slurm/README.md says."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import Cluster, obstacle
from slurm_workspace import SlurmWorkspace


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster, started once. Where none can be, a test is skipped; not where changes are checked."""
    reason = obstacle()
    if reason:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    cluster = Cluster(tmp_path_factory.mktemp("cluster") / "state")
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def workspace(repository: Path, cluster: Cluster, tmp_path: Path) -> Iterator[SlurmWorkspace]:
    """A checkout in which nothing was run, in a folder whose name has a space."""
    folder = tmp_path / "a study"
    folder.mkdir()
    workspace = SlurmWorkspace.at(repository, folder, cluster)
    yield workspace
    workspace.end()
