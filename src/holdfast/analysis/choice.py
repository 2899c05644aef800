"""Which candidate of a calibration to take: the Pareto front, the choice under a budget, and sweeps
against one another at the same cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from holdfast import knobs
from holdfast.analysis.calibration import Calibration, Candidate
from holdfast.analysis.passed_over import PassedOver, passed_over
from holdfast.analysis.statistics import Estimate, bounds_of, estimate, resampled_means
from holdfast.analysis.verdicts import CONTRADICTED, LEAST, SUPPORTED, bounds, tell, too_few, within
from holdfast.errors import UsageError

_LIKELY = 0.95  # the chance at which a setting counts as good as confirmed by the other half
_NORMAL = NormalDist()
_ENDS = _NORMAL.inv_cdf(0.975)  # standard errors from a mean to the ends of its interval


@dataclass(frozen=True)
class Near:
    """The candidate that comes closest to a choice where none could be chosen.

    gain and drop are those of the half that settings are chosen on; gain_of_all and drop_of_all of
    all conversations.
    """

    method: str
    budget: float
    gain: Estimate
    drop: Estimate
    gain_of_all: Estimate
    drop_of_all: Estimate

    @property
    def times_needed(self) -> float | None:
        """How many times as much would tell, if the means of all conversations stay as they are;
        None where these means are against it.
        """
        times = _times_needed(self.gain_of_all, self.drop_of_all, self.budget)
        return None if times is None else 2 * times  # a half is to tell it


@dataclass(frozen=True)
class Pick:
    """The candidate that one half of the conversations chose under a budget, and what the other
    half says of it.

    stability_none, stability, gain and drop are those of the other half. none_fits: no candidate
    but none is within the budget. why: what keeps the other half from showing that the candidate is
    more stable and within the budget; "" where it shows both, and only then is it recommended.
    near: what comes closest, where no candidate but none could be chosen.
    passed_over: what the means of all conversations would have chosen; None where they agree.
    """

    method: str
    budget: float
    stability_none: float
    stability: Estimate
    gain: Estimate
    drop: Estimate
    none_fits: bool
    why: str
    near: Near | None = None
    passed_over: PassedOver | None = None

    @property
    def recommended(self) -> bool:
        """Whether the evidence allows to recommend it."""
        return not self.why

    @property
    def times_needed(self) -> float | None:
        """How many times as much would tell, if the means stay as they are; None where no more of
        the same would.
        """
        return _times_needed(self.gain, self.drop, self.budget)


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
        LEAST / gain.n,
        LEAST / drop.n,
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
    stability = [float(np.nanmean(candidate.stability)) for candidate in calibration.candidates]
    return pareto(stability, [calibration.mean_drop(each) for each in calibration.candidates])


def pick(calibration: Calibration, budget: float) -> Pick:
    """Chooses on one half of the conversations and reports on the other, as the best of many looks
    better than it is where it was chosen.

    Only one candidate is tested on the other half, so the choice may be made by any rule, and the
    error rate of the recommendation stays that of one test. It is for what the other half is likely
    to confirm: of the candidates that the first half tells to be more stable, and that lose no more
    than the budget there on average, the most stable of those with a chance of 95 % to be
    confirmed; where none has it, the one with the best chance (`_chance`). Where the first half
    tells none to be more stable, the most stable of those whose mean cost is within the budget and
    of none.

    Args:
        calibration: all candidates.
        budget: points that may be lost on average, at least 0.

    Raises:
        KnobOutOfRange: a negative budget.
        UsageError: a half without questions.
    """
    budget = knobs.number_between("calibrate", "budget", budget, 0)
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
    best = _likeliest(calibration, fitting, budget, here) or max(
        [none, *fitting], key=lambda each: float(np.nanmean(each.stability[here]))
    )
    return Pick(
        method=best.method,
        budget=budget,
        stability_none=float(np.nanmean(none.stability[there])),
        stability=estimate(best.stability[there]),
        gain=calibration.gain(best, there),
        drop=calibration.drop(best, there),
        none_fits=not fitting and len(calibration.candidates) > 1,
        why=(
            "it is the model as it is"
            if best is none
            else _missing(calibration, best, budget, there)
        ),
        near=_near(calibration, fitting, budget, here) if best is none else None,
        passed_over=None if best is none else passed_over(calibration, best, budget, here),
    )


def _likeliest(
    calibration: Calibration, fitting: Sequence[Candidate], budget: float, keep: np.ndarray
) -> Candidate | None:
    """The most stable of those that as many other conversations are likely to confirm; where none
    is that likely, the likeliest. None where none is told to be more stable on these.
    """
    told = [
        each
        for each in fitting
        if tell(calibration.gain(each, keep)).sign > 0 and not too_few(calibration.drop(each, keep))
    ]
    if not told:
        return None
    # A cost comes from the few conversations in which an answer changed, too few to know how much
    # it varies: where none changed it would be certain. So all share one variance.
    spreads = [calibration.drop(each, keep).sd or 0.0 for each in told]
    spread = float(np.sqrt(np.mean(np.square(spreads))))
    chances = [_chance(calibration, each, budget, keep, spread) for each in told]
    likely = [each for each, chance in zip(told, chances, strict=True) if chance >= _LIKELY]
    if not likely:
        return told[int(np.argmax(chances))]
    return max(likely, key=lambda each: float(np.nanmean(each.stability[keep])))


def _chance(
    calibration: Calibration,
    candidate: Candidate,
    budget: float,
    keep: np.ndarray,
    spread: float,
) -> float:
    """The chance, about, that as many other conversations show a gain and a cost within the budget.

    Args:
        spread: the standard deviation of a cost between conversations.
    """
    gain, drop = calibration.gain(candidate, keep), calibration.drop(candidate, keep)
    assert gain.mean is not None and drop.mean is not None  # as of what is told
    return _shown_again(gain.mean, gain.sd or 0.0, gain.n) * _shown_again(
        budget - drop.mean, spread, drop.n
    )


def _shown_again(distance: float, spread: float, count: int) -> float:
    """The chance that the interval of as many others, whose mean is as uncertain as this one, ends
    on the same side of what this mean is so far away from.
    """
    error = spread / math.sqrt(count)
    if not error:
        return 1.0 if distance >= 0 else 0.0
    return _NORMAL.cdf((distance / error - _ENDS) / math.sqrt(2))


def _near(
    calibration: Calibration, fitting: Sequence[Candidate], budget: float, keep: np.ndarray
) -> Near | None:
    """Of those within the budget, the most stable; where there is none, the cheapest of those that
    gain anything on these conversations, or of all.
    """
    candidates = calibration.candidates[1:]
    if not candidates:
        return None

    def gained(candidate: Candidate) -> float:
        return calibration.gain(candidate, keep).mean or 0.0

    if fitting:
        closest = max(fitting, key=gained)
    else:
        gaining = [each for each in candidates if gained(each) > 0]
        closest = min(gaining or candidates, key=lambda each: calibration.mean_drop(each, keep))
    return Near(
        closest.method,
        budget,
        calibration.gain(closest, keep),
        calibration.drop(closest, keep),
        calibration.gain(closest),
        calibration.drop(closest),
    )


def _missing(
    calibration: Calibration, candidate: Candidate, budget: float, keep: np.ndarray
) -> str:
    """What these conversations lack to show that it is more stable and within the budget."""
    gain, drop = calibration.gain(candidate, keep), calibration.drop(candidate, keep)
    if few := too_few(gain) or too_few(drop):
        return few
    told = tell(gain)
    if told.sign <= 0:
        return f"its gain cannot be told ({told.why})" if told.why else "it is less stable"
    cost = within(drop, -math.inf, budget, -calibration.widest, calibration.widest)
    if cost == CONTRADICTED:
        return "it costs more than the budget"
    if cost == SUPPORTED:
        return ""
    most = bounds(drop, -calibration.widest, calibration.widest)[1]
    return (
        f"its cost may be up to {most:.1f} points"
        if math.isfinite(most)
        else "its cost has no bound"
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
        [each.stability for each in candidates] + [each.capability for each in candidates]
    )

    def ahead(means: np.ndarray) -> float:
        stability, capability = np.split(means, 2)
        cost = capability[0] - capability
        curve = np.argsort(cost[:mixed], kind="stable")
        theirs = np.interp(cost[mixed:], cost[curve], stability[curve])
        return float(np.mean(stability[mixed:] - theirs))

    low, high = bounds_of(np.array([ahead(means) for means in resampled_means(values)]))
    return Estimate(len(values), ahead(np.nanmean(values, 0)), None, low, high)
