"""Drawing tokens: temperature and nucleus, from numbers that belong to the reply and to nothing
else.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from holdfast.sampling import Sampling

NOT_FINITE = -1  # in place of a token, where the logits have none
_WIDER = -2  # the same, where more tokens must be looked at
# taken in turn until they hold the nucleus of every row; the whole vocabulary only after that
_LIKELIEST = (64, 512)
_GREEDY = 1e-30  # the nucleus of this mass is the likeliest token


def uniforms(seed: int, count: int) -> list[float]:
    """`count` numbers in [0, 1) of the reply with this seed, whatever the batch.

    They come from a counter-based generator keyed by the seed.
    """
    numbers: list[float] = np.random.Generator(np.random.Philox(key=seed)).random(count).tolist()
    return numbers


def draw(logits: Tensor, samplings: Sequence[Sampling], numbers: Sequence[float]) -> list[int]:
    """Draws one token per row by inverting the cumulated probabilities of its nucleus.

    Likeliest first; tokens of the same probability are taken in the order of their ids, so that no
    row's draw depends on another row. Of the device, one thing is read: the tokens.

    Args:
        logits: [row, vocabulary].
        samplings: one per row.
        numbers: in [0, 1), one per row.

    Returns:
        A token per row; `NOT_FINITE` where the logits are not numbers, or all are -inf.
    """
    knobs = torch.tensor(
        [
            (sampling.temperature or 1.0, sampling.top_p if sampling.temperature else _GREEDY, at)
            for sampling, at in zip(samplings, numbers, strict=True)
        ],
        dtype=torch.float64,
    ).to(logits.device)
    logits = logits.float()
    scaled = (logits - logits.amax(-1, keepdim=True)) / knobs[:, :1].float()
    probabilities = scaled.softmax(-1)
    tokens, rows = [_WIDER] * len(logits), list(range(len(logits)))
    for count in (*_LIKELIEST, logits.shape[-1]):
        drawn = _drawn(probabilities, knobs, min(count, logits.shape[-1])).tolist()
        for row, token in zip(rows, drawn, strict=True):
            tokens[row] = token
        again = [index for index, token in enumerate(drawn) if token == _WIDER]
        if not again:
            break
        rows = [rows[index] for index in again]
        probabilities, knobs = probabilities[again], knobs[again]
    return tokens


def _drawn(probabilities: Tensor, knobs: Tensor, count: int) -> Tensor:
    """The token of each row among its `count` likeliest, or why there is none, int64 [row]."""
    likeliest, ids = probabilities.topk(count)
    top_p, number = knobs[:, 1:2], knobs[:, 2:]
    tokens = _invert(likeliest, ids, top_p, number)
    if count < probabilities.shape[-1]:
        # where the last one is tied with others, which of them were taken is chance
        inside = likeliest * (likeliest > likeliest[:, -1:])
        wider = inside.sum(-1, dtype=torch.float64) < top_p[:, 0]
        tokens = tokens.masked_fill(wider, _WIDER)
    return tokens.masked_fill(~likeliest[:, 0].isfinite(), NOT_FINITE)


def _invert(likeliest: Tensor, ids: Tensor, top_p: Tensor, number: Tensor) -> Tensor:
    """The token of each row at `number` of its nucleus; all are [row, ...], the first two in any
    order.
    """
    # positive floats sort like their bits
    order = ((likeliest.view(torch.int32).long() << 32) - ids).argsort(-1, descending=True)
    likeliest, ids = likeliest.gather(-1, order), ids.gather(-1, order)
    cumulated = likeliest.cumsum(-1, dtype=torch.float64)
    kept = likeliest.double().masked_fill(cumulated - likeliest >= top_p, 0.0).cumsum(-1)
    index = (kept <= number * kept[:, -1:]).sum(-1, keepdim=True).clamp(max=kept.shape[-1] - 1)
    return ids.gather(-1, index)[:, 0]
