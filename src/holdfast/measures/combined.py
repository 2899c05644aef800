"""Measures made of others: the lowest of several, the opposite of one, or the highest over
readings of a reply.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.errors import UsageError
from holdfast.measures.arguments import Spec, Specs
from holdfast.measures.measure_specs import build
from holdfast.measures.registry import measure
from holdfast.measures.scores import FOLLOWED, Score, WhenCut
from holdfast.measures.text import words_of


def _refuse_judges(within: str, specs: Sequence[str | Mapping[str, Any]]) -> None:
    for spec in specs:
        inner = build(spec)
        if inner.judged or inner.of_turn:
            kind = "judge" if inner.judged else "measure of tool calls"
            raise UsageError(
                f"The measure {within!r} takes no {kind} ({spec!r}); make it a separate rule."
            )


def _every_when_cut(text: str, measures: Specs) -> WhenCut:
    """The lowest score counts, so one that is certainly 0 decides whatever the others become."""
    scores = [measure.score_cut(text) for measure in map(build, measures)]
    if all(score is not None for score in scores):
        return WhenCut.JUDGED
    is_zero = any(score is not None and score.value == 0 for score in scores)
    return WhenCut.JUDGED if is_zero else WhenCut.NOT_JUDGED


@measure(
    check=lambda measures: _refuse_judges("every", measures),
    when_cut=_every_when_cut,
)
def every(text: str, measures: Specs) -> Score:
    """The lowest of several measures: an instruction is followed only as well as its worst part."""
    results = [(measure.score(text), measure.name) for measure in map(build, measures)]
    worst, name = min(results, key=lambda result: result[0].value)
    return Score(worst.value, f"{name}: {worst.reason}")


def _never_when_cut(text: str, measure: Spec) -> WhenCut:
    """A score of the forbidden measure stands if nothing that follows can change it."""
    inner = build(measure)
    when_cut = inner.when_cut
    value = inner.score(text).value
    if not isinstance(when_cut, WhenCut):
        when_cut = when_cut(text, **inner.arguments)
    stands = {
        WhenCut.JUDGED: True,
        WhenCut.NOT_JUDGED: False,
        WhenCut.IF_BROKEN: value == 0,
        WhenCut.IF_KEPT: value == 1,
    }[when_cut]
    return WhenCut.JUDGED if stands else WhenCut.NOT_JUDGED


_MAX_UNSURE_WORDS = 3
_SURE = 0.99  # probability of a language


@measure(
    check=lambda measure: _refuse_judges("never", [measure]),
    when_cut=_never_when_cut,
)
def never(text: str, measure: Spec) -> Score:
    """1 minus another measure, for a prohibition: what that measure looks for must not be there.

    A reply of one or two words, such as "OK" or "Paris", is in a forbidden language only if it is
    almost certain.
    """
    inner = build(measure)
    forbidden = inner.score(text)
    is_unsure = 1 - FOLLOWED < forbidden.value < _SURE and len(words_of(text)) < _MAX_UNSURE_WORDS
    if inner.name == "language" and is_unsure:
        return Score(1.0, f"too few words to tell a language by ({forbidden.reason})")
    is_broken = forbidden.value > 1 - FOLLOWED
    reason = f"the rule forbids this: {forbidden.reason}" if is_broken else forbidden.reason
    return Score(1 - forbidden.value, reason)


def _readings(text: str) -> list[str]:
    """The reply without its first line, its last, both or neither, and without Markdown's stars."""
    lines = text.split("\n")
    cut = [text, *("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))]
    return [*cut, *(reading.replace("*", "") for reading in cut)]


def _loosely_when_cut(text: str, measure: Spec) -> WhenCut:
    inner = build(measure)
    if isinstance(inner.when_cut, WhenCut):
        return inner.when_cut
    rules = [inner.when_cut(reading, **inner.arguments) for reading in _readings(text)]
    return rules[0] if len(set(rules)) == 1 else WhenCut.NOT_JUDGED


@measure(
    check=lambda measure: _refuse_judges("loosely", [measure]),
    when_cut=_loosely_when_cut,
)
def loosely(text: str, measure: Spec) -> Score:
    """The highest of a measure over eight readings of the reply: IFEval's loose scoring.

    The readings leave out the first line, the last, both or neither, with or without stars (*).
    """
    scores = [build(measure).score(reading) for reading in _readings(text)]
    return max(scores, key=lambda score: score.value)
