"""Chooses a setting of a calibration: the Pareto front, the best within a budget, and how much one
sweep gains over others at the same cost.

The gain of a setting is the stability that it adds to "none". Its cost, or drop, is the points of
capability that it loses. Settings are chosen on one half of the conversations and reported on the
other: a function that takes `rows` looks at these conversations only.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from holdfast.analysis import verdicts
from holdfast.analysis.calibration_results import Calibration, Candidate, Rows
from holdfast.analysis.resampling import bounds_of, resample_means
from holdfast.analysis.statistics import SCORES, Estimate, estimate
from holdfast.errors import UsageError, option
from holdfast.files import write_whole
from holdfast.methods.method_file import Interval, MethodFile
from holdfast.records.run_summary import CalibratedSetting
from holdfast.validation import ranges

# A setting is safe if, on the half to choose on, its gain exceeds 0 and its cost stays below the
# budget by this many standard errors. The other half then shows each in 19 of 20 cases: 1.96 is for
# the end of the other half's interval, plus 1.64 times the square root of 2, as both halves vary.
_SAFE_MARGIN = 4.3


@dataclass(frozen=True)
class Pick:
    """The candidate chosen on one half of the conversations, and its numbers on the other half.

    Args:
        method: its spec string; "none" if no candidate could be chosen.
        budget: the points that may be lost.
        stability_none: the mean stability with "none".
        none_fits: whether every candidate costs more than the budget.
        why: why the other half does not show a gain within the budget; "" if it does.
        near: if none could be chosen, the candidate that comes closest.
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

    @property
    def recommended(self) -> bool:
        """Whether the evidence supports it."""
        return not self.why


def pareto(stability: Sequence[float], drop: Sequence[float]) -> list[bool]:
    """Returns, for each candidate, whether it is on the Pareto front: no other one is at least as
    stable and at most as costly, and better in one of the two.
    """
    points = list(zip(stability, drop, strict=True))

    def is_dominated(mean: float, cost: float) -> bool:
        return any(
            other_mean >= mean and other_cost <= cost and (other_mean, other_cost) != (mean, cost)
            for other_mean, other_cost in points
        )

    return [not is_dominated(mean, cost) for mean, cost in points]


def front(calibration: Calibration) -> list[bool]:
    """Returns, for each candidate, whether its means put it on the Pareto front."""
    candidates = calibration.candidates
    return pareto(
        [calibration.mean_gain(candidate) for candidate in candidates],
        [calibration.mean_drop(candidate) for candidate in candidates],
    )


def calibrated_settings(calibration: Calibration) -> list[CalibratedSetting]:
    """Returns the gain and the cost of each setting, over all conversations; "none" first."""
    return [
        CalibratedSetting(
            method=candidate.method,
            front=is_on_front,
            stability=estimate(candidate.stability, SCORES),
            gain=verdicts.verdict_on(calibration.gain(candidate)),
            capability=calibration.capability(candidate),
            chance=calibration.chance,
            points_lost=verdicts.verdict_on(calibration.drop(candidate)),
            broken=None if candidate.broken is None else estimate(candidate.broken, SCORES),
            broken_more=verdicts.verdict_on(calibration.added_broken(candidate)),
            reply_nats=None if candidate.nats is None else estimate(candidate.nats, None),
            tokens_forwarded=candidate.tokens,
        )
        for candidate, is_on_front in zip(calibration.candidates, front(calibration), strict=True)
    ]


def pick(calibration: Calibration, budget: float) -> Pick:
    """Chooses a candidate on one half of the conversations and reports on the other half: on the
    data it was chosen on, the best of many looks better than it is.

    Only one candidate is tested on the other half, so any rule may choose it, and the error rate of
    the recommendation stays that of one test. The rule: of the candidates that the first half shows
    to be more stable, and whose mean cost there is within the budget, take the most stable with a
    safe margin (`_margin`); if none is safe, the one with the widest margin. If the first half
    shows none to be more stable, take the most stable of "none" and those within the budget. A
    candidate that either half shows to break replies (`Calibration.breaks_replies`) is never
    recommended.
    """
    budget = ranges.Range(0).check("calibrate", "budget", budget)
    none, *steered = calibration.candidates
    reporting = calibration.report
    choosing = ~reporting
    _check_questions(none, choosing, reporting)

    within_budget = [
        candidate for candidate in steered if calibration.mean_drop(candidate, choosing) <= budget
    ]
    unbroken = [
        candidate for candidate in steered if not calibration.breaks_replies(candidate, choosing)
    ]
    eligible = [candidate for candidate in within_budget if candidate in unbroken]
    best = _choose(calibration, eligible, budget, choosing)
    if best is None:
        best = _most_stable(calibration, [none, *eligible], choosing)

    near = None
    if best is none:
        why = "it is the model as it is"
        near = _closest_candidate(calibration, eligible, unbroken, choosing)
    else:
        why = _why_not_shown(calibration, best, budget, reporting)
    stability, stability_none = calibration.compared(best)
    return Pick(
        method=best.method,
        budget=budget,
        stability_none=float(np.nanmean(stability_none[reporting])),
        stability=estimate(stability[reporting], SCORES),
        gain=calibration.gain(best, reporting),
        drop=calibration.drop(best, reporting),
        none_fits=bool(steered) and not within_budget,
        why=why,
        near=near,
    )


def _check_questions(none: Candidate, *halves: np.ndarray) -> None:
    if any(np.isnan(none.capability[half]).all() for half in halves):
        raise UsageError(
            "One half of the conversations has no question, so its cost cannot be measured; ask"
            f" more {option('questions')}."
        )


def _most_stable(
    calibration: Calibration, candidates: Sequence[Candidate], rows: Rows
) -> Candidate:
    return max(candidates, key=lambda candidate: calibration.mean_gain(candidate, rows))


