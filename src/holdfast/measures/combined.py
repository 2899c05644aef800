"""Measures that combine others: the lowest of several, the opposite of one, or the highest over
several readings of a reply.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.errors import UsageError
from holdfast.measures.arguments import NestedMeasure, NestedMeasures
from holdfast.measures.measure_specs import build
from holdfast.measures.registry import measure
from holdfast.measures.scores import MIN_KEPT_SCORE, Score, WhenCut
from holdfast.measures.text import words_of

_MIN_WORDS = 3  # the words of a shorter reply often belong to several languages
_MIN_PROBABILITY = 0.99  # that such a short reply is in a forbidden language


def _refuse_judges(name: str, specs: Sequence[str | Mapping[str, Any]]) -> None:
    """Refuses specs of measures that do not score a text alone; `name` is the outer measure's."""
    for spec in specs:
        inner = build(spec)
        if inner.judged or inner.of_turn:
            kind = "judge" if inner.judged else "measure of tool calls"
            raise UsageError(
                f"The measure {name!r} takes no {kind} ({spec!r}); make it a separate rule."
            )


def _every_when_cut(text: str, measures: NestedMeasures) -> WhenCut:
    """Judges a cut reply if all measures do, or if one of them certainly scores 0."""
    scores = [measure.score_cut(text) for measure in map(build, measures)]
    if all(score is not None for score in scores):
        return WhenCut.JUDGED
    is_zero = any(score is not None and score.value == 0 for score in scores)
    return WhenCut.JUDGED if is_zero else WhenCut.NOT_JUDGED


@measure(
    check=lambda measures: _refuse_judges("every", measures),
    when_cut=_every_when_cut,
)
def every(text: str, measures: NestedMeasures) -> Score:
    """The lowest of several measures: an instruction is followed only as well as its worst part.

    With `measures: [one_sentence, {name: contains, words: [Londres]}]`, "Que fait-on à Londres ?"
    scores 1, and "Londres. Oui." 0.
    """
    results = [(measure.score(text), measure.name) for measure in map(build, measures)]
    worst, name = min(results, key=lambda result: result[0].value)
    return Score(worst.value, f"{name}: {worst.reason}")


def _never_when_cut(text: str, measure: NestedMeasure) -> WhenCut:
    """Judges a cut reply if no further text can change the score of the forbidden measure."""
    inner = build(measure)
    when_cut = inner.when_cut
    value = inner.score(text).value
    if not isinstance(when_cut, WhenCut):
        when_cut = when_cut(text, **inner.arguments)
    is_final = {
        WhenCut.JUDGED: True,
        WhenCut.NOT_JUDGED: False,
        WhenCut.IF_BROKEN: value == 0,
        WhenCut.IF_KEPT: value == 1,
    }[when_cut]
    return WhenCut.JUDGED if is_final else WhenCut.NOT_JUDGED


@measure(
    check=lambda measure: _refuse_judges("never", [measure]),
    when_cut=_never_when_cut,
)
def never(text: str, measure: NestedMeasure) -> Score:
    """1 minus another measure, for a prohibition: what that measure looks for must not be there.

    A reply of one or two words, such as "OK" or "Paris", is in a forbidden language only if it is
    almost certain.

    With `measure: {name: contains, words: [Velox]}`, "Try the shop next door." scores 1, and
    "Try Velox." 0.
    """
    inner = build(measure)
    forbidden = inner.score(text)
    is_broken = forbidden.value > 1 - MIN_KEPT_SCORE
    is_unsure = forbidden.value < _MIN_PROBABILITY and len(words_of(text)) < _MIN_WORDS
    if inner.name == "language" and is_broken and is_unsure:
        return Score(1.0, f"too few words to tell a language by ({forbidden.reason})")
    reason = f"the rule forbids this: {forbidden.reason}" if is_broken else forbidden.reason
    return Score(1 - forbidden.value, reason)


def _readings(text: str) -> list[str]:
    """Returns the reply without its first line, its last, both or neither, each also without *."""
    lines = text.split("\n")
    parts = ["\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1])]
    readings = [text, *parts]
    return [*readings, *(reading.replace("*", "") for reading in readings)]


def _loosely_when_cut(text: str, measure: NestedMeasure) -> WhenCut:
    """Judges a cut reply if the measure does so for all readings."""
    inner = build(measure)
    if isinstance(inner.when_cut, WhenCut):
        return inner.when_cut
    rules = [inner.when_cut(reading, **inner.arguments) for reading in _readings(text)]
    return rules[0] if len(set(rules)) == 1 else WhenCut.NOT_JUDGED


@measure(
    check=lambda measure: _refuse_judges("loosely", [measure]),
    when_cut=_loosely_when_cut,
)
def loosely(text: str, measure: NestedMeasure) -> Score:
    r"""The highest of a measure over eight readings of the reply: IFEval's loose scoring.

    The readings leave out the first line, the last, both or neither, with or without stars (*).

    With `measure: {name: starts_with, word: Ahoy}`, "Sure:\n*Ahoy!*" scores 1, and "Hello!" 0.
    """
    scores = [build(measure).score(reading) for reading in _readings(text)]
    return max(scores, key=lambda score: score.value)
