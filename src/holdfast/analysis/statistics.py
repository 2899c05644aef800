"""Estimates means and their uncertainty.

The unit is the conversation, as rounds and probes of one conversation are not independent. Values
are NaN where nothing was measured. The functions share these arguments:

limits   the lowest and the highest value that a conversation can have; None if there are no
         limits, and the interval is then a plain Bayesian bootstrap
prompts  the prompt of each conversation; the estimate then includes the interval for other
         prompts, if there are at least `MIN_PROMPTS`
error    the probability, of at most 0.05, with which a verdict on an estimate may be wrong
"""

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from holdfast.analysis.resampling import (
    Limits,
    bounds_by_column,
    num_resamples,
    resample_differences,
)
from holdfast.records.mean_estimate import Estimate as Estimate  # other modules import it from here
from holdfast.records.mean_estimate import OtherPrompts

SCORES: Limits = (0.0, 1.0)
DIFFERENCES: Limits = (-1.0, 1.0)  # of two scores
ERROR = 0.05  # of the intervals that are reported
MIN_PROMPTS = 20  # with fewer, resampling says too little about other prompts: docs/verdicts.md
_MAX_DIFFERENCES = 8_000_000  # resamples times pairs that are in memory at once
NOTHING = Estimate(n=0, mean=None, sd=None, low=None, high=None)  # nothing was measured
# The scores of each probe (a question about a rule): arrays of one shape, NaN where not judged.
ByProbe = Mapping[Any, np.ndarray]


class MatrixEntry(NamedTuple):
    """A value in a cell of a matrix, which may have several."""

    row: int
    column: int
    value: float


# --- Means with their uncertainty


def estimate_columns(
    values: np.ndarray, limits: Limits | None, error: float = ERROR
) -> list[Estimate]:
    """Estimates the mean of each column of values, [conversation, column], over the conversations
    that have a value in it.

    All columns see the same resampled conversations, as rounds of one conversation belong together.
    """
    values = np.ascontiguousarray(values, dtype=float)
    # as bytes, which a cache can look up
    return list(_estimates(values.tobytes(), values.shape, limits, error))


@functools.lru_cache(maxsize=256)
def _estimates(
    data: bytes, shape: tuple[int, int], limits: Limits | None, error: float
) -> tuple[Estimate, ...]:
    """Computes `estimate_columns`; cached, as page and figures need the same estimates."""
    values = np.frombuffer(data, dtype=float).reshape(shape)
    is_measured = ~np.isnan(values)
    # the interval that is reported, and, if verdicts need a wider one, theirs
    errors = (ERROR,) if error == ERROR else (ERROR, error)
    intervals_by_column = bounds_by_column(
        np.where(is_measured, values, 0.0), is_measured.astype(float), limits, errors
    )
    return tuple(
        _estimate(column[~np.isnan(column)], intervals)
        for column, intervals in zip(values.T, intervals_by_column, strict=True)
    )


def _estimate(values: np.ndarray, intervals: np.ndarray) -> Estimate:
    """Returns the estimate of measured values, [n].

    Args:
        intervals: [interval, low and high]: the reported one, and perhaps a wider one for verdicts.
    """
    if not len(values):
        return NOTHING
    mean = float(values.mean())
    if len(values) == 1:
        return Estimate(1, mean, None, None, None)
    (low, high), *wider = ((float(low), float(high)) for low, high in intervals)
    decisive = wider[0] if wider else None
    return Estimate(len(values), mean, float(values.std(ddof=1)), low, high, decisive)


def estimate(
    values: np.ndarray,
    limits: Limits | None,
    prompts: Sequence[str] | None = None,
    error: float = ERROR,
) -> Estimate:
    """Estimates the mean of one value per conversation, [n]."""
    values = np.asarray(values, dtype=float)
    (for_these_prompts,) = estimate_columns(values[:, None], limits, error)
    if prompts is None:
        return for_these_prompts
    prompt_of = np.asarray(prompts)
    measured_prompts = set(prompt_of[~np.isnan(values)])
    if len(measured_prompts) < MIN_PROMPTS:
        return for_these_prompts
    return replace(for_these_prompts, other_prompts=over_prompts(values, limits, prompt_of))


