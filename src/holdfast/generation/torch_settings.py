"""Settings that torch's libraries read once, when they are loaded; does not import torch.

- How idle threads wait. OpenMP threads spin between two pieces of work, by default for
  milliseconds. If other processes compete for the same cores, a loop of many short steps then waits
  for threads that are not scheduled, and takes several times as long. Threads that sleep
  immediately, on the other hand, have to be woken about three hundred times in a step of a 30-layer
  model, which costs a sixth of the step's time.
- How many compiled products oneDNN keeps. It compiles one for every shape, and the number of rows
  and the lengths of prompts change all the time, so its own limit of 1,024 takes more memory in a
  long run than the keys and values of some dialogs.
"""

from __future__ import annotations

import os
import sys

# a user who sets one of these knows better than we do
_SPINNING_SET_BY_USERS = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
_SPINS = "10000"  # about 0.1 ms: long enough for a layer's threads to meet, and cheap if they don't
_KEPT_PRODUCTS = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
_MAX_KEPT_PRODUCTS = "64"  # those of the last 12 shapes, since a layer has five products


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
