"""The sentences and the page of a calibration: the table of every setting, and which to choose."""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from holdfast.analysis.candidates import FOLDERS, MOST_BROKEN, Calibration, Candidate
from holdfast.analysis.choosing import Pick, TimesNeeded, front, times_needed
from holdfast.analysis.estimates import rule_rows
from holdfast.analysis.prompt_effect import NEVER_FOLLOWED, UNINFORMATIVE, baseline_beside
from holdfast.analysis.series import NO_FIX, read_series
from holdfast.analysis.statistics import SCORES, Estimate, estimate
from holdfast.analysis.verdicts import MIN_SAMPLES, verdict_on
from holdfast.records import Run, read_run
from holdfast.report.page import Table, pictures, render_study
from holdfast.report.sentences import baseline_hint, baseline_lines
from holdfast.report.wording import aligned, percent, plain, signed, with_interval

_MOST = 100  # times as much work; larger factors are not reported


def answer(calibration: Calibration, chosen: Pick) -> str:
    """The recommendation, or why there is none."""
    if chosen.method == NO_FIX:
        return _nothing_chosen(calibration, chosen)
    reported, total = int(calibration.report.sum()), len(calibration.report)
    budget = points_of(chosen.budget)
    numbers = (
        f"On the {reported} of {total} conversations that it was not chosen on: stability"
        f" {chosen.stability_none:.2f} -> {chosen.stability.mean:.2f}"
        f" ({signed_to(chosen.gain)}), points lost {signed_to(chosen.drop, 1)}."
    )
    if not chosen.recommended:
        return (
            f"Nothing to recommend yet within a budget of {budget}. The best candidate is"
            f" {chosen.method}. {numbers} There {chosen.why}."
        )
    most_stable = max(calibration.candidates[1:], key=Candidate.mean_stability).method
    if most_stable == chosen.method:
        return f"Use {chosen.method}, within a budget of {budget}. {numbers}"
    return (
        f"Use {chosen.method}, within a budget of {budget}. {numbers} Over all {total},"
        f" {most_stable} is the most stable; but a setting is chosen on {total - reported} of them,"
        " and needs a clear gain and a clear margin to the budget there."
    )


def _nothing_chosen(calibration: Calibration, chosen: Pick) -> str:
    """Why the model as it is was chosen, and how far the closest setting is from being chosen."""
    choosing, total = int((~calibration.report).sum()), len(calibration.report)
    budget = points_of(chosen.budget)
    if choosing < MIN_SAMPLES:
        return (
            f"Too few conversations to recommend a setting: {choosing} to choose on, and"
            f" {MIN_SAMPLES} are needed."
        )
    if chosen.none_fits:
        reason = (
            f"Nothing to recommend: on the {choosing} of {total} conversations that settings are"
            f" chosen on, every setting costs more than {budget} on average."
        )
    elif any(map(calibration.breaks_replies, calibration.candidates[1:])):
        reason = (
            f"Nothing to recommend: on the {choosing} of {total} conversations that settings are"
            f" chosen on, no setting within a budget of {budget} that does not break replies is"
            " more stable than the model as it is."
        )
    else:
        reason = (
            f"Nothing to recommend: on the {choosing} of {total} conversations that settings are"
            f" chosen on, no setting within a budget of {budget} is more stable than the model as"
            " it is."
        )
    return f"{reason} {_nearest(calibration, chosen.near)}" if chosen.near else reason


def _nearest(calibration: Calibration, near: Candidate) -> str:
    """The gain and the cost of the closest setting: where it was not chosen, and over all."""
    choosing, total = ~calibration.report, len(calibration.report)
    gain, half_gain = calibration.gain(near), calibration.gain(near, choosing)
    half_drop = calibration.drop(near, choosing)
    if gain.mean is None or gain.mean <= 0:
        return (
            f"The closest is {near.method}: stability {signed_to(half_gain)}, points lost"
            f" {signed_to(half_drop, 1)}; on all {total}, it is no more stable there either."
        )
    return (
        f"The closest is {near.method}: stability {signed_to(half_gain)}, points lost"
        f" {signed_to(half_drop, 1)}; on all {total}, stability {signed_to(gain)}, points lost"
        f" {signed_to(calibration.drop(near), 1)}."
    )


def points_of(budget: float) -> str:
    """'1 point', '2.5 points'."""
    return "1 point" if budget == 1 else f"{budget:g} points"


