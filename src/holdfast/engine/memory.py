"""Detects that memory ran out, and retries with smaller batches."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

import torch

from holdfast.errors import ModelError

_LOG = logging.getLogger("holdfast")
_Result = TypeVar("_Result")
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
            f"Out of memory with a single chat of {model} (batch_size={batch_size} plays no part"
            " any more); use a shorter chat, a smaller dtype or a smaller model."
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
