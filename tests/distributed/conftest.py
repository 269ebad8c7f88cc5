"""Worlds that serve many tests: one start of processes for each number of ranks."""

import pytest
from parallel_cases import run_cases
from parallel_grid import CASES
from worlds import run_world


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """results(size) -> what every rank of a world of `size` says of every case of that size."""
    known = {}

    def of(size):
        if size not in known:
            known[size] = None  # a world that fails fails all its tests, and is not started again
            known[size] = run_world(size, run_cases, CASES[size], tmp_path_factory.mktemp("world"), 240)
        assert known[size], f"the world of {size} ranks failed"
        return known[size]

    return of
