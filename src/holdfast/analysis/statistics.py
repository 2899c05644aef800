"""Means and their uncertainty. The unit is the conversation: rounds and probes of one conversation
are not independent. Matrices are [conversation, round], with NaN where a round was not measured.

One function, `_resampled`, is behind every interval. It is a Bayesian bootstrap (Rubin 1981) that
adds one unseen conversation: for the lower end it scored as low as a score can be, for the upper
end as high. This is the interval of Gaffke 2005 (see Learned-Miller and Thomas 2019, "A new
confidence interval for the mean of a bounded random variable"). For scores of 0 and 1 it equals the
exact interval of Clopper and Pearson, so it has a width even if all values are alike; with many
conversations it is the usual one. Its coverage for every distribution is conjectured, not proven.
A plain bootstrap is too narrow where few conversations matter much, as it knows only the losses
that it has seen: `benchmarks/verdicts.py` compares the two.
"""

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

Limits = tuple[float, float]
SCORES: Limits = (0.0, 1.0)
DIFFERENCES: Limits = (-1.0, 1.0)  # of two scores
ERROR = 0.05  # of the intervals that are shown

RESAMPLES = 10_000
_FEWEST_RESAMPLES = 1_000
_RESAMPLED_CELLS = 40_000_000  # units times resamples, from which there are fewer resamples
_MOST_KEPT = 1_000  # units whose weights are kept for the next estimate
MIN_PROMPTS = 20  # with fewer, resampling says too little about other prompts: docs/verdicts.md
SEED = 0
_CELLS = 2_000_000  # resampling weights per block
_NOISE = 1e-9  # how much the order of summation may change a score


def excludes_zero(low: float | None, high: float | None) -> bool:
    """Whether an interval exists and does not include 0."""
    return low is not None and high is not None and (low > _NOISE or high < -_NOISE)


@dataclass(frozen=True)
class OtherPrompts:
    """The 95% interval of a mean for prompts like those of a run, which drew `prompts` of them."""

    prompts: int
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        return excludes_zero(self.low, self.high)


@dataclass(frozen=True)
class Estimate:
    """A mean over conversations, with its uncertainty.

    Args:
        n: the number of conversations.
        mean: None if nothing was measured.
        sd: the standard deviation between conversations (n - 1 in the denominator), the error bar
            of Li et al. 2024, Figure 3; None for fewer than two conversations.
        low, high: the 95% interval of the mean; None for fewer than two conversations.
        decisive: the interval that verdicts go by, where they need one wider than 95%, because the
            run has been extended and read before; None if that is [low, high].
        other_prompts: the interval for prompts that the run did not draw; None if it drew too few.
    """

    n: int
    mean: float | None
    sd: float | None
    low: float | None
    high: float | None
    decisive: tuple[float, float] | None = None
    other_prompts: OtherPrompts | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% interval."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def deciding(self) -> tuple[float, float] | None:
        """The interval that verdicts go by; None if there is none."""
        return self.interval if self.decisive is None else self.decisive

    @property
    def excludes_zero(self) -> bool:
        """Whether the 95% interval exists and does not include 0."""
        return excludes_zero(self.low, self.high)


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
    bounds = _bounds(np.where(measured, values, 0.0), measured.astype(float), limits, errors)
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
    low, high = _bounds(sums[:, None], sizes[:, None], limits, (ERROR,))[0, 0]
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
    samples = [np.asarray(sample, dtype=float)[:, None] for sample in (values, baseline)]
    count, mean = min(map(len, samples)), float(samples[0].mean() - samples[1].mean())
    if count < 2:
        return Estimate(count, mean, None, None, None)
    low, high = _resampled(samples[0], np.ones_like(samples[0]), limits)
    # both are resampled in the same order; permuting one keeps the resamples from being paired
    order = np.random.default_rng(SEED).permutation(len(low))
    other_low, other_high = (
        ends[order] for ends in _resampled(samples[1], np.ones_like(samples[1]), limits)
    )
    least, most = (low - other_high)[:, 0], (high - other_low)[:, 0]

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
    sums, sizes = np.where(measured, followed, 0.0), np.where(measured, given, 0.0)
    shares = []
    for column, bounds in enumerate(_bounds(sums, sizes, SCORES, (ERROR,))):
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
    counts, sums = np.bincount(cells, minlength=size), np.bincount(cells, values, minlength=size)
    means: np.ndarray = np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0)
    return means.reshape(shape)


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


def bounds_of(resampled: np.ndarray) -> tuple[float, float]:
    """The 95% percentile interval of a statistic, [resample]."""
    low, high = np.nanpercentile(resampled, [2.5, 97.5])
    return float(low), float(high)


def _bounds(
    sums: np.ndarray, sizes: np.ndarray, limits: Limits | None, errors: Sequence[float]
) -> np.ndarray:
    """The ends of the interval of every column's mean, [column, error, low and high].

    The arguments are those of `_resampled`; a column with fewer than two units has no interval.
    """
    bounds = np.full((sums.shape[1], len(errors), 2), np.nan)
    enough = (sizes > 0).sum(axis=0) > 1
    if enough.any():
        resamples = RESAMPLES if len(errors) > 1 else _enough_resamples(len(sums))
        low, high = _resampled(sums[:, enough], sizes[:, enough], limits, resamples)
        below = np.percentile(low, [50 * error for error in errors], axis=0)
        above = np.percentile(high, [100 - 50 * error for error in errors], axis=0)
        bounds[enough] = np.stack([below, above], axis=-1).swapaxes(0, 1)
    return bounds


def _enough_resamples(units: int) -> int:
    """How many resamples the ends of a 95% interval take: fewer of so many units that each resample
    takes long, and the interval is narrow.
    """
    return min(RESAMPLES, max(_FEWEST_RESAMPLES, _RESAMPLED_CELLS // units))


def _resampled(
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
    lowest, highest = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    if limits is None:
        unseen = np.zeros(len(unseen))
    else:
        lowest, highest = np.minimum(lowest, limits[0]), np.maximum(highest, limits[1])
    low, high = [], []
    # those of many units take more memory than time
    blocks = _weights(len(sums)) if len(sums) <= _MOST_KEPT else _blocks(len(sums) + 1, resamples)
    for weights in blocks:
        seen, extra = weights[:, :-1], weights[:, -1:] * unseen
        total, size = seen @ sums, seen @ sizes + extra
        low.append((total + extra * lowest) / size)
        high.append((total + extra * highest) / size)
    return np.concatenate(low), np.concatenate(high)


@functools.lru_cache(maxsize=4)
def _weights(units: int) -> tuple[np.ndarray, ...]:
    """The weight of each unit, and of one that was not seen, in each resample: blocks of
    [resample, unit + 1]. Exponential weights over their sum are uniform over all weightings.
    """
    return tuple(_blocks(units + 1, RESAMPLES))


def _blocks(columns: int, resamples: int) -> Iterator[np.ndarray]:
    generator = np.random.default_rng([SEED, columns])
    block = max(1, _CELLS // columns)
    for start in range(0, resamples, block):
        size = min(block, resamples - start), columns
        yield generator.standard_exponential(size, dtype=np.float32)