def chance_line(calibration: Calibration) -> str:
    """Why points lost mean nothing if the model only guesses; "" otherwise."""
    if not calibration.at_chance:
        return ""
    score = with_interval(
        estimate(calibration.none.capability, None), lambda points: f"{points:.1f}"
    )
    return (
        f"{calibration.about.capability} is at chance: the model without a method scores {score}"
        f"%, and guessing {calibration.chance:.1f}%, so there is no capability to lose; give"
        " another --capability (perplexity:FILE works with any model)"
    )


class LargerSizes(NamedTuple):
    """The sizes of a calibration that should decide."""

    option: str  # "draws" or "conversations": that which sets their number
    value: int  # of this option
    questions: int
    conversations: int  # per setting


def sizes_needed(calibration: Calibration, chosen: Pick) -> LargerSizes | None:
    """Sizes large enough to decide if the means hold; None if none are within reach."""
    plan, count = calibration.about.plan, len(calibration.none.stability)
    questions = calibration.questions
    times = times_needed(calibration, chosen) or TimesNeeded(1.0, 1.0)
    longer = max(times.conversations, 2 * MIN_SAMPLES / count)
    more = max(times.questions, 2 * MIN_SAMPLES / questions)
    if not 1 < max(longer, more) <= _MOST:
        return None
    option = "draws" if plan.conversations is None else "conversations"
    size = plan.conversations or plan.draws or 1
    value = math.ceil(longer * size)
    larger = count * value // size
    return LargerSizes(option, value, max(math.ceil(more * questions), larger), larger)


def next_step(calibration: Calibration, chosen: Pick) -> str:
    """Advice if nothing is recommended and a larger calibration would not help."""
    near = chosen.near
    if calibration.at_chance:
        return "give a --capability that the model has; perplexity:FILE works with any model."
    if near is not None and verdict_on(calibration.gain(near)).sign > 0:
        drop = calibration.drop(near)
        most = math.ceil(drop.high or drop.mean or 0.0)
        return f"raise --budget ({most} would admit {near.method}), or sweep weaker settings."
    return "sweep other methods or settings with --sweep; `holdfast methods` lists them."


def table(calibration: Calibration) -> str:
    """Every setting with its 95% intervals; a star marks the Pareto front."""
    head, *rows = setting_rows(calibration)
    short = [("", head[0], *head[2:4], "", *head[5:])]
    for method, star, stability, against, verdict, capability, *others in rows:
        stability, capability = (text.partition(" ")[0] for text in (stability, capability))
        word = verdict.partition(":")[0]
        short.append((star, method, stability, against, word, capability, *others))
    count = len(calibration.none.stability)
    if calibration.about.plan.conversations is None:
        sizes = f"{count} conversations per setting, 95% intervals for these prompts only."
    else:
        sizes = f"{count} conversations per setting, 95% intervals."
    legend = (
        f"{sizes} * no setting is both more stable and cheaper. Points are {calibration.unit} on"
        f" {calibration.about.capability}."
    )
    return "\n".join([*aligned(short), legend, *_health_lines(calibration)])


def _health_lines(calibration: Calibration) -> list[str]:
    """Explains the last columns of the table, and lists the settings that they rule out."""
    if calibration.none.broken is None:
        return []
    lines = [
        "Broken: replies that are empty, loop, or are gibberish. Perplexity: of replies,"
        " under the model without a method."
    ]
    breaking = [
        f"{candidate.method} ({signed_to(calibration.breaks(candidate), 0)} points)"
        for candidate in calibration.candidates[1:]
        if calibration.breaks_replies(candidate)
    ]
    if breaking:
        lines.append(
            f"Not recommended, however stable, as they clearly break over {MOST_BROKEN} points"
            f" more of the replies than no method: {', '.join(breaking)}."
        )
    return lines


def detail_lines(calibration: Calibration) -> list[str]:
    """The tokens spent on capability and, if question counts vary, how it is averaged."""
    tokens = sum(candidate.tokens for candidate in calibration.candidates)
    lines = [f"{tokens:,} tokens forwarded for {calibration.about.capability}."]
    questions, count = calibration.questions, len(calibration.none.stability)
    quotient = questions // count
    if quotient and questions % count:
        lines.append(
            f"Each setting was asked {questions} questions, {quotient} or {quotient + 1} in each of"
            f" its {count} conversations; capability is the mean over conversations."
        )
    return lines


