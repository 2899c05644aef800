"""Resamples units, such as conversations, for intervals of means.

`resample` and, for two independent samples, `resample_differences` are behind every interval of a
mean. They are a Bayesian bootstrap (Rubin 1981) that adds one unseen conversation: for the lower
end of the interval it has the lowest possible score, for the upper end the highest. This is the
interval of Gaffke 2005 (see Learned-Miller and Thomas 2019, "A new confidence interval for the mean
of a bounded random variable"). For scores of 0 and 1 it equals the exact interval of Clopper and
Pearson, so it has a width even if all values are equal; with many conversations it approaches the
usual one. Its coverage for every distribution is conjectured, not proven. A plain bootstrap is too
narrow where few conversations matter much, as it knows only the losses that it has seen:
`benchmarks/verdicts.py` compares the two.
"""

import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

Limits = tuple[float, float]  # the lowest and the highest value of a unit

SEED = 0
RESAMPLES = 10_000  # usually; `num_resamples` says when there are more or fewer
_MIN_RESAMPLES = 1_000
_BEYOND_END = 25  # resamples beyond each end of an interval, without which it would be too noisy
_MAX_WEIGHTS = 40_000_000  # units times resamples; of more units, there are fewer resamples
_MAX_WEIGHTS_FOR_ENDS = 100_000_000  # likewise for intervals with a small error
_WEIGHTS_PER_BLOCK = 2_000_000
_MAX_CACHED_WEIGHTS = 10_000_000  # more weights are not kept for the next estimate


def bounds_by_column(
    sums: np.ndarray, sizes: np.ndarray, limits: Limits | None, errors: Sequence[float]
) -> np.ndarray:
    """Returns the ends of the interval of every column's mean, [column, error, low and high].

    NaN for a column with fewer than two units.

    Args:
        sums, sizes: [unit, column]; the mean of a column is the total of its sums over the total of
            its sizes. A unit of size 0 was not measured.
        limits: the lowest and the highest possible value; None for no limits.
        errors: the probabilities that the mean is outside; there is one interval for each.
    """
    bounds = np.full((sums.shape[1], len(errors), 2), np.nan)
    enough = (sizes > 0).sum(axis=0) > 1
    if enough.any():
        counts = [num_resamples(len(sums), error) for error in errors]
        low, high = resample(sums[:, enough], sizes[:, enough], limits, max(counts))
        for number, (error, count) in enumerate(zip(errors, counts, strict=True)):
            bounds[enough, number, 0] = np.percentile(low[:count], 50 * error, axis=0)
            bounds[enough, number, 1] = np.percentile(high[:count], 100 - 50 * error, axis=0)
    return bounds


