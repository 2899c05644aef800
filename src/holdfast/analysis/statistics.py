"""Means and their uncertainty. The unit is the conversation: rounds and probes of one conversation
are not independent. Matrices are [conversation, round], with NaN where a round was not measured.
"""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from holdfast.analysis.resampling import SEED, Limits, bounds_by_column, resampled
from holdfast.records.mean_estimate import Estimate as Estimate
from holdfast.records.mean_estimate import OtherPrompts

SCORES: Limits = (0.0, 1.0)
DIFFERENCES: Limits = (-1.0, 1.0)  # of two scores
ERROR = 0.05  # of the intervals that are shown

MIN_PROMPTS = 20  # with fewer, resampling says too little about other prompts: docs/verdicts.md


NOTHING = Estimate(0, None, None, None, None)  # for what was not measured


def estimate_columns(
    values: np.ndarray, limits: Limits | None, error: float = ERROR
) -> list[Estimate]:
    """One estimate per column of [conversation, column], each over the conversations that have a
    value there.

    All columns see the same resampled conversations, as rounds of one conversation belong together.

    Args:
        limits: the lowest and the highest value that a conversation can have; None if there are
            none, and the interval is then a plain Bayesian bootstrap.
        error: the probability, of at most 0.05, with which a verdict on one column may be wrong.
    """
    values = np.ascontiguousarray(values, dtype=float)
    return list(_estimates(values.tobytes(), values.shape, limits, error))


@functools.lru_cache(maxsize=256)
def _estimates(
    data: bytes, shape: tuple[int, int], limits: Limits | None, error: float
) -> tuple[Estimate, ...]:
    """Cached, as page and figures ask for the same ones several times."""
    values = np.frombuffer(data, dtype=float).reshape(shape)
    measured = ~np.isnan(values)
    errors = (ERROR,) if error == ERROR else (ERROR, error)
    bounds = bounds_by_column(
        np.where(measured, values, 0.0), measured.astype(float), limits, errors
    )
    return tuple(
        _estimate(column[~np.isnan(column)], ends)
        for column, ends in zip(values.T, bounds, strict=True)
    )


def _estimate(values: np.ndarray, bounds: np.ndarray) -> Estimate:
    """The estimate of values, [n], whose bounds are [error, low and high]."""
    if not len(values):
        return NOTHING
    mean = float(values.mean())
    if len(values) == 1:
        return Estimate(1, mean, None, None, None)
    (low, high), *others = ((float(low), float(high)) for low, high in bounds)
    decisive = others[0] if others else None
    return Estimate(len(values), mean, float(values.std(ddof=1)), low, high, decisive)


def estimate(
    values: np.ndarray,
    limits: Limits | None,
    prompts: Sequence[str] | None = None,
    error: float = ERROR,
) -> Estimate:
    """The estimate of one value per conversation, [n], NaN where not measured; given the prompt of
    each conversation, it includes the interval for other prompts. `limits` and `error` are those of
    `estimate_columns`.
    """
    values = np.asarray(values, dtype=float)
    summary = estimate_columns(values[:, None], limits, error)[0]
    if prompts is None or len(set(np.asarray(prompts)[~np.isnan(values)])) < MIN_PROMPTS:
        return summary
    return replace(summary, other_prompts=over_prompts(values, limits, np.asarray(prompts)))


def over_prompts(values: np.ndarray, limits: Limits | None, prompts: np.ndarray) -> OtherPrompts:
    """The interval from resampling prompts, [n], each with all of its conversations (the cluster
    bootstrap); values are [n], NaN where not measured.
    """
    measured = ~np.isnan(values)
    drawn, owner = np.unique(prompts[measured], return_inverse=True)
    sums = np.bincount(owner, weights=values[measured], minlength=len(drawn))
    sizes = np.bincount(owner, minlength=len(drawn)).astype(float)
    low, high = bounds_by_column(sums[:, None], sizes[:, None], limits, (ERROR,))[0, 0]
    return OtherPrompts(len(drawn), float(low), float(high))


