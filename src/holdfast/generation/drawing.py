"""Draws tokens by temperature and nucleus, from random numbers that depend only on the reply; and
reads their log-probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from holdfast.errors import ModelError
from holdfast.generation.sampling import Sampling

DrawnToken = int | Exception  # a token id, or why there is none

NOT_FINITE = -1  # in place of a token, if the logits are not finite
_WIDER = -2  # in place of a token, if the likeliest do not decide which it is
_LIKELIEST = 64  # tokens that usually cover a row's nucleus
_BLOCK = 64  # tokens of the vocabulary whose highest logit is found at once
# a probability's bin is its exponent and the first 7 bits of its mantissa
_BITS_IN_BIN = 16
_HIGHEST_BIN = 0x3F80  # of probability 1
_ROUNDING = 1e-4  # how far the sum of a vocabulary's float32 probabilities may be from 1, and more
_GREEDY = 1e-30  # a nucleus of this mass is only the likeliest token
_NOT_FINITE = (
    "The model's logits are not finite, so no token can be drawn; load it with dtype='float32'."
)


@dataclass(frozen=True, slots=True)
class LogProbability:
    """Log-probabilities for a drawn token, with the row's methods, at temperature 1."""

    drawn: float  # the token's own log-probability, natural logarithm
    # the likeliest tokens and their log-probabilities, likeliest first; as many as requested
    top: tuple[tuple[int, float], ...]


def uniforms(seed: int, count: int) -> list[float]:
    """`count` random numbers in [0, 1) for the reply with this seed, whatever the batch."""
    numbers: list[float] = np.random.Generator(np.random.Philox(key=seed)).random(count).tolist()
    return numbers


def draw(logits: Tensor, samplings: Sequence[Sampling], numbers: Sequence[float]) -> list[int]:
    """Draws one token per row by inverting the cumulative distribution of its nucleus.

    Tokens are ordered by probability, likeliest first, and then by id, so that no row's draw
    depends on another row. Only the tokens are read back from the device.

    Args:
        logits: [row, vocabulary].
        samplings: one per row.
        numbers: in [0, 1), one per row.

    Returns:
        A token per row; `NOT_FINITE` if its logits are not numbers, or all are -inf.
    """
    parameters = torch.tensor(
        [
            (sampling.temperature or 1.0, sampling.top_p if sampling.temperature else _GREEDY, at)
            for sampling, at in zip(samplings, numbers, strict=True)
        ],
        dtype=torch.float64,
    ).to(logits.device)
    blocks = _in_blocks(logits)
    size = logits.shape[-1]
    highest = blocks.amax(-1)
    ids = _likeliest(blocks, highest, min(_LIKELIEST, size))
    # in place, as the passes over a large vocabulary are what takes time
    blocks.sub_(highest.amax(-1)[:, None, None]).div_(parameters[:, :1, None].float())
    probabilities = blocks.flatten(1)[:, :size].softmax(-1)
    # where all but a few tokens are forbidden, some ids are those of no token
    likeliest = probabilities.gather(1, ids.clamp(max=size - 1)) * (ids < size)
    tokens: list[int] = _drawn(likeliest, ids, parameters, size).tolist()
    for row, token in enumerate(tokens):
        if token == _WIDER:
            _, top_p, number = parameters[row].tolist()
            tokens[row] = _drawn_from_all(probabilities[row], top_p, number)
    return tokens


def draw_or_fail(
    logits: Tensor, samplings: Sequence[Sampling], numbers: Sequence[float]
) -> list[DrawnToken]:
    """As `draw`, with an error in place of a token whose row has no finite logits."""
    drawn = draw(logits, samplings, numbers)
    return [ModelError(_NOT_FINITE) if token == NOT_FINITE else token for token in drawn]


def log_probabilities(
    logits: Tensor, tokens: Sequence[int], counts: Sequence[int]
) -> list[LogProbability]:
    """The log-probabilities of drawn tokens, one per row, with the `counts` likeliest tokens."""
    log_probs = logits.float().log_softmax(-1)
    of_drawn = log_probs.gather(-1, torch.tensor(tokens, device=log_probs.device)[:, None])
    top, ids = log_probs.topk(max(counts))
    width = top.shape[-1]
    read = torch.cat(
        [of_drawn.double(), top.double(), ids.double()], -1
    ).tolist()  # float64 keeps ids exact
    read_rows = []
    for (drawn, *row), count in zip(read, counts, strict=True):
        likeliest = zip(map(int, row[width : width + count]), row[:count], strict=True)
        read_rows.append(LogProbability(drawn, tuple(likeliest)))
    return read_rows


