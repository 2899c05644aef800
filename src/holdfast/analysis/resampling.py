"""Intervals of means from resampled units, such as conversations.

One function, `resampled`, is behind every interval. It is a Bayesian bootstrap (Rubin 1981) that
adds one unseen conversation: for the lower end it scored as low as a score can be, for the upper
end as high. This is the interval of Gaffke 2005 (see Learned-Miller and Thomas 2019, "A new
confidence interval for the mean of a bounded random variable"). For scores of 0 and 1 it equals the
exact interval of Clopper and Pearson, so it has a width even if all values are alike; with many
conversations it is the usual one. Its coverage for every distribution is conjectured, not proven.
A plain bootstrap is too narrow where few conversations matter much, as it knows only the losses
that it has seen: `benchmarks/verdicts.py` compares the two.
"""

import functools
from collections.abc import Iterator, Sequence

import numpy as np

Limits = tuple[float, float]  # the lowest and the highest value of a unit

SEED = 0
RESAMPLES = 10_000
_MIN_RESAMPLES = 1_000
_RESAMPLED_CELLS = 40_000_000  # units times resamples, from which there are fewer resamples
_CELLS = 2_000_000  # resampling weights per block
_MAX_CACHED_UNITS = 1_000  # units whose weights are kept for the next estimate


def bounds_by_column(
    sums: np.ndarray, sizes: np.ndarray, limits: Limits | None, errors: Sequence[float]
) -> np.ndarray:
    """The ends of the interval of every column's mean, [column, error, low and high].

    The arguments are those of `resampled`; a column with fewer than two units has no interval.
    """
    bounds = np.full((sums.shape[1], len(errors), 2), np.nan)
    enough = (sizes > 0).sum(axis=0) > 1
    if enough.any():
        resamples = RESAMPLES if len(errors) > 1 else _enough_resamples(len(sums))
        low, high = resampled(sums[:, enough], sizes[:, enough], limits, resamples)
        below = np.percentile(low, [50 * error for error in errors], axis=0)
        above = np.percentile(high, [100 - 50 * error for error in errors], axis=0)
        bounds[enough] = np.stack([below, above], axis=-1).swapaxes(0, 1)
    return bounds


def _enough_resamples(units: int) -> int:
    """The number of resamples for the ends of a 95% interval: fewer if there are many units, as
    each resample then takes longer, and the interval is narrow anyway.
    """
    return min(RESAMPLES, max(_MIN_RESAMPLES, _RESAMPLED_CELLS // units))


def resampled(
    sums: np.ndarray, sizes: np.ndarray, limits: Limits | None, resamples: int = RESAMPLES
) -> tuple[np.ndarray, np.ndarray]:
    """Every column's mean in each resample, [resample, column], if the unseen unit has the lowest
    value, and if it has the highest.

    Args:
        sums, sizes: [unit, column]; the mean of a column is its sums over its sizes. A unit of size
            0 was not measured.
        limits: the lowest and the highest value; values beyond them widen them. None: there is no
            unseen unit.
        resamples: how many.
    """
    present = sizes > 0
    values = np.divide(sums, sizes, out=np.full(sums.shape, np.nan), where=present)
    unseen = sizes.sum(axis=0) / present.sum(axis=0)  # as large as those seen are on average
    lowest = np.nanmin(values, axis=0)
    highest = np.nanmax(values, axis=0)
    if limits is None:
        unseen = np.zeros(len(unseen))
    else:
        lowest = np.minimum(lowest, limits[0])
        highest = np.maximum(highest, limits[1])
    low = []
    high = []
    # those of many units take more memory than time
    blocks = (
        _weights(len(sums)) if len(sums) <= _MAX_CACHED_UNITS else _blocks(len(sums) + 1, resamples)
    )
    for weights in blocks:
        seen = weights[:, :-1]
        extra = weights[:, -1:] * unseen
        total = seen @ sums
        size = seen @ sizes + extra
        low.append((total + extra * lowest) / size)
        high.append((total + extra * highest) / size)
    return np.concatenate(low), np.concatenate(high)


@functools.lru_cache(maxsize=4)
def _weights(units: int) -> tuple[np.ndarray, ...]:
    """The weights in each resample of the units, and of one more unit that stands for those not
    sampled: blocks of [resample, unit + 1]. Exponential draws divided by their sum are distributed
    uniformly over all weightings.
    """
    return tuple(_blocks(units + 1, RESAMPLES))


def _blocks(columns: int, resamples: int) -> Iterator[np.ndarray]:
    generator = np.random.default_rng([SEED, columns])
    block = max(1, _CELLS // columns)
    for start in range(0, resamples, block):
        size = min(block, resamples - start), columns
        yield generator.standard_exponential(size, dtype=np.float32)


def resampled_means(values: np.ndarray) -> np.ndarray:
    """Column means of [conversation, column] in every resample, [resample, column], for statistics
    that are no mean and so have no interval of their own.
    """
    present = ~np.isnan(values)
    filled = np.where(present, values, 0.0)
    means = []
    for weights in _weights(len(values)):
        with np.errstate(invalid="ignore", divide="ignore"):
            seen = weights[:, :-1]
            means.append((seen @ filled) / (seen @ present.astype(float)))
    return np.concatenate(means)


def bounds_of(values: np.ndarray) -> tuple[float, float]:
    """The 95% percentile interval of a statistic, [resample]."""
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return float(low), float(high)
