"""Several measures as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.errors import UsageError
from holdfast.measures.kinds import Spec, Specs
from holdfast.measures.registry import Score, build, measure


def build_rule(spec: str | Mapping[str, Any], within: str) -> None:
    """Refuses a spec that cannot be built, or that only a model can answer."""
    if build(spec).judged:
        raise UsageError(
            f"The measure {within!r} takes no judge ({spec!r}); make a rule of its own of it."
        )


def build_one(measure: str | Mapping[str, Any]) -> None:
    """Refuses what `loosely` cannot read."""
    build_rule(measure, "loosely")


def build_all(measures: Sequence[str | Mapping[str, Any]]) -> None:
    """Refuses what `every` cannot score."""
    for spec in measures:
        build_rule(spec, "every")


@measure(check=build_all)
def every(text: str, measures: Specs) -> Score:
    """The lowest of several measures: an instruction with several parts is kept as far as its worst
    part.
    """
    results = [(build(spec).score(text), spec) for spec in measures]
    worst, spec = min(results, key=lambda result: result[0].value)
    name = build(spec).name
    return Score(worst.value, f"{name}: {worst.reason}")


def readings(text: str) -> list[str]:
    """The reply, and it without what often surrounds an answer: its first line ("Sure:"), its last,
    both, and the stars of markdown (Zhou et al. 2023, section 3.1)."""
    lines = text.split("\n")
    cut = [text, *("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))]
    return [*cut, *(reading.replace("*", "") for reading in cut)]


@measure(check=build_one)
def loosely(text: str, measure: Spec) -> Score:
    """The highest of a measure over eight readings of the reply: IFEval's loose scoring.

    They leave out the first line, the last, both, or neither, and markdown's stars or not.
    """
    scores = [build(measure).score(reading) for reading in readings(text)]
    return max(scores, key=lambda score: score.value)
