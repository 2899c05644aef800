"""Draws tokens by temperature and nucleus, and reads their log-probabilities.

The logits have a row for each request that draws. Its random numbers depend only on the request,
not on the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from holdfast.errors import ModelError
from holdfast.generation.sampling import Sampling

DrawnToken = int | Exception  # a token id, or the error that prevented the draw

NOT_FINITE = -1  # stands for a token that cannot be drawn, as the logits are not finite
_UNDECIDED = -2  # stands for a token that cannot be determined from the likeliest ones alone
_NUM_LIKELIEST = 64  # this many tokens usually cover a row's nucleus
_BLOCK = 64  # the vocabulary is searched in blocks of this many tokens
# a probability's bin is its exponent and the first 7 bits of its mantissa
_BITS_IN_BIN = 16
_HIGHEST_BIN = 0x3F80  # of probability 1
# on a CPU, rows are drawn in groups of at most this many logits (8 MB in float32), since copies of
# the logits of all rows would be a good part of a run's memory
_LOGITS_PER_GROUP = 2**21
_ROUNDING = 1e-4  # more than the sum of a vocabulary's float32 probabilities can differ from 1
_GREEDY = 1e-30  # a nucleus of this mass contains only the likeliest token
_NOT_FINITE = (
    "The model's logits are not finite, so no token can be drawn; load it with dtype='float32'."
)


@dataclass(frozen=True, slots=True)
class LogProbability:
    """Log-probabilities where a token was drawn, under the request's methods, at temperature 1."""

    drawn: float  # the token's own log-probability, natural logarithm
    # the likeliest tokens and their log-probabilities, likeliest first; as many as requested
    top: tuple[tuple[int, float], ...]


def uniforms(seed: int, count: int) -> list[float]:
    """Returns `count` random numbers in [0, 1) for the reply with this seed."""
    numbers: list[float] = np.random.Generator(np.random.Philox(key=seed)).random(count).tolist()
    return numbers


class _DrawSettings(NamedTuple):
    """The settings of each row's draw, float64 [row, 1] on the device."""

    temperatures: Tensor
    top_ps: Tensor
    quantiles: Tensor  # random numbers in [0, 1)

    @classmethod
    def of(
        cls, samplings: Sequence[Sampling], numbers: Sequence[float], device: torch.device
    ) -> _DrawSettings:
        """Copies the settings to a device, in one transfer."""
        columns = [
            [sampling.temperature or 1.0 for sampling in samplings],
            [sampling.top_p if sampling.temperature else _GREEDY for sampling in samplings],
            list(numbers),
        ]
        return cls(*torch.tensor(columns, dtype=torch.float64)[..., None].to(device))


