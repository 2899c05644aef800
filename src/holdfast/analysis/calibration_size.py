"""Estimates how large a calibration has to be to decide, if its means stay as they are.

For example, a gain of 0.02 whose interval reaches 0.03 to either side takes (0.03 / 0.02)**2 = 2.25
times the conversations.
"""

import math
from typing import Literal, NamedTuple

from holdfast.analysis.calibration_results import Calibration
from holdfast.analysis.choosing import Pick
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.verdicts import MIN_SAMPLES

_MAX_FACTOR = 100  # larger factors of growth are not reported


class LargerSizes(NamedTuple):
    """The sizes of a calibration that should decide."""

    option: Literal["draws", "conversations"]  # the one that sets the number of conversations
    value: int  # of this option
    questions: int
    conversations: int  # per setting


class TimesNeeded(NamedTuple):
    """The factors by which a calibration would have to grow."""

    conversations: float  # to show the gain
    questions: float  # to show the cost


class _Evidence(NamedTuple):
    """The gain and the cost of the chosen setting, or of the nearest if none was chosen."""

    gain: Estimate
    drop: Estimate
    halves: int  # on how many halves of the conversations the two were measured


def sizes_needed(calibration: Calibration, choice: Pick) -> LargerSizes | None:
    """Returns sizes that would decide if the means stay as they are.

    None if the calibration is large enough, or if more than `_MAX_FACTOR` times the work would be
    needed.
    """
    plan = calibration.about.plan
    count = len(calibration.none.stability)
    questions = calibration.questions
    times = times_needed(calibration, choice) or TimesNeeded(1.0, 1.0)
    times_conversations = max(times.conversations, 2 * MIN_SAMPLES / count)
    times_questions = max(times.questions, 2 * MIN_SAMPLES / questions)
    if not 1 < max(times_conversations, times_questions) <= _MAX_FACTOR:
        return None
    size = plan.conversations or plan.draws or 1
    value = math.ceil(times_conversations * size)
    conversations = count * value // size
    return LargerSizes(
        option="draws" if plan.conversations is None else "conversations",
        value=value,
        questions=max(math.ceil(times_questions * questions), conversations),
        conversations=conversations,
    )


def times_needed(calibration: Calibration, choice: Pick) -> TimesNeeded | None:
    """Estimates by what factors the calibration would have to grow to show the gain and the cost.

    None if no size would, because the means show no gain or too high a cost.

    Each question is asked in one conversation, so the cost becomes clearer with more questions, and
    hardly with more conversations that share them.
    """
    gain, drop, halves = _evidence_on(calibration, choice)
    room = choice.budget - (drop.mean or 0.0)
    if not gain.mean or gain.mean < 0 or room <= 0:
        return None
    if gain.interval is None or drop.interval is None:
        return None
    conversations = halves * max((_half_width(gain) / gain.mean) ** 2, MIN_SAMPLES / gain.n)
    questions = halves * max((_half_width(drop) / room) ** 2, MIN_SAMPLES / drop.n)
    # at least one of the two has to grow noticeably, by half
    min_factor = 1.0 if max(conversations, questions) > 1.5 else 1.5
    return TimesNeeded(max(conversations, min_factor), max(questions, min_factor))


def budget_shown(calibration: Calibration, choice: Pick, questions: int) -> int:
    """Returns the smallest whole budget that this many questions would show to be kept, if the mean
    cost stays as it is.
    """
    _, drop, halves = _evidence_on(calibration, choice)
    if drop.mean is None or drop.interval is None:
        return math.ceil(choice.budget)
    shrinkage = math.sqrt(halves * calibration.questions / questions)  # of the interval
    return math.ceil(drop.mean + shrinkage * _half_width(drop))


def _evidence_on(calibration: Calibration, choice: Pick) -> _Evidence:
    if choice.near is None:
        return _Evidence(choice.gain, choice.drop, halves=1)
    return _Evidence(calibration.gain(choice.near), calibration.drop(choice.near), halves=2)


def _half_width(value: Estimate) -> float:
    assert value.low is not None and value.high is not None
    return (value.high - value.low) / 2