def _choose(
    calibration: Calibration, eligible: Sequence[Candidate], budget: float, rows: Rows
) -> Candidate | None:
    """Returns the most stable candidate with a safe margin, or else the one with the widest margin.

    None if none is certainly more stable than "none".
    """
    more_stable = [
        candidate
        for candidate in eligible
        if verdicts.verdict_on(calibration.gain(candidate, rows)).sign > 0
        and not verdicts.too_few(calibration.drop(candidate, rows))
    ]
    if not more_stable:
        return None
    # A cost comes from the few conversations in which an answer changed, too few to estimate its
    # variance: with no change at all it would look certain. So all candidates share one variance.
    spread = math.sqrt(
        np.mean([(calibration.drop(candidate, rows).sd or 0.0) ** 2 for candidate in more_stable])
    )
    margins = [_margin(calibration, candidate, budget, rows, spread) for candidate in more_stable]
    safe = [
        candidate
        for candidate, margin in zip(more_stable, margins, strict=True)
        if margin >= _SAFE_MARGIN
    ]
    if not safe:
        return more_stable[int(np.argmax(margins))]
    return _most_stable(calibration, safe, rows)


def _margin(
    calibration: Calibration, candidate: Candidate, budget: float, rows: Rows, spread: float
) -> float:
    """Returns by how many standard errors the gain exceeds 0, or the cost stays within the budget,
    whichever is less.

    Args:
        spread: the standard deviation of the cost.
    """
    gain = calibration.gain(candidate, rows)
    drop = calibration.drop(candidate, rows)
    left_of_budget = budget - (drop.mean or 0.0)
    return min(
        _standard_errors(gain.mean or 0.0, gain.sd or 0.0, gain.n),
        _standard_errors(left_of_budget, spread, drop.n),
    )


def _standard_errors(distance: float, sd: float, count: int) -> float:
    return distance * math.sqrt(count) / sd if sd else math.inf


def _closest_candidate(
    calibration: Calibration,
    eligible: Sequence[Candidate],
    unbroken: Sequence[Candidate],
    rows: Rows,
) -> Candidate | None:
    """Returns the candidate within the budget that gains most.

    If none is within the budget, returns the cheapest that gains, or else the cheapest; None if all
    break replies.

    Args:
        eligible: the candidates within the budget that do not break replies.
        unbroken: all candidates that do not.
    """
    if eligible:
        return _most_stable(calibration, eligible, rows)
    more_stable = [
        candidate for candidate in unbroken if calibration.mean_gain(candidate, rows) > 0
    ]
    return min(
        more_stable or unbroken,
        key=lambda candidate: calibration.mean_drop(candidate, rows),
        default=None,
    )


def _why_not_shown(
    calibration: Calibration, candidate: Candidate, budget: float, rows: Rows
) -> str:
    """Says why these conversations do not show a gain within the budget; "" if they do."""
    gain = calibration.gain(candidate, rows)
    drop = calibration.drop(candidate, rows)
    if few := verdicts.too_few(gain) or verdicts.too_few(drop):
        return f"it was tried in too few conversations ({few})"
    if calibration.at_chance:
        return "its cost means nothing, as the model scores no better than chance without it"
    verdict = verdicts.verdict_on(gain)
    if verdict.sign <= 0:
        return f"its gain is not certain ({verdict.why})" if verdict.why else "it is less stable"
    if calibration.breaks_replies(candidate, rows):
        return "it breaks replies"
    cost = verdicts.within(drop, -math.inf, budget)
    if cost == verdicts.SUPPORTED:
        return ""
    if cost == verdicts.CONTRADICTED:
        return "it costs more than the budget"
    assert drop.high is not None  # there are enough conversations
    return f"it may cost up to {drop.high:.1f} points"


def ahead_at_cost(
    calibration: Calibration, steered: Sequence[Candidate], others: Sequence[Candidate]
) -> Estimate:
    """Estimates how much more stable our candidates are than the others at the same cost.

    At a cost between two of the others (or "none"), their stability is interpolated: using one in
    some conversations and the other in the rest has that cost and that stability. Beyond the most
    costly of them, its stability counts. The interval includes the uncertainty of the costs, which
    are computed again in every resample; there is no sd.
    """
    num_compared = 1 + len(others)  # "none" and the others come first, then ours
    values = calibration.gains_and_costs((calibration.none, *others, *steered))

    def ahead(means: np.ndarray) -> float:
        stability, cost = np.split(means, 2)
        cost_order = np.argsort(cost[:num_compared], kind="stable")
        stability_at_cost = np.interp(cost[num_compared:], cost[cost_order], stability[cost_order])
        return float(np.mean(stability[num_compared:] - stability_at_cost))

    low, high = bounds_of(np.array([ahead(means) for means in resample_means(values)]))
    return Estimate(len(values), ahead(np.nanmean(values, 0)), None, low, high)


def write_method_file(calibration: Calibration, choice: Pick, path: Path) -> None:
    """Writes the chosen method to a file that `drift --method` and `methods.parse` accept."""
    about = calibration.about
    content = MethodFile(
        method=choice.method,
        model=about.model,
        model_fingerprint=about.model_fingerprint,
        budget=choice.budget,
        capability=about.capability,
        prompts=about.prompts,
        stability_none=choice.stability_none,
        stability=_interval(choice.stability),
        gain=_interval(choice.gain),
        points_lost=_interval(choice.drop),
    )
    write_whole(path, json.dumps(content.to_json(), indent=1) + "\n")


def _interval(value: Estimate) -> Interval:
    return Interval(mean=value.mean, low=value.low, high=value.high, n=value.n)
