"""Shared by all tests."""

import os
import signal
from pathlib import Path

import pytest

# Tests prove values, never speeds: one thread leaves the machine to what runs beside them.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# What a shell starts in the background ignores Ctrl-C, and so would every process that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return Path(__file__).parents[1]