def _in_blocks(logits: Tensor) -> Tensor:
    """A copy of the logits in blocks of `_BLOCK` tokens, float32 [row, block, token]; what is left
    of the last block is -inf.
    """
    rows, size = logits.shape
    padded = logits.new_empty(rows, -(-size // _BLOCK) * _BLOCK, dtype=torch.float32)
    padded[:, :size] = logits
    padded[:, size:] = -torch.inf
    return padded.view(rows, -1, _BLOCK)


def _likeliest(blocks: Tensor, highest: Tensor, count: int) -> Tensor:
    """The ids of the `count` highest logits of each row, highest first, int64 [row, count]. They
    are in the `count` blocks with the highest maxima, so only those are searched.

    Args:
        blocks: [row, block, token].
        highest: the maximum of each block, [row, block].
    """
    chosen = highest.topk(min(count, highest.shape[-1])).indices
    candidates = blocks.gather(1, chosen[..., None].expand(-1, -1, _BLOCK)).flatten(1)
    places = candidates.topk(count).indices
    return chosen.gather(1, places // _BLOCK) * _BLOCK + places % _BLOCK


def _drawn(likeliest: Tensor, ids: Tensor, parameters: Tensor, size: int) -> Tensor:
    """Each row's token at quantile `number` of its nucleus, or a negative code, int64 [row].

    If the likeliest tokens do not cover the nucleus, its mass is known only roughly, which mostly
    suffices to tell that the token is one of them, and which.

    Args:
        likeliest: the probabilities of the likeliest tokens, in any order, [row, token].
        ids: [row, token].
        parameters: temperature, nucleus and random number of each row, float64 [row, 3].
        size: of the vocabulary.
    """
    top_p = parameters[:, 1:2]
    number = parameters[:, 2:]
    # by probability and then by id; positive floats sort like their bits
    order = ((likeliest.view(torch.int32).long() << 32) - ids).argsort(-1, descending=True)
    likeliest = likeliest.gather(-1, order)
    ids = ids.gather(-1, order)
    cumulated = likeliest.cumsum(-1, dtype=torch.float64)
    kept = likeliest.double().masked_fill(cumulated - likeliest >= top_p, 0.0).cumsum(-1)
    index = _index_at(number * kept[:, -1:], kept)
    if likeliest.shape[-1] < size:
        # topk breaks ties with the last token arbitrarily, so such tokens do not count
        last = likeliest[:, -1:]
        inside = likeliest > last
        wide = (likeliest * inside).sum(-1, keepdim=True, dtype=torch.float64) < top_p
        # no token that is missing is likelier than the last
        lowest = _index_at(number * top_p.clamp(max=1 - _ROUNDING), kept)
        highest = _index_at(number * (top_p + last).clamp(max=1 + _ROUNDING), kept)
        certain = (lowest == highest) & (lowest < inside.sum(-1, keepdim=True))
        tokens = ids.gather(-1, torch.where(wide, lowest, index))
        tokens = tokens.masked_fill(wide & ~certain, _WIDER)[:, 0]
    else:
        tokens = ids.gather(-1, index)[:, 0]
    return tokens.masked_fill(~likeliest[:, 0].isfinite(), NOT_FINITE)


def _index_at(mass: Tensor, cumulated: Tensor) -> Tensor:
    """The index of the first token whose cumulated mass exceeds `mass`, int64 [row, 1].

    Args:
        mass: [row, 1].
        cumulated: [row, token].
    """
    return (cumulated <= mass).sum(-1, keepdim=True).clamp(max=cumulated.shape[-1] - 1)


def _drawn_from_all(probabilities: Tensor, top_p: float, number: float) -> int:
    """A row's token, however many tokens its nucleus has.

    Sorting a vocabulary of 152,000 tokens would take a good part of a small model's step.
    So tokens are binned by the upper bits of their probability, and only two bins are sorted: the
    one in which the nucleus ends, and the one with the token.

    Args:
        probabilities: float32 [vocabulary], finite.
        top_p: the nucleus' mass.
        number: in [0, 1).
    """
    # positive floats sort like their bits
    bins = _HIGHEST_BIN - (probabilities.view(torch.int32) >> _BITS_IN_BIN)  # likeliest first
    masses = torch.bincount(bins, probabilities.double(), minlength=_HIGHEST_BIN + 1)
    cumulated = masses.cumsum(0)

    def sorted_bin(index: int) -> tuple[Tensor, Tensor, Tensor]:
        """The ids of its tokens, their probabilities, and the mass up to and with each."""
        ids = (bins == index).nonzero()[:, 0]
        shares, order = probabilities[ids].double().sort(descending=True, stable=True)
        before = cumulated[index] - masses[index]
        return ids[order], shares, before + shares.cumsum(0)

    kept_mass = float(cumulated[-1])
    if top_p <= kept_mass:
        _, shares, reached = sorted_bin(int(torch.searchsorted(cumulated, top_p)))
        # the nucleus ends with the token that reaches its mass
        inside = (reached - shares < top_p).sum().clamp(min=1)
        kept_mass = float(reached[inside - 1])
    at = number * kept_mass
    ids, _, reached = sorted_bin(int(torch.searchsorted(cumulated, at, right=True)))
    return int(ids[(reached <= at).sum().clamp(max=len(ids) - 1)])