def over_prompts(values: np.ndarray, limits: Limits | None, prompts: np.ndarray) -> OtherPrompts:
    """Returns the interval from resampling prompts, [n], each with the values of all of its
    conversations, [n] (the cluster bootstrap).
    """
    is_measured = ~np.isnan(values)
    distinct, prompt_number = np.unique(prompts[is_measured], return_inverse=True)
    sums = np.bincount(prompt_number, weights=values[is_measured], minlength=len(distinct))
    sizes = np.bincount(prompt_number, minlength=len(distinct)).astype(float)
    low, high = bounds_by_column(sums[:, None], sizes[:, None], limits, (ERROR,))[0, 0]
    return OtherPrompts(len(distinct), float(low), float(high))


# --- Differences with their uncertainty


def paired_difference(
    values: np.ndarray,
    baseline: np.ndarray,
    limits: Limits | None = DIFFERENCES,
    prompts: Sequence[str] | None = None,
    error: float = ERROR,
) -> Estimate:
    """Estimates the mean of values - baseline, both [n] in the same order of conversations.

    The limits are those of the difference.
    """
    differences = np.asarray(values, dtype=float) - np.asarray(baseline, dtype=float)
    return estimate(differences, limits, prompts, error)


class SamplePair(NamedTuple):
    """Values, [n], and those of other conversations, [m]."""

    values: np.ndarray
    baseline: np.ndarray


def unpaired_difference(
    values: np.ndarray, baseline: np.ndarray, limits: Limits = SCORES, error: float = ERROR
) -> Estimate:
    """Estimates the mean of values minus that of other conversations, each [n] and within
    `limits`, as `unpaired_differences` does.
    """
    (difference,) = unpaired_differences([SamplePair(values, baseline)], limits, error)
    return difference


