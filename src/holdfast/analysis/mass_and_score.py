"""Correlates the mean mass of a probe with its score: overall, within and between dialogs."""

import math
from collections.abc import Sequence

import numpy as np

from holdfast.analysis.resampling import bounds_of, resample_means
from holdfast.analysis.statistics import Estimate
from holdfast.records import Conversation
from holdfast.records.model import List, Number, Optional, RecordModel

Matrix = List[List[float]]  # rows of numbers, as JSON has them
_MIN_GROUPS = 3  # for a correlation: the means of two dialogs always lie on a line


class Correlation(RecordModel):
    """Pearson's r of mass and score, with its 95% interval."""

    n: Number  # the number of groups that are resampled
    r: float | None  # this and the interval are None if `why` says why
    low: float | None
    high: float | None
    why: Optional[str] = None  # why there is no correlation; None if there is one

    @property
    def estimate(self) -> Estimate:
        """The correlation as an estimate."""
        return Estimate(self.n, self.r, None, self.low, self.high)


class Behaviour(RecordModel):
    """Correlations of a probe's mean mass with its score."""

    all: Correlation
    within_rounds: Correlation  # after subtracting the mean of the probe's round
    within_dialogs: Correlation  # after subtracting the mean of the probe's dialog
    between_dialogs: Correlation  # of the means of dialogs
    probes: Matrix  # round, mass and score of each probe


def correlate_mass_and_score(records: Sequence[Conversation]) -> Behaviour:
    """Correlates a probe's mean mass with its score: overall, within and between dialogs."""
    dialogs = [probes for record in records if len(probes := _masses_and_scores(record))]
    all_probes = np.concatenate([np.empty((0, 3)), *dialogs])
    round_means = {
        number: all_probes[all_probes[:, 0] == number, 1:].mean(0)
        for number in set(all_probes[:, 0])
    }
    values = [probes[:, 1:] for probes in dialogs]
    within_rounds = [
        probes[:, 1:] - np.array([round_means[number] for number in probes[:, 0]])
        for probes in dialogs
    ]
    return Behaviour(
        all=_correlate(values),
        within_rounds=_correlate(within_rounds),
        within_dialogs=_correlate([pairs - pairs.mean(0) for pairs in values]),
        between_dialogs=_correlate([pairs.mean(0, keepdims=True) for pairs in values]),
        probes=all_probes.round(6).tolist(),
    )


def _masses_and_scores(record: Conversation) -> np.ndarray:
    """Returns the round, the mass and the score of each probe that has a mass, [probe, 3]."""
    rows = [
        (probe.round, probe.mass, probe.score)
        for probe in record.stability_probes
        if probe.mass is not None
    ]
    return np.array(rows, dtype=float)


def _correlate(groups: Sequence[np.ndarray]) -> Correlation:
    """Computes Pearson's r of the pairs in all groups, each [n, 2], with a 95% bootstrap interval
    over groups.
    """
    if len(groups) < _MIN_GROUPS:
        why = f"fewer than {_MIN_GROUPS} groups of probes have a mass"
        return Correlation(n=len(groups), r=None, low=None, high=None, why=why)
    sums = np.array([_sums_of_powers(group) for group in groups])
    r = float(_pearson_r(sums.sum(0, keepdims=True))[0])
    if math.isnan(r):
        why = "mass or score is the same everywhere"
        return Correlation(n=len(groups), r=None, low=None, high=None, why=why)
    low, high = bounds_of(_pearson_r(resample_means(sums)))
    return Correlation(n=len(groups), r=r, low=low, high=high)


def _sums_of_powers(group: np.ndarray) -> list[float]:
    """Returns the sums over a group, [n, 2], from which r follows: of 1, x, y, x^2, y^2 and xy.

    Their means over groups give the same r.
    """
    return [len(group), *group.sum(0), *(group**2).sum(0), (group[:, 0] * group[:, 1]).sum()]


def _pearson_r(sums: np.ndarray) -> np.ndarray:
    """Computes Pearson's r from each row of `_sums_of_powers`, [resample, 6].

    NaN where the masses or the scores are constant up to rounding. Values are assumed to be of the
    order of 1.
    """
    n, x, y, xx, yy, xy = sums.T
    spread_x = n * xx - x**2
    spread_y = n * yy - y**2
    varies = (spread_x > n * (1e-12 * xx + 1e-20 * n)) & (spread_y > n * (1e-12 * yy + 1e-20 * n))
    root = np.sqrt(np.where(varies, spread_x * spread_y, np.nan))
    r: np.ndarray = np.clip((n * xy - x * y) / root, -1, 1)
    return r
