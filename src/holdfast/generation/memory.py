"""Memory: how much there is, what is given back, and smaller batches where it runs out."""

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
# what a container may use, in the two versions of Linux's control groups
_CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_UNKNOWN = 8 * 2**30  # bytes that are assumed where the system does not say
_SIGNS = ("DefaultCPUAllocator", "not enough memory", "out of memory", "bad_alloc")


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out; on a CPU, torch raises a plain RuntimeError."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in _SIGNS)


def halved(chats: int, model: str, batch_size: int) -> int:
    """Half of the chats that memory ran out with; raises a `ModelError` if it was only one."""
    if chats <= 1:
        raise ModelError(
            f"Out of memory with a single chat of {model} (batch_size={batch_size} no longer"
            " matters); use a shorter chat, a smaller dtype or a smaller model."
        )
    _LOG.warning(
        f"Out of memory with {chats} chats of {model} at once; going on with {chats // 2} at a "
        f"time. A smaller batch_size (now {batch_size}) does so from the start."
    )
    return chats // 2


def in_memory(
    compute: Callable[[int], _Result], batch_size: int, chats: int, model: str
) -> _Result:
    """Computes with `batch_size` chats at once, and half as many each time memory runs out."""
    size = batch_size
    while True:
        try:
            return compute(size)
        except (RuntimeError, MemoryError) as error:
            if not ran_out_of_memory(error):
                raise
        # outside the handler, whose error keeps everything computed alive
        size = halved(min(size, chats), model, batch_size)


def release_freed_memory() -> None:
    """Gives freed memory back to the system, which glibc keeps in case it is needed again. Tensors
    that grow never fit into the room that their smaller selves left.
    """
    with contextlib.suppress(TypeError, AttributeError):  # another system, or another library
        ctypes.CDLL(None).malloc_trim(0)


def memory_of_this_process() -> int:
    """Bytes of memory that this process may use: the machine's, or its container's if less."""
    sizes = [limit for path in _CGROUP_LIMITS if (limit := _limit_in(path)) is not None]
    if hasattr(os, "sysconf"):  # not on Windows
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(sizes, default=_UNKNOWN)


def _limit_in(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # there is no such limit, or it is "max"
        return None
