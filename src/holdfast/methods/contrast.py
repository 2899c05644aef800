"""One distribution of two: the contrast of a stream with one that lacks something."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from holdfast.methods.parameters import Number, parameter

if TYPE_CHECKING:
    from torch import Tensor

PLAUSIBILITY = parameter(
    "tokens that the prompted model finds less than this times as likely as its best are"
    " never drawn",
    Number(0, 1),
)


def contrasted(logits: Tensor, other: Tensor, scale: float, plausibility: float) -> Tensor:
    """log p = log p_other + scale * (log p - log p_other), float32 [row, vocabulary].

    Tokens that the first stream gives less than `plausibility` times its best token's probability
    are never drawn (Li et al. 2022, arXiv 2210.15097).

    Args:
        logits, other: of the two streams, [row, vocabulary].
        scale: 1 is the first stream alone, 0 the other one.
        plausibility: in [0, 1]; 0 sets no threshold.
    """
    first, second = logits.float().log_softmax(-1), other.float().log_softmax(-1)
    made = first if scale == 1 else second + scale * (first - second)
    # where both are impossible, their difference is not a number
    made = made.masked_fill(first == -math.inf, -math.inf)
    if plausibility:
        least = first.amax(-1, keepdim=True) + math.log(plausibility)
        made = made.masked_fill(first < least, -math.inf)
    return made
