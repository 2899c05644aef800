"""Controls how many CPU threads compute, and ends those of other threads; does not import torch."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_MAX_SMALL_PARAMETERS = 16_000_000
_PAUSE_HARD = 2  # `omp_pause_hard` of OpenMP 5.0


def release_threads() -> None:
    """Ends the threads that GNU's OpenMP keeps for the calling thread, until it needs some again.

    A thread that has loaded a model calls this before another thread computes with the model.
    OpenMP keeps a separate team of threads for each of the two. If the teams together outnumber the
    cores, no thread spins any more, and every step has to wake its threads some three hundred
    times.
    """
    if "torch" not in sys.modules:
        return
    import torch

    for library in Path(torch.__file__).parent.glob("lib/libgomp*.so*"):
        if pause := getattr(ctypes.CDLL(str(library)), "omp_pause_resource_all", None):
            pause(_PAUSE_HARD)


def is_small(model: Any) -> bool:
    """Whether a step of a model on the CPU is too short to be split among threads.

    With the default model, steps of 4 to 48 rows take twice the CPU time on two threads, and on a
    busy machine twice the wall time; prefills of many tokens gain from a second thread.
    """
    if model.device.type != "cpu" or "OMP_NUM_THREADS" in os.environ:
        return False
    parameters: int = sum(parameter.numel() for parameter in model.parameters())
    return parameters <= _MAX_SMALL_PARAMETERS


@contextmanager
def one_thread() -> Iterator[None]:
    """Makes torch compute only on the calling thread within this context."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
