"""What is written between calls, so that one's data does not speed up the next."""

from pathlib import Path

import pytest

from longca.measure.timing import CPU_FLUSH_MOST_BYTES, cpu_flush_bytes


@pytest.mark.parametrize(
    ("said", "flushed"),
    [
        ("32768K\n", 64 << 20),
        ("48M\n", 96 << 20),
        ("16777216", 32 << 20),
        ("491520K\n", CPU_FLUSH_MOST_BYTES),  # a virtual machine of two cores, on a socket of many
    ],
)
def test_twice_the_last_level_cache_is_flushed_within_a_small_jobs_memory(
    said: str, flushed: int, tmp_path: Path
) -> None:
    file = tmp_path / "size"
    file.write_text(said)
    assert cpu_flush_bytes(file) == flushed


def test_where_linux_says_nothing_a_common_size_is_flushed(tmp_path: Path) -> None:
    assert cpu_flush_bytes(tmp_path / "none") == 64 << 20
