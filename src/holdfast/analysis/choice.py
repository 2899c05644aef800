"""Which candidate of a calibration to take: the Pareto front, the choice under a budget, and sweeps
against one another at the same cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holdfast import ranges
from holdfast.analysis.calibration import Calibration, Candidate
from holdfast.analysis.statistics import (
    Estimate,
    bounds_of,
    estimate,
    resampled_means,
)
from holdfast.analysis.verdicts import (
    CONTRADICTED,
    MIN_SAMPLES,
    SUPPORTED,
    bounds,
    tell,
    too_few,
    within,
)
from holdfast.errors import UsageError

# Standard errors that a setting's gain, and its room below the budget, have to have on the half
# that settings are chosen on, so that the other half shows both in 19 of 20 cases: 1.96 for the end
# of the other half's interval, and 1.64 times the square root of 2, as both halves vary.
_SAFE = 4.3


@dataclass(frozen=True)
class Pick:
    """The candidate that one half of the conversations chose under a budget, and its numbers on the
    other half.

    stability_none, stability, gain and drop are those of the other half. none_fits: every candidate
    costs more than the budget. why: the reason why the other half does not show that the candidate
    is more stable and within the budget; "" where it shows both, and only then is it recommended.
    near: the candidate that comes closest, where none could be chosen. rejected: the most stable
    one within the budget by the means of all conversations; None where that is the chosen one.
    """

    method: str
    budget: float
    stability_none: float
    stability: Estimate
    gain: Estimate
    drop: Estimate
    none_fits: bool
    why: str
    near: Candidate | None = None
    rejected: Candidate | None = None

    @property
    def recommended(self) -> bool:
        """Whether the evidence supports it."""
        return not self.why


def times_needed(calibration: Calibration, chosen: Pick) -> float | None:
    """How many times as many conversations and questions would decide, if the means stay as they
    are; None where no more of the same would.
    """
    if chosen.near is None:
        return _times_needed(chosen.gain, chosen.drop, chosen.budget)
    gain, drop = calibration.gain(chosen.near), calibration.drop(chosen.near)
    times = _times_needed(gain, drop, chosen.budget)
    return None if times is None else 2 * times  # one half has to show it


def _times_needed(gain: Estimate, drop: Estimate, budget: float) -> float | None:
    """How many times as many conversations these would have to be to show a gain and a cost within
    the budget; None where their means do not show both.
    """
    room = budget - (drop.mean or 0.0)
    if not gain.mean or gain.mean < 0 or room <= 0:
        return None
    if gain.low is None or gain.high is None or drop.low is None or drop.high is None:
        return None
    gain_width, drop_width = (gain.high - gain.low) / 2, (drop.high - drop.low) / 2
    return max(
        (gain_width / gain.mean) ** 2,
        (drop_width / room) ** 2,
        MIN_SAMPLES / gain.n,
        MIN_SAMPLES / drop.n,
        1.5,
    )


def pareto(stability: Sequence[float], drop: Sequence[float]) -> list[bool]:
    """Which candidates no other beats: none is as stable at as low a cost, and better in one of the
    two.
    """
    points = list(zip(stability, drop, strict=True))
    return [
        not any(s >= mine and d <= cost and (s, d) != (mine, cost) for s, d in points)
        for mine, cost in points
    ]


def front(calibration: Calibration) -> list[bool]:
    """Which candidates are on the Pareto front, over means of all conversations."""
    stability = [_stability(candidate) for candidate in calibration.candidates]
    return pareto(
        stability, [calibration.mean_drop(candidate) for candidate in calibration.candidates]
    )


def pick(calibration: Calibration, budget: float) -> Pick:
    """Chooses on one half of the conversations and reports on the other, as the best of many looks
    better than it is where it was chosen.

    Only one candidate is tested on the other half, so any rule may choose it, and the error rate of
    the recommendation stays that of one test. The rule: of the candidates that the first half shows
    to be more stable, and that lose no more than the budget there on average, the most stable of
    those with a safe margin (`_margin`); where none is safe, the one with the widest. Where the
    first half shows none to be more stable, the most stable of those within the budget and of none.

    A candidate of which either half shows that it breaks replies (`Calibration.wrecks`) is not
    recommended.

    Args:
        calibration: all candidates.
        budget: points that may be lost on average, at least 0.

    Raises:
        ParameterOutOfRange: a negative budget.
        UsageError: a half without questions.
    """
    budget = ranges.Range(0).check("calibrate", "budget", budget)
    here, there = ~calibration.report, calibration.report
    none = calibration.none
    if any(np.isnan(none.capability[half]).all() for half in (here, there)):
        raise UsageError(
            "One half of the conversations has no question, so no cost can be read there; ask more"
            " --questions."
        )
    fitting = [
        candidate
        for candidate in calibration.candidates[1:]
        if calibration.mean_drop(candidate, here) <= budget
    ]
    none_fits = not fitting and len(calibration.candidates) > 1
    fitting = [candidate for candidate in fitting if not calibration.wrecks(candidate, here)]
    best = _choose(calibration, fitting, budget, here) or max(
        [none, *fitting], key=lambda candidate: _stability(candidate, here)
    )
    return Pick(
        method=best.method,
        budget=budget,
        stability_none=_stability(none, there),
        stability=estimate(best.stability[there]),
        gain=calibration.gain(best, there),
        drop=calibration.drop(best, there),
        none_fits=none_fits,
        why=(
            "it is the model as it is"
            if best is none
            else _missing(calibration, best, budget, there)
        ),
        near=_near(calibration, fitting, here) if best is none else None,
        rejected=None if best is none else _rejected(calibration, best, budget, here),
    )


def _stability(candidate: Candidate, keep: np.ndarray | slice = slice(None)) -> float:
    return float(np.nanmean(candidate.stability[keep]))


def _choose(
    calibration: Calibration, fitting: Sequence[Candidate], budget: float, keep: np.ndarray
) -> Candidate | None:
    """The most stable candidate with a safe margin, or the one with the widest margin; None where
    none is shown to be more stable on these conversations.
    """
    shown = [
        candidate
        for candidate in fitting
        if tell(calibration.gain(candidate, keep)).sign > 0
        and not too_few(calibration.drop(candidate, keep))
    ]
    if not shown:
        return None
    # A cost comes from the few conversations in which an answer changed, too few to know how much
    # it varies: where none changed it would be certain. So all share one variance.
    spread = math.sqrt(
        np.mean([(calibration.drop(candidate, keep).sd or 0.0) ** 2 for candidate in shown])
    )
    margins = [_margin(calibration, candidate, budget, keep, spread) for candidate in shown]
    safe = [candidate for candidate, margin in zip(shown, margins, strict=True) if margin >= _SAFE]
    if not safe:
        return shown[int(np.argmax(margins))]
    return max(safe, key=lambda candidate: _stability(candidate, keep))


def _margin(
    calibration: Calibration,
    candidate: Candidate,
    budget: float,
    keep: np.ndarray,
    spread: float,
) -> float:
    """How many standard errors the gain lies above 0 and the cost below the budget, the smaller of
    the two.

    Args:
        spread: the standard deviation of a cost between conversations.
    """
    gain, drop = calibration.gain(candidate, keep), calibration.drop(candidate, keep)
    margins = []
    for distance, sd, count in (
        (gain.mean or 0.0, gain.sd or 0.0, gain.n),
        (budget - (drop.mean or 0.0), spread, drop.n),
    ):
        margins.append(distance * math.sqrt(count) / sd if sd else math.inf)
    return min(margins)


def _rejected(
    calibration: Calibration, best: Candidate, budget: float, keep: np.ndarray
) -> Candidate | None:
    """The candidate that is more stable than the chosen one by the means of all conversations, and
    within the budget by them.
    """
    within_budget = [
        candidate
        for candidate in calibration.candidates[1:]
        if calibration.mean_drop(candidate) <= budget
        and _stability(candidate) > _stability(best)
        and not (calibration.wrecks(candidate) or calibration.wrecks(candidate, keep))
    ]
    return max(within_budget, key=_stability, default=None)


def _near(
    calibration: Calibration, fitting: Sequence[Candidate], keep: np.ndarray
) -> Candidate | None:
    """Of those within the budget, the most stable; where there is none, the cheapest of those that
    gain anything on these conversations, or of all.
    """
    candidates = [
        candidate
        for candidate in calibration.candidates[1:]
        if not calibration.wrecks(candidate, keep)
    ]
    if not candidates:
        return None

    def gained(candidate: Candidate) -> float:
        return calibration.gain(candidate, keep).mean or 0.0

    if fitting:
        return max(fitting, key=gained)
    gaining = [candidate for candidate in candidates if gained(candidate) > 0]
    return min(gaining or candidates, key=lambda candidate: calibration.mean_drop(candidate, keep))


def _missing(
    calibration: Calibration, candidate: Candidate, budget: float, keep: np.ndarray
) -> str:
    """Why these conversations do not show that it is more stable and within the budget; "" where
    they do.
    """
    gain, drop = calibration.gain(candidate, keep), calibration.drop(candidate, keep)
    if few := too_few(gain) or too_few(drop):
        return few
    if calibration.at_chance:
        return "its cost means nothing, as the model scores no better than chance without it"
    verdict = tell(gain)
    if verdict.sign <= 0:
        return f"its gain is not certain ({verdict.why})" if verdict.why else "it is less stable"
    if calibration.wrecks(candidate, keep):
        return "it breaks replies"
    cost = within(drop, -math.inf, budget, -calibration.widest, calibration.widest)
    if cost == SUPPORTED:
        return ""
    if cost == CONTRADICTED:
        return "it costs more than the budget"
    most = bounds(drop, -calibration.widest, calibration.widest)[1]
    return (
        f"it may cost up to {most:.1f} points"
        if math.isfinite(most)
        else "its cost has no upper bound"
    )


def ahead_at_cost(
    calibration: Calibration, ours: Sequence[Candidate], others: Sequence[Candidate]
) -> Estimate:
    """How much more stable ours are than the others at the same cost, on average.

    At a cost between those of two of the others (or none), they are what both are mixed: who takes
    the one in some conversations and the other in the rest has that cost and that stability. Beyond
    their dearest candidate, they are that one. The interval holds the uncertainty of the costs too,
    which are read again in every resample; there is no sd.
    """
    mixed = 1 + len(others)  # none and the others come first
    candidates = (calibration.none, *others, *ours)
    values = np.column_stack(
        [candidate.stability for candidate in candidates]
        + [candidate.capability for candidate in candidates]
    )

    def ahead(means: np.ndarray) -> float:
        stability, capability = np.split(means, 2)
        cost = capability[0] - capability
        curve = np.argsort(cost[:mixed], kind="stable")
        theirs = np.interp(cost[mixed:], cost[curve], stability[curve])
        return float(np.mean(stability[mixed:] - theirs))

    low, high = bounds_of(np.array([ahead(means) for means in resampled_means(values)]))
    return Estimate(len(values), ahead(np.nanmean(values, 0)), None, low, high)
