"""Means and their uncertainty. The unit is the conversation: rounds and probes of one conversation
are not independent. Matrices are [conversation, round], with NaN where a round was not measured.
"""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

RESAMPLES = 10_000
MIN_PROMPTS = 20  # with fewer, resampling says too little about other prompts: docs/verdicts.md
SEED = 0
_CELLS = 2_000_000  # resampling weights per block
_NOISE = 1e-9  # how much the order of summation may change a score


def _excludes_zero(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and (low > _NOISE or high < -_NOISE)


@dataclass(frozen=True)
class OtherPrompts:
    """The 95% interval of a mean for prompts like those of a run, which drew `prompts` of them."""

    prompts: int
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        return _excludes_zero(self.low, self.high)


@dataclass(frozen=True)
class Estimate:
    """A mean over conversations.

    sd is the standard deviation between conversations (n - 1 in the denominator), the error bar of
    Li et al. 2024, Figure 3; low and high bound the 95% percentile bootstrap interval of the mean.
    All three are None for fewer than two conversations, and so is the mean for none. moved is how
    many of the values are not 0; None if the estimate is not a mean of values. other_prompts is the
    interval for prompts that the run did not draw; None if it drew too few to say.
    `analysis.verdicts` decides what may be said of an estimate.
    """

    n: int
    mean: float | None
    sd: float | None
    low: float | None
    high: float | None
    moved: int | None = None
    other_prompts: OtherPrompts | None = None

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval exists and does not include 0."""
        return _excludes_zero(self.low, self.high)

    @property
    def alike(self) -> bool:
        """Whether all values are the same, so that the bootstrap's interval has no width."""
        return self.low is not None and self.high is not None and self.high - self.low < _NOISE


NOTHING = Estimate(0, None, None, None, None)  # for what was not measured


def estimate_columns(values: np.ndarray) -> list[Estimate]:
    """One estimate per column of [conversation, column], each over the conversations that have a
    value there.

    All columns see the same resampled conversations, as rounds of one conversation belong together.
    """
    values = np.ascontiguousarray(values, dtype=float)
    return list(_estimates(values.tobytes(), values.shape))


@functools.lru_cache(maxsize=256)
def _estimates(data: bytes, shape: tuple[int, int]) -> tuple[Estimate, ...]:
    """Cached, as page and figures ask for the same ones several times."""
    values = np.frombuffer(data, dtype=float).reshape(shape)
    bounds = _bootstrap(values) if len(values) > 1 else np.full((shape[1], 2), np.nan)
    return tuple(
        _estimate(column[~np.isnan(column)], ends)
        for column, ends in zip(values.T, bounds, strict=True)
    )


def _estimate(values: np.ndarray, bounds: np.ndarray) -> Estimate:
    if not len(values):
        return NOTHING
    mean, moved = float(values.mean()), int((abs(values) > _NOISE).sum())
    if len(values) == 1:
        return Estimate(1, mean, None, None, None, moved)
    low, high = (float(end) for end in bounds)
    return Estimate(len(values), mean, float(values.std(ddof=1)), low, high, moved)


def estimate(values: np.ndarray, prompts: Sequence[str] | None = None) -> Estimate:
    """The estimate of one value per conversation, [n], NaN where not measured; given the prompt of
    each conversation, it includes the interval for other prompts.
    """
    values = np.asarray(values, dtype=float)
    summary = estimate_columns(values[:, None])[0]
    if prompts is None or len(set(np.asarray(prompts)[~np.isnan(values)])) < MIN_PROMPTS:
        return summary
    return replace(summary, other_prompts=over_prompts(values, np.asarray(prompts)))


def over_prompts(values: np.ndarray, prompts: np.ndarray) -> OtherPrompts:
    """The interval from resampling prompts, [n], each with all of its conversations (the cluster
    bootstrap); values are [n], NaN where not measured.
    """
    measured = ~np.isnan(values)
    drawn, owner = np.unique(prompts[measured], return_inverse=True)
    count = len(drawn)
    sums = np.bincount(owner, weights=values[measured], minlength=count)
    sizes = np.bincount(owner, minlength=count)
    means = [(weights @ sums) / (weights @ sizes) for weights in _weights(count)]
    return OtherPrompts(count, *bounds_of(np.concatenate(means)))


def change(
    values: np.ndarray, first: int = 0, last: int = -1, prompts: Sequence[str] | None = None
) -> Estimate:
    """The paired change of [conversation, round] from one round to another."""
    return estimate(values[:, last] - values[:, first], prompts)


def paired_difference(
    values: np.ndarray, baseline: np.ndarray, prompts: Sequence[str] | None = None
) -> Estimate:
    """The mean of values - baseline, both in the same order of conversations."""
    return estimate(np.asarray(values, dtype=float) - np.asarray(baseline, dtype=float), prompts)


def row_means(values: np.ndarray) -> np.ndarray:
    """Each conversation's mean over the rounds it has; NaN where it has none."""
    present = ~np.isnan(values)
    counts = present.sum(axis=1)
    sums = np.where(present, values, 0.0).sum(axis=1)
    means: np.ndarray = np.divide(sums, counts, out=np.full(len(values), np.nan), where=counts > 0)
    return means


def cell_means(scores: Iterable[tuple[int, int, float]], shape: tuple[int, int]) -> np.ndarray:
    """The mean of all scores (row, column, value) of each cell; NaN where there are none."""
    sums, counts = np.zeros(shape), np.zeros(shape)
    for row, column, score in scores:
        sums[row, column] += score
        counts[row, column] += 1
    means: np.ndarray = np.divide(sums, counts, out=np.full(shape, np.nan), where=counts > 0)
    return means


def resampled_means(values: np.ndarray) -> np.ndarray:
    """Column means of [conversation, column] in every resample, [resample, column]."""
    present = ~np.isnan(values)
    filled = np.where(present, values, 0.0)
    means = []
    for weights in _weights(len(values)):
        with np.errstate(invalid="ignore", divide="ignore"):
            means.append((weights @ filled) / (weights @ present.astype(float)))
    return np.concatenate(means)


def bounds_of(resampled: np.ndarray) -> tuple[float, float]:
    """The 95% percentile interval of a statistic, [resample]."""
    low, high = np.nanpercentile(resampled, [2.5, 97.5])
    return float(low), float(high)


def _bootstrap(values: np.ndarray) -> np.ndarray:
    """The 2.5 and 97.5 percentiles of the resampled column means, [column, low and high]."""
    stacked = resampled_means(values)
    bounds = np.full((values.shape[1], 2), np.nan)
    measured = ~np.isnan(values).all(axis=0)
    if measured.any():
        bounds[measured] = np.nanpercentile(stacked[:, measured], [2.5, 97.5], axis=0).T
    return bounds


@functools.lru_cache(maxsize=4)
def _weights(n: int) -> tuple[np.ndarray, ...]:
    """How often each conversation occurs in each resample, in blocks of [resample, n]."""
    generator = np.random.default_rng([SEED, n])
    block = max(1, _CELLS // n)
    sizes = [min(block, RESAMPLES - start) for start in range(0, RESAMPLES, block)]
    return tuple(
        generator.multinomial(n, np.full(n, 1 / n), size=size).astype(np.float32) for size in sizes
    )
