"""The tiny study, run once; tests go on from a copy of what it left."""

from pathlib import Path

import pytest
from workspace import Workspace


@pytest.fixture(scope="session")
def finished(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A workspace whose tiny study is done. Not to be changed: `workspace` is a copy."""
    workspace = Workspace.checkout(repository, tmp_path_factory.mktemp("finished"))
    workspace.succeed("all")
    return workspace


@pytest.fixture
def workspace(finished: Workspace, tmp_path: Path) -> Workspace:
    """A copy of the finished workspace to change."""
    return finished.copy(tmp_path)


@pytest.fixture
def fresh(repository: Path, tmp_path: Path) -> Workspace:
    """A workspace in which nothing was run."""
    return Workspace.checkout(repository, tmp_path)
