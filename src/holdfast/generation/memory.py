"""Memory: its size, giving freed memory back, and retrying with smaller batches."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch

from holdfast.errors import ModelError

_LOG = logging.getLogger("holdfast")
_Result = TypeVar("_Result")
# files with the memory limit of a container, in the two versions of Linux's control groups
_CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_DEFAULT_BYTES = 8 * 2**30  # assumed if the system does not report its memory
_OUT_OF_MEMORY = ("DefaultCPUAllocator", "not enough memory", "out of memory", "bad_alloc")


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out; on a CPU, torch raises a plain RuntimeError."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(text in str(error) for text in _OUT_OF_MEMORY)


def halve_batch(chats: int, model: str, batch_size: int) -> int:
    """Returns half of the chats with which memory ran out, and logs a warning.

    Raises:
        ModelError: memory ran out with a single chat.
    """
    if chats <= 1:
        raise ModelError(
            f"Out of memory with a single chat of {model}, so a batch_size below {batch_size} would"
            " not help; use a shorter chat, a smaller dtype or a smaller model."
        )
    _LOG.warning(
        f"Out of memory with {chats} chats of {model} at once; continuing with {chats // 2} at a "
        f"time. A smaller batch_size (now {batch_size}) would avoid this."
    )
    return chats // 2


def compute_with_halving(
    compute: Callable[[int], _Result], batch_size: int, chats: int, model: str
) -> _Result:
    """Calls `compute(batch_size)`; each time memory runs out, again with half as many chats."""
    size = batch_size
    while True:
        try:
            return compute(size)
        except (RuntimeError, MemoryError) as error:
            if not ran_out_of_memory(error):
                raise
        # not in the handler: its error would keep the computed tensors alive
        size = halve_batch(min(size, chats), model, batch_size)


def release_freed_memory() -> None:
    """Gives freed memory, which glibc would keep for later use, back to the system."""
    with contextlib.suppress(TypeError, AttributeError):  # not Linux, or not glibc
        ctypes.CDLL(None).malloc_trim(0)


def memory_of_this_process() -> int:
    """Bytes that this process may use: the machine's memory, or the container's limit if lower."""
    sizes = [limit for path in _CGROUP_LIMITS if (limit := _read_limit(path)) is not None]
    if hasattr(os, "sysconf"):  # not on Windows
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(sizes, default=_DEFAULT_BYTES)


def _read_limit(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # there is no such file, or the limit is "max"
        return None