def num_resamples(units: int, error: float) -> int:
    """Returns how many resamples an interval needs that is wrong with this probability.

    There are fewer of many units, as each resample then takes longer, and the interval is narrow
    anyway. There are more for a small error, whose interval ends where 10,000 resamples have hardly
    any value: with a single one beyond an end, the error would be about twice what it should be.
    """
    for_ends = min(math.ceil(2 * _BEYOND_END / error), _MAX_WEIGHTS_FOR_ENDS // units)
    return max(min(RESAMPLES, _MAX_WEIGHTS // units), for_ends, _MIN_RESAMPLES)


def resample(
    sums: np.ndarray, sizes: np.ndarray, limits: Limits | None, resamples: int = RESAMPLES
) -> tuple[np.ndarray, np.ndarray]:
    """Returns every column's mean in each resample, [resample, column], twice: with the lowest and
    with the highest value for the unseen unit.

    Args:
        sums, sizes: as for `bounds_by_column`.
        limits: values beyond them widen them. None for a plain Bayesian bootstrap without an unseen
            unit.
        resamples: how many.
    """
    blocks: Iterable[np.ndarray]
    if len(sums) * resamples <= _MAX_CACHED_WEIGHTS:
        blocks = _cached_weights(len(sums), resamples)
    else:
        blocks = _draw_weights(len(sums) + 1, resamples)
    low, high = zip(*_means_by_block(sums, sizes, limits, blocks), strict=True)
    return np.concatenate(low), np.concatenate(high)


def _means_by_block(
    sums: np.ndarray, sizes: np.ndarray, limits: Limits | None, blocks: Iterable[np.ndarray]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields the means of `resample` for each block of weights."""
    present = sizes > 0
    values = np.divide(sums, sizes, out=np.full_like(sums, np.nan), where=present)
    unseen_size = sizes.sum(axis=0) / present.sum(axis=0)  # the mean size of those seen
    lowest = np.nanmin(values, axis=0)
    highest = np.nanmax(values, axis=0)
    if limits is None:
        unseen_size = np.zeros_like(unseen_size)
    else:
        lowest = np.minimum(lowest, limits[0])
        highest = np.maximum(highest, limits[1])
    for weights in blocks:
        seen_weights = weights[:, :-1]
        extra = weights[:, -1:] * unseen_size
        total = seen_weights @ sums
        size = seen_weights @ sizes + extra
        yield (total + extra * lowest) / size, (total + extra * highest) / size


class ResampledDifferences(NamedTuple):
    """The differences of two samples' means, [resample, column].

    Args:
        lowest, highest: with the lowest value for the unseen unit of one sample, and the highest
            for that of the other.
        plain: with the lowest value for both.
    """

    lowest: np.ndarray
    highest: np.ndarray
    plain: np.ndarray


def resample_differences(
    samples: np.ndarray, others: np.ndarray, limits: Limits, resamples: int
) -> ResampledDifferences:
    """Resamples two independent samples of units for each column, and subtracts their means.

    All columns see the same weights, so many columns take little longer than one.

    Args:
        samples, others: [unit, column], NaN below the last unit of a column.
        limits: the lowest and the highest value of a unit.
    """
    units = max(len(samples), len(others))

    def means(values: np.ndarray, stream: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        padding = np.full((units - len(values), values.shape[1]), np.nan)
        padded = np.concatenate([values, padding]).astype(np.float32)
        sizes = (~np.isnan(padded)).astype(np.float32)
        blocks = _draw_weights(units + 1, resamples, stream)
        return _means_by_block(np.nan_to_num(padded), sizes, limits, blocks)

    differences = [
        ResampledDifferences(low - other_high, high - other_low, low - other_low)
        for (low, high), (other_low, other_high) in zip(
            means(samples, 0), means(others, 1), strict=True
        )
    ]
    return ResampledDifferences(*map(np.concatenate, zip(*differences, strict=True)))


@functools.lru_cache(maxsize=4)
def _cached_weights(units: int, resamples: int) -> tuple[np.ndarray, ...]:
    """Returns the weights of the units and the unseen unit, in blocks of [resample, unit + 1]."""
    return tuple(_draw_weights(units + 1, resamples))


def _draw_weights(columns: int, resamples: int, stream: int = 0) -> Iterator[np.ndarray]:
    """Draws weights in blocks of [resample, column]; other streams have other weights.

    Exponential draws divided by their sum are uniform over all weightings; the division is left to
    the caller.
    """
    generator = np.random.default_rng([SEED, columns, *([stream] if stream else [])])
    block = max(1, _WEIGHTS_PER_BLOCK // columns)
    for start in range(0, resamples, block):
        size = min(block, resamples - start), columns
        yield generator.standard_exponential(size, dtype=np.float32)


def resample_means(values: np.ndarray) -> np.ndarray:
    """Returns the column means of values, [conversation, column], in each resample, [resample,
    column]: for the interval of a statistic that is computed from such means.
    """
    present = ~np.isnan(values)
    values_or_zero = np.where(present, values, 0.0)
    means = []
    for weights in _cached_weights(len(values), RESAMPLES):
        with np.errstate(invalid="ignore", divide="ignore"):
            seen_weights = weights[:, :-1]
            means.append((seen_weights @ values_or_zero) / (seen_weights @ present.astype(float)))
    return np.concatenate(means)


def bounds_of(values: np.ndarray) -> tuple[float, float]:
    """Returns the 95% percentile interval of a statistic, [resample]."""
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return float(low), float(high)
