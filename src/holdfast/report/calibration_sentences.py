"""The sentences on a calibration: which setting to choose, or why none, and what to do then."""

import math

from holdfast.analysis.calibration_results import Calibration, Candidate
from holdfast.analysis.choosing import Pick
from holdfast.analysis.series import NO_FIX
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.verdicts import MIN_SAMPLES, verdict_on
from holdfast.report.wording import with_interval


def answer(calibration: Calibration, choice: Pick) -> str:
    """The recommendation, or why none is given."""
    return " ".join(answer_sentences(calibration, choice))


def answer_sentences(calibration: Calibration, choice: Pick) -> list[str]:
    """The sentences of `answer`; the first one sums it up."""
    if choice.method == NO_FIX:
        return _nothing_chosen_sentences(calibration, choice)
    num_reported = int(calibration.report.sum())
    total = len(calibration.report)
    budget = points_of(choice.budget)
    numbers = (
        f"On the {num_reported} of {total} conversations that it was not chosen on: stability"
        f" {choice.stability_none:.2f} -> {choice.stability.mean:.2f}"
        f" ({signed_to(choice.gain)}), points lost {signed_to(choice.drop, 1)}."
    )
    if not choice.recommended:
        return [
            f"Nothing to recommend yet within a budget of {budget}.",
            f"The best candidate is {choice.method}.",
            numbers,
            f"There {choice.why}.",
        ]
    recommendation = [f"Use {choice.method}, within a budget of {budget}.", numbers]
    most_stable = max(calibration.candidates[1:], key=calibration.mean_gain).method
    if most_stable == choice.method:
        return recommendation
    return [
        *recommendation,
        f"Over all {total}, {most_stable} is the most stable; but a setting is chosen on"
        f" {total - num_reported} of them, and needs a clear gain and a clear margin to the budget"
        " there.",
    ]


def _nothing_chosen_sentences(calibration: Calibration, choice: Pick) -> list[str]:
    """Why the model as it is was chosen, and how close the closest setting came."""
    choosing = int((~calibration.report).sum())
    total = len(calibration.report)
    budget = points_of(choice.budget)
    if choosing < MIN_SAMPLES:
        return [
            f"Too few conversations to recommend a setting: {choosing} to choose on, and"
            f" {MIN_SAMPLES} are needed."
        ]
    if choice.none_fits:
        reason = f"every setting costs more than {budget} on average"
    elif any(map(calibration.breaks_replies, calibration.candidates[1:])):
        reason = (
            f"no setting within a budget of {budget} that does not break replies is more stable"
            " than the model as it is"
        )
    else:
        reason = f"no setting within a budget of {budget} is more stable than the model as it is"
    sentence = (
        f"Nothing to recommend: on the {choosing} of {total} conversations that settings are chosen"
        f" on, {reason}."
    )
    return [sentence, _closest_sentence(calibration, choice.near)] if choice.near else [sentence]


def _closest_sentence(calibration: Calibration, near: Candidate) -> str:
    """The gain and the cost of the closest setting, on the half to choose on and over all."""
    choosing = ~calibration.report
    total = len(calibration.report)
    gain = calibration.gain(near)
    half = (
        f"The closest is {near.method}: stability {signed_to(calibration.gain(near, choosing))},"
        f" points lost {signed_to(calibration.drop(near, choosing), 1)}"
    )
    if gain.mean is None or gain.mean <= 0:
        return f"{half}; on all {total}, it is no more stable either."
    return (
        f"{half}; on all {total}, stability {signed_to(gain)}, points lost"
        f" {signed_to(calibration.drop(near), 1)}."
    )


def points_of(budget: float) -> str:
    """'1 point', '2.5 points'."""
    return "1 point" if budget == 1 else f"{budget:g} points"


def chance_line(calibration: Calibration) -> str:
    """Why points lost mean nothing if the model only guesses, and what to do.

    Returns a sentence without its full stop, so that another cure may follow; "" if the model does
    better than guessing.
    """
    if not calibration.at_chance:
        return ""
    score = with_interval(calibration.capability(calibration.none), "{:.1f}".format)
    return (
        f"{calibration.about.capability} is at chance: the model without a method scores {score}"
        f"%, and guessing {calibration.chance:.1f}%, so there is no capability to lose; give"
        " another --capability (perplexity:FILE works with any model)"
    )


def next_step(calibration: Calibration, choice: Pick) -> str:
    """Advice if nothing is recommended and a larger calibration would not help.

    It begins in lower case, to follow "Next:".
    """
    near = choice.near
    if calibration.at_chance:
        return "give a --capability that the model has; perplexity:FILE works with any model."
    if near is not None and verdict_on(calibration.gain(near)).sign > 0:
        drop = calibration.drop(near)
        largest_loss = math.ceil(drop.high or drop.mean or 0.0)
        return (
            f"raise --budget ({largest_loss} would admit {near.method}), or sweep weaker settings."
        )
    return "sweep other methods or settings with --sweep; `holdfast methods` lists them."


def signed_to(value: Estimate, digits: int = 2) -> str:
    """A difference with its interval, rounded to `digits`: '+0.055 [+0.039, +0.071]'."""
    if value.mean is None:
        return "not measured"
    # adding 0.0 turns a rounded -0.0 into 0.0
    return with_interval(value, lambda number: f"{round(number, digits) + 0.0:+.{digits}f}")
