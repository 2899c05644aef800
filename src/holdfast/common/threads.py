"""How the processor's threads wait and how many there are; imports no torch.

OpenMP's threads spin between two pieces of work, by default for milliseconds. Where other processes
want the same processors, a loop of many short steps then waits for threads that are not scheduled,
and takes several times as long. Threads that sleep at once have to be woken some three hundred
times in a step of a 30-layer model, which costs a sixth of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_SAID = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")  # by the user, who knows better
_SPINS = "10000"  # about a tenth of a millisecond: a layer's threads meet in it, and little is lost
_SMALL = 16_000_000  # parameters


def limit_spinning() -> None:
    """Lets idle OpenMP threads spin briefly, then sleep, unless the user has set how they wait or
    torch is loaded already.

    OpenMP reads the environment once, when torch loads it. So the command line does this before
    anything else, and the package at the first use of what needs torch; importing the package alone
    changes nothing. No result depends on it.
    """
    if "torch" not in sys.modules and not any(name in os.environ for name in _SAID):
        # The second is for runtimes other than GNU's, which know no number of spins.
        os.environ.update(GOMP_SPINCOUNT=_SPINS, OMP_WAIT_POLICY="PASSIVE")


def is_small(model) -> bool:
    """Whether a step of a model in this processor's memory is too short to be shared out.

    With the model in the package, steps of 4 to 48 rows take twice the processor time on two
    threads, and on a busy machine twice the time; prefills of many tokens gain by a second one.
    """
    if model.device.type != "cpu" or "OMP_NUM_THREADS" in os.environ:
        return False
    return sum(parameter.numel() for parameter in model.parameters()) <= _SMALL


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, torch computes on the calling thread alone."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
