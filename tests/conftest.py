"""Shared by all tests."""

import os
from pathlib import Path

import pytest

# Tests prove values, never speeds: one thread leaves the machine to what runs beside them.
os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return Path(__file__).parents[1]
