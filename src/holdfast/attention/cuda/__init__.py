"""Steered attention on a GPU, by Triton kernels.

    arguments.py   the steering table of a layer, and which columns a row sees and holds on to
    tiles.py       which blocks of keys hold the span, the rest or both: once per pass
    table.py       the table inside a kernel
    product.py     matrix products in float32
    decode.py      one query per row
    prefill.py     several queries per row
    steer.py       what a pass is to do, as the kernels take it

Triton comes with the CUDA builds of PyTorch. `decode` and `prefill` import it; nothing else does,
so that this package can be asked for without it.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

_DTYPES = (torch.float16, torch.bfloat16, torch.float32)
_MOST = 256  # of the size of a head
_SINCE = (8, 0)  # compute capability (Ampere): earlier GPUs have less shared memory


@cache
def has_triton() -> bool:
    """Whether Triton is installed; asked once, as layers ask for each step."""
    return find_spec("triton") is not None


def is_covered(query: Tensor, key: Tensor, value: Tensor) -> bool:
    """Whether the kernels take these: on a GPU with Triton, heads of one size, no gradients."""
    if not query.is_cuda or not has_triton():
        return False
    if torch.cuda.get_device_capability(query.device) < _SINCE:
        return False
    if query.dtype not in _DTYPES or not query.shape[-1] == key.shape[-1] == value.shape[-1]:
        return False
    wanted = query.requires_grad or key.requires_grad or value.requires_grad
    return query.shape[-1] <= _MOST and not (torch.is_grad_enabled() and wanted)
