"""Drawing tokens: temperature and nucleus, from numbers that belong to the reply and to nothing
else.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from holdfast.errors import ModelError
from holdfast.sampling import Sampling

_LIKELIEST = (
    64,
    512,
)  # taken in turn until they hold the nucleus of every row; the whole vocabulary only after that
_GREEDY = 1e-30  # the nucleus of this mass is the likeliest token


def uniforms(seed: int, count: int) -> list[float]:
    """`count` numbers in [0, 1) of the reply with this seed, whatever the batch: a counter-based
    generator keyed by it.
    """
    return np.random.Generator(np.random.Philox(key=seed)).random(count).tolist()


def draw(logits: Tensor, samplings: Sequence[Sampling], numbers: Sequence[float]) -> list[int]:
    """Draws one token per row by inverting the cumulated probabilities of its nucleus, likeliest
    first.

    Tokens of the same probability are taken in the order of their ids, so that no row's draw
    depends on another row.

    Args:
        logits: [row, vocabulary].
        samplings: one per row.
        numbers: in [0, 1), one per row.

    Raises:
        ModelError: a logit is not a number, or all are -inf.
    """
    device, vocabulary = logits.device, logits.shape[-1]
    temperature = torch.tensor([[s.temperature or 1.0] for s in samplings], device=device)
    top_p = torch.tensor(
        [[s.top_p if s.temperature else _GREEDY] for s in samplings],
        dtype=torch.float64,
        device=device,
    )
    number = torch.tensor(numbers, dtype=torch.float64, device=device)[:, None]
    logits = logits.float()
    probabilities = ((logits - logits.amax(-1, keepdim=True)) / temperature).softmax(-1)
    tokens, rows = (
        torch.zeros(len(logits), dtype=torch.long, device=device),
        torch.arange(len(logits), device=device),
    )
    for count in (*_LIKELIEST, vocabulary):
        likeliest, ids = probabilities.topk(min(count, vocabulary))
        if not likeliest[:, 0].isfinite().all():
            raise ModelError(
                "The model's logits are not finite, so no token can be drawn; load it with"
                " dtype='float32'."
            )
        tokens[rows] = _invert(likeliest, ids, top_p, number)
        inside = likeliest * (
            likeliest > likeliest[:, -1:]
        )  # where the last one is tied with others, which of them were taken is chance
        wide = (
            inside.sum(-1, dtype=torch.float64) < top_p[:, 0]
        )  # rows whose nucleus may be larger are drawn again
        if count >= vocabulary or not wide.any():
            break
        rows, probabilities, top_p, number = (
            part[wide] for part in (rows, probabilities, top_p, number)
        )
    return tokens.tolist()


def _invert(likeliest: Tensor, ids: Tensor, top_p: Tensor, number: Tensor) -> Tensor:
    """The token of each row at `number` of its nucleus; all are [row, ...], the first two in any
    order.
    """
    order = ((likeliest.view(torch.int32).long() << 32) - ids).argsort(
        -1, descending=True
    )  # positive floats sort like their bits
    likeliest, ids = likeliest.gather(-1, order), ids.gather(-1, order)
    cumulated = likeliest.cumsum(-1, dtype=torch.float64)
    kept = likeliest.double().masked_fill(cumulated - likeliest >= top_p, 0.0).cumsum(-1)
    place = (kept <= number * kept[:, -1:]).sum(-1, keepdim=True).clamp(max=kept.shape[-1] - 1)
    return ids.gather(-1, place)[:, 0]
