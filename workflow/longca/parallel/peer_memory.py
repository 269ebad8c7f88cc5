"""Memory that all GPUs of one host map, written to by copy engines and by stream operations: no kernel is launched.

torch's symmetric memory gives the mapping. A flag is written and waited for as an operation of a stream, which takes no
multiprocessor either; a torch.distributed signal is a kernel, which would wait for the attention that it is sent under.
"""

import ctypes
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric_memory

_AT_LEAST = 0  # CU_STREAM_WAIT_VALUE_GEQ
_FLAG_BYTES = 4


class PeerMemory:
    """A SharedMemory of the GPUs of a group, which can reach each other. Collective; freed with its last view.

    Raises RuntimeError where they cannot, and where the driver refuses an operation.
    """

    def __init__(self, group: dist.ProcessGroup, size: int) -> None:
        # Nothing here is multicast, and not every host can.
        os.environ["TORCH_SYMM_MEM_DISABLE_MULTICAST"] = "1"
        device = torch.device("cuda", torch.cuda.current_device())
        torch.cuda.synchronize(device)  # what it takes the place of may still be read
        self._own = symmetric_memory.empty(size, dtype=torch.uint8, device=device)
        self._own[: min(size, 4096)].zero_()
        self._handle = symmetric_memory.rendezvous(self._own, group)
        self._rank = dist.get_rank(group)
        self._streams: dict[int, torch.cuda.Stream] = {}
        torch.cuda.synchronize(device)
        dist.barrier(group)

    def room(self, rank: int, begin: int, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """See SharedMemory."""
        return self._handle.get_buffer(rank, tuple(shape), dtype, begin // dtype.itemsize)

    def raise_flag(self, rank: int, flag: int, value: int) -> None:
        """See SharedMemory."""
        self._on_stream("cuStreamWriteValue32_v2", rank, flag, value)

    def wait_flag(self, flag: int, value: int) -> None:
        """See SharedMemory."""
        self._on_stream("cuStreamWaitValue32_v2", self._rank, flag, value)

    @contextmanager
    def beside(self, rank: int) -> Iterator[torch.cuda.Event]:
        """See SharedMemory: a stream a peer, so that copies to several go on at once."""
        stream = self._streams.get(rank)
        if stream is None:
            stream = self._streams[rank] = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        done = torch.cuda.Event()
        with torch.cuda.stream(stream):
            yield done
            done.record()

    def _on_stream(self, operation: str, rank: int, flag: int, value: int) -> None:
        address = self._handle.buffer_ptrs[rank] + flag * _FLAG_BYTES
        stream = torch.cuda.current_stream().cuda_stream
        # Both take flags of 0: to write behind all earlier writes of the stream, to wait until at least the value.
        error = getattr(_driver(), operation)(stream, address, value, _AT_LEAST)
        if error:
            raise RuntimeError(f"{operation} of a flag of rank {rank}: CUDA error {error}")


@cache
def _driver() -> Any:
    library = ctypes.CDLL("libcuda.so.1")
    for name in ("cuStreamWriteValue32_v2", "cuStreamWaitValue32_v2"):
        getattr(library, name).argtypes = (
            ctypes.c_void_p,
            ctypes.c_uint64,
            ctypes.c_uint32,
            ctypes.c_uint,
        )
    return library
