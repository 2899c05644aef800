"""What a calibration shows, in words: the table of every setting, and the one line that answers."""

from __future__ import annotations

from holdfast.analysis.calibration import Calibration, Candidate
from holdfast.analysis.choice import Pick, front
from holdfast.analysis.series import NO_FIX
from holdfast.analysis.statistics import Estimate, estimate
from holdfast.analysis.verdicts import CANNOT_TELL, LEAST, tell
from holdfast.report.wording import aligned, with_interval

_MOST = 100  # times as much work: beyond, nobody wants to know how many


def answer(calibration: Calibration, chosen: Pick) -> str:
    """The one line for the user."""
    here, there = int((~calibration.report).sum()), int(calibration.report.sum())
    budget = f"at most {chosen.budget:g} points lost"
    if chosen.method == NO_FIX and here < LEAST:
        return (
            f"This run {CANNOT_TELL} which setting to use with {budget}: the {here} conversations"
            f" chosen on are fewer than {LEAST}; use more --draws."
        )
    if chosen.method == NO_FIX:
        missing = (
            f"every setting loses more than {chosen.budget:g} points on average"
            if chosen.none_fits
            else f"no setting with {budget} is more stable than the model as it is"
        )
        return (
            f"Nothing to recommend: on the {here} conversations chosen on, {missing}; "
            "raise --budget, or sweep other settings."
        )
    numbers = (
        f"{chosen.method}, stability {chosen.stability_none:.2f} -> {chosen.stability.mean:.2f}"
        f" ({_signed(chosen.gain)}), points lost {_signed(chosen.drop, 1)}; chosen on {here}"
        f" conversations, reported on the {there} others."
    )
    if chosen.recommended:
        return f"{budget.capitalize()}: use {numbers}"
    return (
        f"This run {CANNOT_TELL} which setting to use with {budget}. The likeliest is {numbers} "
        f"There {chosen.why}; {_cure(chosen.times_needed)}."
    )


def _cure(times: float | None) -> str:
    """How much more would tell."""
    if times is None:
        return "use more --draws and --questions, or sweep other settings"
    if times > _MOST:
        return f"more than {_MOST} times as many --draws and --questions would be needed to tell"
    return f"about {times:.1f} times as many --draws and --questions would tell, if the means stay"


def table(calibration: Calibration) -> str:
    """Every setting: its stability, its capability, and both against none with 95 % intervals; a
    star marks the Pareto front.
    """
    rows: list[tuple[str, ...]] = [
        ("", "method", "stability", "against none", "", "capability", "points lost")
    ]
    for candidate, star in zip(calibration.candidates, front(calibration), strict=True):
        rows.append(("*" if star else "", *_cells(calibration, candidate)))
    tokens = sum(candidate.tokens for candidate in calibration.candidates)
    note = (
        f"* Pareto front of the means. Points are {calibration.unit} on"
        f" {calibration.about['capability']}; {tokens:,} tokens forwarded for them."
    )
    return "\n".join([*aligned(rows), note])


def _cells(calibration: Calibration, candidate: Candidate) -> tuple[str, ...]:
    against, verdict, lost = "", "", ""
    if candidate is not calibration.none:
        gain = calibration.gain(candidate)
        against, verdict = _signed(gain, 3), tell(gain).word("higher", "lower")
        lost = _signed(calibration.drop(candidate), 1)
    return (
        candidate.method,
        f"{estimate(candidate.stability).mean:.3f}",
        against,
        verdict,
        f"{estimate(candidate.capability).mean:.1f}",
        lost,
    )


def _signed(value: Estimate, digits: int = 2) -> str:
    if value.mean is None:
        return "not measured"
    return with_interval(value, lambda number: f"{round(number, digits) + 0.0:+.{digits}f}")
