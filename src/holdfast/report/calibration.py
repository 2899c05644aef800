"""What a calibration shows, in words: the table of every setting, and the one line that answers."""

from __future__ import annotations

from holdfast.analysis.baseline import DOES_NOT, Baseline, baseline_beside
from holdfast.analysis.calibration import Calibration, Candidate
from holdfast.analysis.choice import Near, Pick, front
from holdfast.analysis.passed_over import NO_MORE_STABLE, OVER_BUDGET, UNCLEAR_GAIN, UNLIKELY
from holdfast.analysis.rules import rule_rows
from holdfast.analysis.series import NO_FIX, read_series
from holdfast.analysis.statistics import Estimate, estimate
from holdfast.analysis.verdicts import CANNOT_TELL, LEAST, tell
from holdfast.records import RunData
from holdfast.report.sentences import baseline_hint
from holdfast.report.wording import aligned, plain, with_interval

_MOST = 100  # times as much work: beyond, nobody wants to know how many


def answer(calibration: Calibration, chosen: Pick) -> str:
    """The one line for the user."""
    here, there = int((~calibration.report).sum()), int(calibration.report.sum())
    budget = f"at most {chosen.budget:g} points lost"
    if chosen.method == NO_FIX and here < LEAST:
        return (
            f"This run {CANNOT_TELL} which setting to use with {budget}: the {here} conversations"
            f" chosen on are fewer than {LEAST}; use more {_option(calibration)}."
        )
    if chosen.method == NO_FIX:
        missing = (
            f"every setting loses more than {chosen.budget:g} points on average"
            if chosen.none_fits
            else f"no setting with {budget} is more stable than the model as it is"
        )
        return (
            f"Nothing to recommend: on the half that settings are chosen on, {here} of the"
            f" {here + there} conversations in the table, {missing}."
            f" {_nearest(chosen.near, calibration) if chosen.near else 'Sweep some settings.'}"
        )
    numbers = (
        f"{chosen.method}. It was chosen on {here} of the {here + there} conversations in the"
        f" table; on the {there} others, stability {chosen.stability_none:.2f} ->"
        f" {chosen.stability.mean:.2f} ({signed_to(chosen.gain)}), points lost"
        f" {signed_to(chosen.drop, 1)}."
    )
    if chosen.recommended:
        return f"{budget.capitalize()}: use {numbers}"
    return (
        f"This run {CANNOT_TELL} which setting to use with {budget}. The likeliest is {numbers} "
        f"There {chosen.why}; {_cure(chosen.times_needed, calibration)}."
    )


def passed_over_line(calibration: Calibration, chosen: Pick) -> str:
    """Why the chosen one is not the most stable of the table; "" where it is, or nothing was
    chosen.
    """
    other = chosen.passed_over
    if other is None:
        return ""
    here, count = int((~calibration.report).sum()), len(calibration.none.stability)
    lost = f"it loses {signed_to(other.drop, 1)} points"
    why = {
        OVER_BUDGET: f"{lost}, on average more than {chosen.budget:g}",
        NO_MORE_STABLE: f"it is no more stable than {chosen.method}: {_apart(other.ahead)}",
        UNCLEAR_GAIN: f"its gain of {signed_to(other.gain)} cannot be told from none",
        UNLIKELY: (
            f"{lost} and {chosen.method} {signed_to(other.drop_of_chosen, 1)}, so the other half is"
            f" less likely to show that it loses no more than {chosen.budget:g}"
        ),
    }[other.why]
    return (
        f"{other.method} is more stable in the table, which is of all {count} conversations; on the"
        f" {here} that settings are chosen on, {why}."
    )


def _apart(ahead: Estimate) -> str:
    """'-0.02 [-0.05, +0.01], so the two are level', of what is told of."""
    level = "" if tell(ahead).sign else ", so the two are level"
    return f"{signed_to(ahead, 3)}{level}"