def change(
    values: np.ndarray,
    first: int = 0,
    last: int = -1,
    prompts: Sequence[str] | None = None,
    error: float = ERROR,
) -> Estimate:
    """The paired change of scores, [conversation, round], from one round to another."""
    return estimate(values[:, last] - values[:, first], DIFFERENCES, prompts, error)


def paired_difference(
    values: np.ndarray,
    baseline: np.ndarray,
    limits: Limits | None = DIFFERENCES,
    prompts: Sequence[str] | None = None,
    error: float = ERROR,
) -> Estimate:
    """The mean of values - baseline, both in the same order of conversations; `limits` are those
    of the difference.
    """
    differences = np.asarray(values, dtype=float) - np.asarray(baseline, dtype=float)
    return estimate(differences, limits, prompts, error)


def unpaired_difference(
    values: np.ndarray, baseline: np.ndarray, limits: Limits = SCORES, error: float = ERROR
) -> Estimate:
    """The mean of values minus that of other conversations, both [n] and within `limits`.

    n is the smaller number of conversations, and sd the standard error of the difference.
    """
    sample = np.asarray(values, dtype=float)[:, None]
    other = np.asarray(baseline, dtype=float)[:, None]
    count = min(len(sample), len(other))
    mean = float(sample.mean() - other.mean())
    if count < 2:
        return Estimate(count, mean, None, None, None)
    low, high = resampled(sample, np.ones_like(sample), limits)
    # both are resampled in the same order; permuting one keeps the resamples from being paired
    order = np.random.default_rng(SEED).permutation(len(low))
    other_low, other_high = resampled(other, np.ones_like(other), limits)
    other_low = other_low[order]
    other_high = other_high[order]
    least = (low - other_high)[:, 0]
    most = (high - other_low)[:, 0]

    def interval(error: float) -> tuple[float, float]:
        ends = np.percentile(least, 50 * error), np.percentile(most, 100 - 50 * error)
        return float(ends[0]), float(ends[1])

    decisive = None if error == ERROR else interval(error)
    return Estimate(count, mean, float((low - other_low).std()), *interval(ERROR), decisive)


def share(followed: np.ndarray, given: np.ndarray) -> list[Estimate]:
    """The share of all that was given that was followed, by column of [conversation, column]; NaN
    where nothing was. It has no standard deviation, as conversations differ in what they are given.
    """
    measured = ~np.isnan(given)
    sums = np.where(measured, followed, 0.0)
    sizes = np.where(measured, given, 0.0)
    shares = []
    for column, bounds in enumerate(bounds_by_column(sums, sizes, SCORES, (ERROR,))):
        count = int(measured[:, column].sum())
        if not count:
            shares.append(NOTHING)
            continue
        mean = float(sums[:, column].sum() / sizes[:, column].sum())
        low, high = (float(end) for end in bounds[0]) if count > 1 else (None, None)
        shares.append(Estimate(count, mean, None, low, high))
    return shares


def row_means(values: np.ndarray) -> np.ndarray:
    """Each conversation's mean over the rounds it has; NaN where it has none."""
    present = ~np.isnan(values)
    counts = present.sum(axis=1)
    sums = np.where(present, values, 0.0).sum(axis=1)
    means: np.ndarray = np.divide(sums, counts, out=np.full(len(values), np.nan), where=counts > 0)
    return means


def cell_means(scores: Iterable[tuple[int, int, float]], shape: tuple[int, int]) -> np.ndarray:
    """The mean of all scores (row, column, value) of each cell; NaN where there are none."""
    rows, columns, values = np.array(list(scores), dtype=float).reshape(-1, 3).T
    return means_by_cell(rows, columns, values, shape)


def means_by_cell(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, shape: tuple[int, int]
) -> np.ndarray:
    """The mean of values, [n], of each cell of a matrix of this shape, given the row and the column
    of each; NaN where there are none.
    """
    size = shape[0] * shape[1]
    cells = np.ravel_multi_index((rows.astype(np.intp), columns.astype(np.intp)), shape)
    counts = np.bincount(cells, minlength=size)
    sums = np.bincount(cells, values, minlength=size)
    means: np.ndarray = np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0)
    return means.reshape(shape)