def draw(logits: Tensor, samplings: Sequence[Sampling], numbers: Sequence[float]) -> list[int]:
    """Draws one token per row by inverting the cumulative distribution of its nucleus.

    Tokens are ordered by probability, likeliest first, and then by id, so that no row's draw
    depends on another row. Only the tokens are read back from the device.

    Args:
        logits: [row, vocabulary].
        samplings: one per row.
        numbers: in [0, 1), one per row.

    Returns:
        A token per row; `NOT_FINITE` for a row with a logit of NaN or +inf, or with only -inf.
    """
    group_size = max(1, _LOGITS_PER_GROUP // logits.shape[-1])
    if logits.device.type != "cpu" or len(samplings) <= group_size:
        return _draw_together(logits, samplings, numbers)
    tokens: list[int] = []
    for start in range(0, len(samplings), group_size):
        group = slice(start, start + group_size)
        tokens += _draw_together(logits[group], samplings[group], numbers[group])
    return tokens


def _draw_together(
    logits: Tensor, samplings: Sequence[Sampling], numbers: Sequence[float]
) -> list[int]:
    """Draws one token per row, with all rows at once."""
    settings = _DrawSettings.of(samplings, numbers, logits.device)
    blocks = _split_into_blocks(logits)
    size = logits.shape[-1]
    highest = blocks.amax(-1)
    ids = _find_likeliest(blocks, highest, min(_NUM_LIKELIEST, size))
    # in place, because passes over a large vocabulary take most of the time
    blocks.sub_(highest.amax(-1)[:, None, None]).div_(settings.temperatures[..., None].float())
    probabilities = blocks.flatten(1)[:, :size].softmax(-1)
    # if all but a few tokens are forbidden, some ids lie beyond the vocabulary
    likeliest = probabilities.gather(1, ids.clamp(max=size - 1)) * (ids < size)
    tokens: list[int] = _draw_from_likeliest(likeliest, ids, settings, size).tolist()
    for row, token in enumerate(tokens):
        if token == _UNDECIDED:
            top_p = float(settings.top_ps[row])
            tokens[row] = _draw_from_all(probabilities[row], top_p, numbers[row])
    return tokens


def draw_or_error(
    logits: Tensor, samplings: Sequence[Sampling], numbers: Sequence[float]
) -> list[DrawnToken]:
    """Draws like `draw`, but returns an error instead of `NOT_FINITE`."""
    drawn = draw(logits, samplings, numbers)
    return [ModelError(_NOT_FINITE) if token == NOT_FINITE else token for token in drawn]


def log_probabilities(
    logits: Tensor, tokens: Sequence[int], counts: Sequence[int]
) -> list[LogProbability]:
    """Reads the log-probability of each row's token, and those of its `counts` likeliest tokens."""
    log_probs = logits.float().log_softmax(-1)
    of_drawn = log_probs.gather(-1, torch.tensor(tokens, device=log_probs.device)[:, None])
    top, ids = log_probs.topk(max(counts))
    width = top.shape[-1]
    # in one transfer; float64 keeps ids exact
    rows = torch.cat([of_drawn.double(), top.double(), ids.double()], -1).tolist()
    values = []
    for (drawn, *row), count in zip(rows, counts, strict=True):
        likeliest = zip(map(int, row[width : width + count]), row[:count], strict=True)
        values.append(LogProbability(drawn, tuple(likeliest)))
    return values


def _split_into_blocks(logits: Tensor) -> Tensor:
    """Copies logits into blocks of `_BLOCK` tokens, float32 [row, block, token].

    The last block is padded with -inf.
    """
    rows, size = logits.shape
    padded = logits.new_empty(rows, -(-size // _BLOCK) * _BLOCK, dtype=torch.float32)
    padded[:, :size] = logits
    padded[:, size:] = -torch.inf
    return padded.view(rows, -1, _BLOCK)


def _find_likeliest(blocks: Tensor, highest: Tensor, count: int) -> Tensor:
    """Finds the ids of each row's `count` highest logits, highest first, int64 [row, count].

    They are all in the `count` blocks with the highest maxima, so only those are searched.

    Args:
        blocks: [row, block, token].
        highest: the maximum of each block, [row, block].
    """
    block_ids = highest.topk(min(count, highest.shape[-1])).indices
    candidates = blocks.gather(1, block_ids[..., None].expand(-1, -1, _BLOCK)).flatten(1)
    indices = candidates.topk(count).indices
    return block_ids.gather(1, indices // _BLOCK) * _BLOCK + indices % _BLOCK


def _draw_from_likeliest(
    likeliest: Tensor, ids: Tensor, settings: _DrawSettings, size: int
) -> Tensor:
    """Draws each row's token at its random quantile of the nucleus, int64 [row].

    If the likeliest tokens do not cover the nucleus, its total mass is known only within bounds.
    Usually both bounds lead to the same token; if they do not, the result is `_UNDECIDED`. It is
    `NOT_FINITE` if the probabilities are not finite.

    Args:
        likeliest: the probabilities of the likeliest tokens, in any order, [row, token].
        ids: [row, token].
        settings: of each row's draw; the temperature is already applied.
        size: the size of the vocabulary.
    """
    _, top_p, quantile = settings
    # by probability and then by id; positive floats sort like their bits
    order = ((likeliest.view(torch.int32).long() << 32) - ids).argsort(-1, descending=True)
    likeliest = likeliest.gather(-1, order)
    ids = ids.gather(-1, order)
    cumulated = likeliest.cumsum(-1, dtype=torch.float64)
    nucleus = likeliest.double().masked_fill(cumulated - likeliest >= top_p, 0.0).cumsum(-1)
    index = _index_at(quantile * nucleus[:, -1:], nucleus)
    if likeliest.shape[-1] < size:
        # topk breaks ties with the last token arbitrarily, so such tokens do not count
        last = likeliest[:, -1:]
        counted = likeliest > last
        uncovered = (likeliest * counted).sum(-1, keepdim=True, dtype=torch.float64) < top_p
        # the nucleus ends within one token after `top_p`, and no other is likelier than the last
        lowest = _index_at(quantile * top_p.clamp(max=1 - _ROUNDING), nucleus)
        highest = _index_at(quantile * (top_p + last).clamp(max=1 + _ROUNDING), nucleus)
        certain = (lowest == highest) & (lowest < counted.sum(-1, keepdim=True))
        tokens = ids.gather(-1, torch.where(uncovered, lowest, index))
        tokens = tokens.masked_fill(uncovered & ~certain, _UNDECIDED)[:, 0]
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


def _draw_from_all(probabilities: Tensor, top_p: float, quantile: float) -> int:
    """Draws a row's token from its whole vocabulary, for a nucleus of any size.

    Sorting a vocabulary of 152,000 tokens would take a good part of a small model's step.
    So tokens are binned by the upper bits of their probability, and only two bins are sorted: the
    bin in which the nucleus ends, and the bin that contains the token.

    Args:
        probabilities: float32 [vocabulary], finite.
        top_p: the mass of the nucleus.
        quantile: a random number in [0, 1).
    """
    # positive floats sort like their bits
    bins = _HIGHEST_BIN - (probabilities.view(torch.int32) >> _BITS_IN_BIN)  # likeliest first
    masses = torch.bincount(bins, probabilities.double(), minlength=_HIGHEST_BIN + 1)
    cumulated = masses.cumsum(0)

    def sort_bin(index: int) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the ids of a bin's tokens, their probabilities, and the mass up to each."""
        ids = (bins == index).nonzero()[:, 0]
        shares, order = probabilities[ids].double().sort(descending=True, stable=True)
        before = cumulated[index] - masses[index]
        return ids[order], shares, before + shares.cumsum(0)

    nucleus_mass = float(cumulated[-1])
    if top_p <= nucleus_mass:
        _, shares, reached = sort_bin(int(torch.searchsorted(cumulated, top_p)))
        # the nucleus ends with the token that reaches its mass
        num_in_nucleus = (reached - shares < top_p).sum().clamp(min=1)
        nucleus_mass = float(reached[num_in_nucleus - 1])
    drawn_mass = quantile * nucleus_mass
    ids, _, reached = sort_bin(int(torch.searchsorted(cumulated, drawn_mass, right=True)))
    return int(ids[(reached <= drawn_mass).sum().clamp(max=len(ids) - 1)])
