"""How torch uses the CPU: how its threads wait, how many compute, and when they end.

Importing this module does not import torch, because some settings are read once, when torch's
libraries are loaded (`set_before_torch`):

- How idle threads wait. OpenMP threads spin between two pieces of work, by default for
  milliseconds. If other processes compete for the same cores, a loop of many short steps then waits
  for threads that are not scheduled, and takes several times as long. Threads that sleep
  immediately, on the other hand, have to be woken about three hundred times in a step of a 30-layer
  model, which costs a sixth of the step's time.
- How many compiled products oneDNN keeps. It compiles one for every shape, and the number of rows
  and the lengths of prompts change all the time, so its own limit of 1,024 takes more memory in a
  long run than the keys and values of some conversations.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# a user who sets one of these knows better than we do
_SPINNING_SET_BY_USERS = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
_SPINS = "10000"  # about 0.1 ms: long enough for a layer's threads to meet, and cheap if they don't
_KEPT_PRODUCTS = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
_MAX_KEPT_PRODUCTS = "64"  # those of the last 12 shapes, since a layer has five products
_MAX_SMALL_PARAMETERS = 16_000_000
_PAUSE_HARD = 2  # `omp_pause_hard` of OpenMP 5.0


def set_before_torch() -> None:
    """Sets in the environment what the user has not set; no result depends on it.

    Does nothing if torch is already loaded. So the command line calls this before anything else,
    and the package calls it at the first use of anything that needs torch; importing the package
    changes nothing.
    """
    if "torch" in sys.modules:
        return
    os.environ.setdefault(_KEPT_PRODUCTS, _MAX_KEPT_PRODUCTS)
    if not any(name in os.environ for name in _SPINNING_SET_BY_USERS):
        # OMP_WAIT_POLICY is for runtimes other than GNU's, which cannot set a number of spins
        os.environ.update(GOMP_SPINCOUNT=_SPINS, OMP_WAIT_POLICY="PASSIVE")


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