def unpaired_differences(
    pairs: Sequence[SamplePair], limits: Limits = SCORES, error: float = ERROR
) -> list[Estimate]:
    """Estimates, for each pair of samples, the mean of the first minus that of the second.

    The interval melds those of the two means (Fay, Proschan and Brittain 2015): for scores of 0 and
    1, it excludes 0 exactly if Fisher's test finds a difference. In the estimate, n is the smaller
    number of conversations, and sd the standard error of the difference.
    """
    estimates: dict[int, Estimate] = {}
    # pairs that need about as many resamples are resampled together
    batches: dict[int, list[int]] = {}
    for number, (values, baseline) in enumerate(pairs):
        count = min(len(values), len(baseline))
        if count < 2:
            mean = float(np.mean(values) - np.mean(baseline))
            estimates[number] = Estimate(count, mean, None, None, None)
        else:
            resamples = num_resamples(max(len(values), len(baseline)), error)
            batches.setdefault(resamples.bit_length(), []).append(number)
    for numbers in batches.values():
        size = max(1, _MAX_DIFFERENCES // num_resamples(1, error))
        for start in range(0, len(numbers), size):
            batch = numbers[start : start + size]
            differences = _differences_of([pairs[number] for number in batch], limits, error)
            estimates |= zip(batch, differences, strict=True)
    return [estimates[number] for number in range(len(pairs))]


def _differences_of(pairs: Sequence[SamplePair], limits: Limits, error: float) -> list[Estimate]:
    """Computes `unpaired_differences` of samples that have at least two values each."""
    resamples = max(num_resamples(max(map(len, pair)), error) for pair in pairs)
    samples, others = (_as_columns(side) for side in zip(*pairs, strict=True))
    resampled = resample_differences(samples, others, limits, resamples)

    def intervals(error: float) -> np.ndarray:
        """Returns the interval of each pair, [pair, low and high]."""
        low = np.percentile(resampled.lowest, 50 * error, axis=0)
        high = np.percentile(resampled.highest, 100 - 50 * error, axis=0)
        return np.stack([low, high], axis=1).astype(float)

    shown = intervals(ERROR)
    decisive = None if error == ERROR else intervals(error)
    standard_errors = resampled.plain.std(axis=0, dtype=float)
    estimates: list[Estimate] = []
    for number, (values, baseline) in enumerate(pairs):
        low, high = map(float, shown[number])
        mean = float(np.mean(values) - np.mean(baseline))
        sd = float(standard_errors[number])
        estimate = Estimate(min(len(values), len(baseline)), mean, sd, low, high)
        if decisive is not None:
            low, high = map(float, decisive[number])
            estimate = replace(estimate, decisive=(low, high))
        estimates.append(estimate)
    return estimates


def _as_columns(samples: Sequence[np.ndarray]) -> np.ndarray:
    """Returns samples of different sizes as columns, [unit, sample], NaN below the last unit."""
    matrix = np.full((max(map(len, samples)), len(samples)), np.nan)
    for column, values in enumerate(samples):
        matrix[: len(values), column] = values
    return matrix


# --- Shares with their uncertainty


def share(counts: np.ndarray, totals: np.ndarray) -> list[Estimate]:
    """Estimates, for each column, the sum of counts over the sum of totals.

    There is no standard deviation, as conversations differ in their totals.

    Args:
        counts, totals: [conversation, column], NaN where nothing was measured.
    """
    is_measured = ~np.isnan(totals)
    sums = np.where(is_measured, counts, 0.0)
    sizes = np.where(is_measured, totals, 0.0)
    shares = []
    for column, bounds in enumerate(bounds_by_column(sums, sizes, SCORES, (ERROR,))):
        count = int(is_measured[:, column].sum())
        if not count:
            shares.append(NOTHING)
            continue
        mean = float(sums[:, column].sum() / sizes[:, column].sum())
        low, high = (float(end) for end in bounds[0]) if count > 1 else (None, None)
        shares.append(Estimate(count, mean, None, low, high))
    return shares


# --- Means without uncertainty


def shared_means(scores: ByProbe, baseline: ByProbe) -> tuple[np.ndarray, np.ndarray]:
    """Averages two sides of a comparison over the probes that have a score on both.

    Every comparison uses it. The difference of the two means is then the mean difference of these
    probes, and a probe that could be judged on one side only changes nothing. Both means are NaN
    where no probe has a score on both sides.

    Args:
        scores: of at least one probe.
        baseline: arrays of the same shape.
    """
    shape = next(iter(scores.values())).shape
    counts = np.zeros(shape)
    sums = np.zeros((2, *shape))
    for probe in scores:
        if probe not in baseline:
            continue
        pair = np.stack([scores[probe], baseline[probe]])
        has_both = ~np.isnan(pair).any(axis=0)
        counts += has_both
        sums += np.where(has_both, pair, 0.0)
    means = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    return means[0], means[1]


def means_over_probes(scores: ByProbe) -> np.ndarray:
    """Averages over the probes that have a score; NaN where none has."""
    return shared_means(scores, scores)[0]


def compared_means(values: np.ndarray, baseline: np.ndarray) -> tuple[float, float]:
    """Returns the means of both, each [n], over the conversations that have a value in both, so
    that their difference is that of the pairs; NaN if there are none.
    """
    has_both = ~np.isnan(values - baseline)
    if not has_both.any():
        return math.nan, math.nan
    return float(values[has_both].mean()), float(baseline[has_both].mean())


def row_means(values: np.ndarray) -> np.ndarray:
    """Returns each conversation's mean over the rounds it has; NaN if it has none."""
    is_measured = ~np.isnan(values)
    counts = is_measured.sum(axis=1)
    sums = np.where(is_measured, values, 0.0).sum(axis=1)
    means: np.ndarray = np.divide(sums, counts, out=np.full(len(values), np.nan), where=counts > 0)
    return means


def matrix_of(entries: Iterable[MatrixEntry], shape: tuple[int, int]) -> np.ndarray:
    """Returns a matrix with the mean of the entries of each cell; NaN in a cell without any."""
    rows, columns, values = np.array(list(entries), dtype=float).reshape(-1, 3).T
    return matrix_of_arrays(rows, columns, values, shape)


def matrix_of_arrays(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, shape: tuple[int, int]
) -> np.ndarray:
    """Returns the matrix of entries that are given as three arrays, [n] each."""
    size = shape[0] * shape[1]
    cells = np.ravel_multi_index((rows.astype(np.intp), columns.astype(np.intp)), shape)
    counts = np.bincount(cells, minlength=size)
    sums = np.bincount(cells, values, minlength=size)
    means: np.ndarray = np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0)
    return means.reshape(shape)
