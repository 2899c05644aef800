"""Zeroed tensors on a CPU that take memory only where something was written.

The system gives a mapped page (mostly 4 kB) memory when it is first written; until then, reading it
yields zeros. So a tensor may have far more slots and columns than are in use, need not be copied to
grow, and gives memory back page by page.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import mmap
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

_MAP_NORESERVE = 0x4000  # of Linux: what is never written need not be available
_OVERCOMMIT = Path("/proc/sys/vm/overcommit_memory")
_STRICT = "2"  # the system promises no more memory than it has, written or not


def can_map(device: torch.device) -> bool:
    """Whether mapped zeros take memory, and count against limits, only where they are written."""
    return device.type == "cpu" and sys.platform == "linux" and not _counts_what_is_mapped()


@cache
def _counts_what_is_mapped() -> bool:
    """Whether mapped pages count against a limit before they are written."""
    import resource  # not on Windows

    limits = [resource.getrlimit(which)[0] for which in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    if set(limits) != {resource.RLIM_INFINITY}:
        return True
    try:
        return _OVERCOMMIT.read_text().strip() == _STRICT
    except OSError:
        return False


def map_zeros(like: Tensor, shape: Sequence[int]) -> Tensor:
    """Returns zeros with the dtype and device of `like`, in a mapping of their own where that is
    possible.
    """
    count = math.prod(shape)
    if not count or not can_map(like.device):
        return like.new_zeros(shape)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE
    try:
        mapping = mmap.mmap(-1, count * like.dtype.itemsize, flags=flags)
    except OSError:  # too many mappings, or no address space is left
        return like.new_zeros(shape)
    with contextlib.suppress(OSError):  # some kernels have no huge pages
        mapping.madvise(mmap.MADV_NOHUGEPAGE)  # one takes memory for 2 MB at the first write
    # the tensor's storage keeps the mapping alive, and ends it
    return torch.frombuffer(mapping, dtype=like.dtype, count=count).view(*shape)


def discard_pages(mapped: Tensor) -> None:
    """Gives back the memory of all whole pages of a contiguous part of a mapped tensor, which are
    zeros from then on.
    """
    start = mapped.data_ptr()
    first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
    last = (start + mapped.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if last > first:
        _madvise()(first, last - first, mmap.MADV_DONTNEED)


@cache
def _madvise() -> ctypes._NamedFuncPointer:
    function = ctypes.CDLL(None).madvise
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return function