def unprompted_lines(run: Run) -> list[str]:
    """Which prompts or rules score as well without the system prompt, or how to measure it."""
    first = read_series(run)[0]
    baseline = baseline_beside(run, first)
    if baseline is None:
        rules = rule_rows([first])
        return [baseline_hint(rules)] if rules else []
    lines = baseline_lines(baseline, by_case=True)
    if any(row.verdict in (NEVER_FOLLOWED, UNINFORMATIVE) for row in baseline.cases):
        lines.append(
            "They still count in every stability here; leave them out of the suite, or give them"
            " other probes or measures, and calibrate with another --out."
        )
    return lines


def signed_to(value: Estimate, digits: int = 2) -> str:
    """A difference with its interval, rounded to `digits`: '+0.055 [+0.039, +0.071]'."""
    if value.mean is None:
        return "not measured"
    return with_interval(value, lambda number: f"{round(number, digits) + 0.0:+.{digits}f}")


def calibration_page(calibration: Calibration, chosen: Pick, folder: Path, step: str) -> str:
    """The HTML of the page of a calibration whose figures and summary are in `folder`; `step` is
    the next step, whose commands have a line each.
    """
    stability, capability = (read_run(folder / name) for name in FOLDERS)
    headline, _, more = answer(calibration, chosen).partition(". ")
    chance = chance_line(calibration)
    return render_study(
        "calibrate",
        f"{headline.rstrip('.')}.",
        dict(zip(FOLDERS, (stability, capability), strict=True)),
        (
            f"{len(calibration.none.stability)} conversations per setting",
            f"{len(calibration.candidates)} settings",
            calibration.about.capability,
        ),
        lines=(more, chance and f"{chance}.", f"Next: {step}"),
        calibration=calibration,
        chosen=chosen,
        notes=[*detail_lines(calibration), *_health_lines(calibration)],
        settings=Table("Every setting, with 95% intervals", setting_rows(calibration)),
        trade_off=pictures(
            folder, trade_off="Stability against points lost; whiskers are 95% intervals"
        ),
        by_round=pictures(folder, by_round="Stability by round; whiskers are 95% intervals"),
        unprompted=_unprompted_table(stability),
        unprompted_lines=unprompted_lines(stability),
    )


def _unprompted_table(run: Run) -> Table | None:
    """Round 1 scores with and without the system prompt; None if not measured."""
    baseline = baseline_beside(run, read_series(run)[0])
    if baseline is None:
        return None
    unit = "rule" if baseline.by_rule else "prompt"
    rows = [(unit, "n", "with it", "without", "difference", "verdict")]
    for row in baseline.cases:
        scores = plain(row.prompted), plain(row.unprompted), signed(row.difference)
        rows.append((row.name, str(row.n), *scores, row.verdict))
    return Table("Round 1 with the system prompt and without, with 95% intervals", rows)


def setting_rows(calibration: Calibration) -> list[tuple[str, ...]]:
    """The table of every setting, header first, with as many digits as in the terminal."""
    chance = "" if calibration.chance is None else f" (chance {calibration.chance:.1f})"
    head = (
        *("method", "Pareto front", "stability", "against none", "verdict"),
        *(f"capability{chance}", "points lost", "broken", "perplexity"),
    )
    rows: list[tuple[str, ...]] = [head]
    for candidate, star in zip(calibration.candidates, front(calibration), strict=True):
        against, verdict, lost = "", "", ""
        if candidate is not calibration.none:
            gain = calibration.gain(candidate)
            against, lost = signed_to(gain, 3), signed_to(calibration.drop(candidate), 1)
            side = verdict_on(gain)
            verdict = ": ".join(filter(None, (side.word("higher", "lower"), side.why)))
        broken, perplexity = candidate.broken, candidate.perplexity
        rows.append(
            (
                candidate.method,
                "*" if star else "",
                with_interval(
                    estimate(candidate.stability, SCORES), lambda number: f"{number:.3f}"
                ),
                against,
                verdict,
                with_interval(estimate(candidate.capability, None), lambda number: f"{number:.1f}"),
                lost,
                "" if broken is None else percent(float(np.nanmean(broken))),
                "" if perplexity is None else f"{perplexity:.1f}",
            )
        )
    return rows
