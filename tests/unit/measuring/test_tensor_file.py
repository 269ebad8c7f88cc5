"""Tensors written are read back to the last bit, whole or not at all."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from longca.measure import tensor_file
from longca.measure.tensor_file import read_tensors, write_tensors

LONG = 3600.0


@pytest.fixture
def tensors(monkeypatch):
    """Several pieces each, cut within an element, and one of a piece's size."""
    monkeypatch.setattr(tensor_file, "_PIECE_BYTES", 500)
    generator = torch.Generator().manual_seed(0)
    shapes = [(3, 7, 16), (125, 1), (1,)]
    drawn = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    drawn[0][0, 0, :3] = torch.tensor([float("nan"), float("-inf"), -0.0])
    return [*drawn, torch.arange(125, dtype=torch.float32)]


def test_what_was_written_is_read(tmp_path, tensors):
    assert write_tensors(tmp_path / "one.truth", tensors, LONG)
    found = [torch.empty_like(tensor) for tensor in tensors]
    read_tensors(tmp_path / "one.truth", found)
    for there, here in zip(found, tensors, strict=True):
        assert torch.equal(there.view(torch.uint8), here.view(torch.uint8))
    assert [file.name for file in tmp_path.iterdir()] == ["one.truth"]


def test_what_would_take_longer_than_allowed_leaves_nothing(tmp_path, tensors):
    assert not write_tensors(tmp_path / "one.truth", tensors, 0.0)
    assert not write_tensors(tmp_path / "two.truth", tensors[-1:], 0.0)  # even where all was written
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", [1, -1])
def test_a_file_of_another_size_is_no_answer(tmp_path, tensors, change):
    file = tmp_path / "one.truth"
    write_tensors(file, tensors, LONG)
    content = file.read_bytes()
    file.write_bytes(content + b"0" if change > 0 else content[:-1])
    with pytest.raises(
        OSError, match=rf"one.truth has {len(content) + change} bytes, right: {len(content)}$"
    ):
        read_tensors(file, [torch.empty_like(tensor) for tensor in tensors])


def test_writers_of_one_file_do_not_disturb_each_other(tmp_path):
    tensors, file = [torch.arange(1 << 16, dtype=torch.float64)], tmp_path / "truth"
    with ThreadPoolExecutor(8) as pool:
        written = list(pool.map(lambda _: write_tensors(file, tensors, within_s=60.0), range(64)))
    assert all(written)
    read = [torch.empty(1 << 16, dtype=torch.float64)]
    read_tensors(file, read)
    assert torch.equal(read[0], tensors[0])
    assert list(tmp_path.iterdir()) == [file]
