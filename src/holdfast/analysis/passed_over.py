"""Why the setting that a calibration chose is not the most stable of its table: it is chosen on one
half of the conversations, and the table is of all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holdfast.analysis.calibration import Calibration, Candidate
from holdfast.analysis.statistics import Estimate, paired_difference
from holdfast.analysis.verdicts import tell

OVER_BUDGET, NO_MORE_STABLE, UNCLEAR_GAIN, UNLIKELY = REASONS = (
    "over budget",  # it loses more points on average
    "no more stable",  # than the chosen one
    "unclear gain",  # against none
    "unlikely",  # to be confirmed by the other half
)


@dataclass(frozen=True)
class PassedOver:
    """The most stable setting within the budget by the means of all conversations, where another
    was chosen.

    All but `method` are of the half that settings are chosen on.

    Attributes:
        method: of the setting.
        gain, drop: against none.
        ahead: its stability less that of the chosen one.
        drop_of_chosen: the points that the chosen one loses.
        why: which of `REASONS` it was passed over for.
    """

    method: str
    gain: Estimate
    drop: Estimate
    ahead: Estimate
    drop_of_chosen: Estimate
    why: str


def passed_over(
    calibration: Calibration, best: Candidate, budget: float, keep: np.ndarray
) -> PassedOver | None:
    """What is more stable than the chosen one by the means of all conversations, and within the
    budget by them.
    """

    def overall(candidate: Candidate) -> float:
        return float(np.nanmean(candidate.stability))

    within_budget = [
        each
        for each in calibration.candidates[1:]
        if calibration.mean_drop(each) <= budget and overall(each) > overall(best)
    ]
    if not within_budget:
        return None
    other = max(within_budget, key=overall)
    gain, drop = calibration.gain(other, keep), calibration.drop(other, keep)
    ahead = paired_difference(other.stability[keep], best.stability[keep])
    if calibration.mean_drop(other, keep) > budget:
        why = OVER_BUDGET
    elif (ahead.mean or 0.0) <= 0:
        why = NO_MORE_STABLE
    else:
        why = UNLIKELY if tell(gain).sign > 0 else UNCLEAR_GAIN
    return PassedOver(other.method, gain, drop, ahead, calibration.drop(best, keep), why)
