"""How large a calibration has to be to show the gain and the cost of a setting."""

import math
from typing import NamedTuple

from holdfast.analysis.candidates import Calibration
from holdfast.analysis.choosing import Pick
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.verdicts import MIN_SAMPLES

_MAX_FACTOR = 100  # times as much work; larger factors are not reported


class TimesNeeded(NamedTuple):
    """By what factors a calibration is to grow."""

    conversations: float  # to show the gain
    questions: float  # to show the cost


class _Evidence(NamedTuple):
    """The gain and the cost of the chosen setting, or of the nearest if none was chosen."""

    gain: Estimate
    drop: Estimate
    halves: int  # of the conversations, that these come from


def times_needed(calibration: Calibration, chosen: Pick) -> TimesNeeded | None:
    """How much more would show the gain and the cost; None if the means do not.

    Each question is asked in one conversation, so that the cost becomes clearer with the questions,
    and hardly with the conversations that share them.
    """
    gain, drop, halves = _evidence_on(calibration, chosen)
    room = chosen.budget - (drop.mean or 0.0)
    if not gain.mean or gain.mean < 0 or room <= 0:
        return None
    if gain.interval is None or drop.interval is None:
        return None
    conversations = halves * max((_half_width(gain) / gain.mean) ** 2, MIN_SAMPLES / gain.n)
    questions = halves * max((_half_width(drop) / room) ** 2, MIN_SAMPLES / drop.n)
    least = 1.0 if max(conversations, questions) > 1.5 else 1.5
    return TimesNeeded(max(conversations, least), max(questions, least))


def budget_shown(calibration: Calibration, chosen: Pick, questions: int) -> int:
    """The smallest whole budget that this many questions would show, if the mean cost holds."""
    _, drop, halves = _evidence_on(calibration, chosen)
    if drop.mean is None or drop.interval is None:
        return math.ceil(chosen.budget)
    shrinks = math.sqrt(halves * calibration.questions / questions)
    return math.ceil(drop.mean + shrinks * _half_width(drop))


def _evidence_on(calibration: Calibration, chosen: Pick) -> _Evidence:
    if chosen.near is None:
        return _Evidence(chosen.gain, chosen.drop, halves=1)
    return _Evidence(calibration.gain(chosen.near), calibration.drop(chosen.near), halves=2)


def _half_width(value: Estimate) -> float:
    assert value.low is not None and value.high is not None
    return (value.high - value.low) / 2


class LargerSizes(NamedTuple):
    """The sizes of a calibration that should decide."""

    option: str  # "draws" or "conversations": that which sets their number
    value: int  # of this option
    questions: int
    conversations: int  # per setting


def sizes_needed(calibration: Calibration, chosen: Pick) -> LargerSizes | None:
    """Sizes large enough to decide if the means hold; None if none are within reach."""
    plan = calibration.about.plan
    count = len(calibration.none.stability)
    questions = calibration.questions
    times = times_needed(calibration, chosen) or TimesNeeded(1.0, 1.0)
    times_conversations = max(times.conversations, 2 * MIN_SAMPLES / count)
    times_questions = max(times.questions, 2 * MIN_SAMPLES / questions)
    if not 1 < max(times_conversations, times_questions) <= _MAX_FACTOR:
        return None
    option = "draws" if plan.conversations is None else "conversations"
    size = plan.conversations or plan.draws or 1
    value = math.ceil(times_conversations * size)
    conversations = count * value // size
    return LargerSizes(
        option=option,
        value=value,
        questions=max(math.ceil(times_questions * questions), conversations),
        conversations=conversations,
    )