def _nearest(near: Near, calibration: Calibration) -> str:
    """The setting that comes closest, what it has on either half, and what would decide."""
    count = len(calibration.none.stability)
    line = (
        f"The closest there is {near.method}: {_both(near.gain, near.drop)}. "
        f"On all {count}: {_both(near.gain_of_all, near.drop_of_all)}; "
    )
    if near.times_needed is not None:
        return f"{line}this would do, and {_cure(near.times_needed, calibration)}."
    if (near.gain_of_all.mean or 0.0) > 0:
        return f"{line}it costs too much here too, so raise --budget, or sweep other settings."
    return f"{line}it is no more stable here either, so sweep other settings."


def _both(gain: Estimate, drop: Estimate) -> str:
    return f"stability {signed_to(gain)}, points lost {signed_to(drop, 1)}"


def _option(calibration: Calibration) -> str:
    """What says how many conversations there are."""
    drawn = calibration.about.get("plan", {}).get("conversations") is not None
    return "--conversations" if drawn else "--draws"


def _cure(times: float | None, calibration: Calibration) -> str:
    """How much more than these conversations would tell."""
    more, count = f"{_option(calibration)} and --questions", len(calibration.none.stability)
    if times is None:
        return f"use more {more}, or sweep other settings"
    if times > _MOST:
        return f"more than {_MOST} times as many {more} would be needed to tell"
    return (
        f"about {times:.1f} times as many {more} would tell, if the means stay"
        f" ({times * count:,.0f} conversations per setting)"
    )


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
    return "\n".join([*aligned(rows), note, *_uneven(calibration)])


def unprompted_lines(run: RunData) -> list[str]:
    """Which prompts, or rules of theirs, tell nothing, as they score as well without the system
    prompt; where that was not asked and there are rules, what would.

    Args:
        run: of the stability of a calibration.
    """
    first = read_series(run)[0]
    if baseline := baseline_beside(run, first):
        return _unprompted(baseline)
    rules = rule_rows([first])
    return [baseline_hint(rules)] if rules else []


def _unprompted(baseline: Baseline) -> list[str]:
    what = "rules" if baseline.by_rule else "prompts"
    same = [row for row in baseline.cases if row.verdict == DOES_NOT]
    unclear = [f"{row.name} (n = {row.n})" for row in baseline.cases if row.verdict == CANNOT_TELL]
    lines = []
    if same:
        scores = [
            f"{row.name} ({plain(row.prompted)} with it, {plain(row.unprompted)} without)"
            for row in same
        ]
        lines += [
            f"{len(same)} of {len(baseline.cases)} {what} score as well without the system prompt"
            f" at round 1, and tell nothing of it: {'; '.join(scores)}.",
            "They count in every stability here all the same; leave them out of the suite, or give"
            " them other probes or measures, and calibrate with another --out to choose without"
            " them.",
        ]
    if unclear:
        lines.append(
            f"Too few conversations to tell whether these {what} tell anything:"
            f" {', '.join(unclear)}."
        )
    if not lines:
        lines.append(
            f"Each of the {len(baseline.cases)} {what} scores lower without the system prompt at"
            " round 1, so all tell something."
        )
    return lines


def _uneven(calibration: Calibration) -> list[str]:
    """Says what capability is a mean of, where its conversations have different numbers of
    questions.
    """
    questions, count = calibration.questions, len(calibration.none.stability)
    if questions <= count or not questions % count:
        return []
    each = questions // count
    return [
        f"Each setting was asked {questions} questions, {each} or {each + 1} in each of its"
        f" {count} conversations; capability is the mean over conversations of what each scored."
    ]


def _cells(calibration: Calibration, candidate: Candidate) -> tuple[str, ...]:
    against, verdict, lost = "", "", ""
    if candidate is not calibration.none:
        gain = calibration.gain(candidate)
        against, verdict = signed_to(gain, 3), tell(gain).word("higher", "lower")
        lost = signed_to(calibration.drop(candidate), 1)
    return (
        candidate.method,
        f"{estimate(candidate.stability).mean:.3f}",
        against,
        verdict,
        f"{estimate(candidate.capability).mean:.1f}",
        lost,
    )


def signed_to(value: Estimate, digits: int = 2) -> str:
    """A difference with its interval, to so many digits: '+0.055 [+0.039, +0.071]'."""
    if value.mean is None:
        return "not measured"
    return with_interval(value, lambda number: f"{round(number, digits) + 0.0:+.{digits}f}")
