"""Which setting of a calibration to take: Pareto front, budget, sweeps at the same cost."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from holdfast.analysis import verdicts
from holdfast.analysis.candidates import Calibration, Candidate
from holdfast.analysis.resampling import bounds_of, resampled_means
from holdfast.analysis.statistics import SCORES, Estimate, estimate
from holdfast.errors import UsageError
from holdfast.files import write_whole
from holdfast.methods.method_file import Interval, MethodFile
from holdfast.validation import ranges

# Standard errors by which, on the half to choose on, a setting's gain must exceed 0 and its cost
# stay below the budget, so that the other half shows each in 19 of 20 cases: 1.96 for the end of
# the other half's interval, plus 1.64 times the square root of 2, as both halves vary.
_SAFE = 4.3


@dataclass(frozen=True)
class Pick:
    """The candidate chosen on one half of the conversations, and its numbers on the other half."""

    method: str
    budget: float  # points that may be lost
    stability_none: float
    stability: Estimate
    gain: Estimate
    drop: Estimate
    none_fits: bool  # whether every candidate costs more than the budget
    why: str  # the other half does not show a gain within the budget; "" if it does
    near: Candidate | None = None  # the one that comes closest, if none could be chosen

    @property
    def recommended(self) -> bool:
        """Whether the evidence supports it."""
        return not self.why


def pareto(stability: Sequence[float], drop: Sequence[float]) -> list[bool]:
    """Which candidates no other dominates: no less stable, no more costly, and better in one."""
    points = list(zip(stability, drop, strict=True))

    def is_dominated(mean: float, cost: float) -> bool:
        return any(
            other_mean >= mean and other_cost <= cost and (other_mean, other_cost) != (mean, cost)
            for other_mean, other_cost in points
        )

    return [not is_dominated(mean, cost) for mean, cost in points]


def front(calibration: Calibration) -> list[bool]:
    """Which candidates are on the Pareto front, over means of all conversations."""
    candidates = calibration.candidates
    return pareto(
        [candidate.mean_stability() for candidate in candidates],
        [calibration.mean_drop(candidate) for candidate in candidates],
    )


def pick(calibration: Calibration, budget: float) -> Pick:
    """Chooses on one half of the conversations and reports on the other, as the best of many looks
    better than it is on the data it was chosen on.

    Only one candidate is tested on the other half, so any rule may choose it, and the error rate of
    the recommendation stays that of one test. The rule: of the candidates that the first half shows
    to be more stable, and whose mean cost there is within the budget, take the most stable with a
    safe margin (`_margin`); if none is safe, the one with the widest margin. If the first half
    shows none to be more stable, take the most stable of "none" and those within the budget. A
    candidate that either half shows to break replies (`Calibration.breaks_replies`) is never
    recommended.
    """
    budget = ranges.Range(0).check("calibrate", "budget", budget)
    choosing = ~calibration.report
    reporting = calibration.report
    none = calibration.none
    others = calibration.candidates[1:]
    if any(np.isnan(none.capability[half]).all() for half in (choosing, reporting)):
        raise UsageError(
            "One half of the conversations has no question, so no cost can be read there; ask more"
            " --questions."
        )
    within_budget = [c for c in others if calibration.mean_drop(c, choosing) <= budget]
    sound = [c for c in others if not calibration.breaks_replies(c, choosing)]
    fitting = [candidate for candidate in within_budget if candidate in sound]
    best = _choose(calibration, fitting, budget, choosing) or max(
        [none, *fitting], key=lambda candidate: candidate.mean_stability(choosing)
    )
    is_none = best is none
    return Pick(
        method=best.method,
        budget=budget,
        stability_none=none.mean_stability(reporting),
        stability=estimate(best.stability[reporting], SCORES),
        gain=calibration.gain(best, reporting),
        drop=calibration.drop(best, reporting),
        none_fits=bool(others) and not within_budget,
        why="it is the model as it is" if is_none else _doubt(calibration, best, budget, reporting),
        near=_near(calibration, fitting, sound, choosing) if is_none else None,
    )


def _choose(
    calibration: Calibration, fitting: Sequence[Candidate], budget: float, keep: np.ndarray
) -> Candidate | None:
    """The most stable with a safe margin, else the widest margin; None if none is more stable."""
    gaining = [
        candidate
        for candidate in fitting
        if verdicts.verdict_on(calibration.gain(candidate, keep)).sign > 0
        and not verdicts.too_few(calibration.drop(candidate, keep))
    ]
    if not gaining:
        return None
    # A cost comes from the few conversations in which an answer changed, too few to estimate its
    # variance: with no change at all it would look certain. So all candidates share one variance.
    spread = math.sqrt(
        np.mean([(calibration.drop(candidate, keep).sd or 0.0) ** 2 for candidate in gaining])
    )
    margins = [_margin(calibration, candidate, budget, keep, spread) for candidate in gaining]
    safe = [
        candidate for candidate, margin in zip(gaining, margins, strict=True) if margin >= _SAFE
    ]
    if not safe:
        return gaining[int(np.argmax(margins))]
    return max(safe, key=lambda candidate: candidate.mean_stability(keep))


def _margin(
    calibration: Calibration, candidate: Candidate, budget: float, keep: np.ndarray, spread: float
) -> float:
    """Standard errors by which the gain exceeds 0 or the cost stays within budget: the smaller."""
    gain = calibration.gain(candidate, keep)
    drop = calibration.drop(candidate, keep)
    room = budget - (drop.mean or 0.0)
    return min(
        _standard_errors(gain.mean or 0.0, gain.sd or 0.0, gain.n),
        _standard_errors(room, spread, drop.n),
    )


def _standard_errors(distance: float, sd: float, count: int) -> float:
    return distance * math.sqrt(count) / sd if sd else math.inf


def _near(
    calibration: Calibration,
    fitting: Sequence[Candidate],
    sound: Sequence[Candidate],
    keep: np.ndarray,
) -> Candidate | None:
    """The candidate within the budget that gains most, else the cheapest one that gains."""

    def gained(candidate: Candidate) -> float:
        return calibration.gain(candidate, keep).mean or 0.0

    if fitting:
        return max(fitting, key=gained)
    gaining = [candidate for candidate in sound if gained(candidate) > 0]
    return min(gaining or sound, key=lambda c: calibration.mean_drop(c, keep), default=None)


def _doubt(calibration: Calibration, candidate: Candidate, budget: float, keep: np.ndarray) -> str:
    """Why these conversations do not show a gain within the budget; "" if they do."""
    gain = calibration.gain(candidate, keep)
    drop = calibration.drop(candidate, keep)
    if few := verdicts.too_few(gain) or verdicts.too_few(drop):
        return few
    if calibration.at_chance:
        return "its cost means nothing, as the model scores no better than chance without it"
    verdict = verdicts.verdict_on(gain)
    if verdict.sign <= 0:
        return f"its gain is not certain ({verdict.why})" if verdict.why else "it is less stable"
    if calibration.breaks_replies(candidate, keep):
        return "it breaks replies"
    cost = verdicts.within(drop, -math.inf, budget)
    if cost == verdicts.SUPPORTED:
        return ""
    if cost == verdicts.CONTRADICTED:
        return "it costs more than the budget"
    assert drop.high is not None  # there are enough conversations
    return f"it may cost up to {drop.high:.1f} points"


def ahead_at_cost(
    calibration: Calibration, ours: Sequence[Candidate], others: Sequence[Candidate]
) -> Estimate:
    """How much more stable ours are than the others at the same cost, on average.

    At a cost between two of the others (or "none"), their stability is interpolated: using one in
    some conversations and the other in the rest has that cost and that stability. Beyond the most
    costly of them, its stability counts. The interval includes the uncertainty of the costs, which
    are computed again in every resample; there is no sd.
    """
    mixed = 1 + len(others)  # "none" and the others come first
    candidates = (calibration.none, *others, *ours)
    values = np.column_stack(
        [candidate.stability for candidate in candidates]
        + [candidate.capability for candidate in candidates]
    )

    def ahead(means: np.ndarray) -> float:
        stability, capability = np.split(means, 2)
        cost = capability[0] - capability
        curve = np.argsort(cost[:mixed], kind="stable")
        at_same_cost = np.interp(cost[mixed:], cost[curve], stability[curve])
        return float(np.mean(stability[mixed:] - at_same_cost))

    low, high = bounds_of(np.array([ahead(means) for means in resampled_means(values)]))
    return Estimate(len(values), ahead(np.nanmean(values, 0)), None, low, high)


def write_method_file(calibration: Calibration, chosen: Pick, path: Path) -> None:
    """Writes the chosen method to a file that `drift --method` and `methods.parse` accept."""
    about = calibration.about
    content = MethodFile(
        method=chosen.method,
        model=about.model,
        model_fingerprint=about.model_fingerprint,
        budget=chosen.budget,
        capability=about.capability,
        prompts=about.prompts,
        stability_none=chosen.stability_none,
        stability=_interval(chosen.stability),
        gain=_interval(chosen.gain),
        points_lost=_interval(chosen.drop),
    )
    write_whole(path, json.dumps(content.to_json(), indent=1) + "\n")


def _interval(value: Estimate) -> Interval:
    return Interval(mean=value.mean, low=value.low, high=value.high, n=value.n)
