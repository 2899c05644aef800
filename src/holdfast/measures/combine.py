"""Several measures as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.errors import UsageError
from holdfast.measures.kinds import Specs
from holdfast.measures.registry import Score, build, measure


def build_all(measures: Sequence[str | Mapping[str, Any]]) -> None:
    """Refuses specs that cannot be built, or that only a model can answer."""
    for spec in measures:
        if build(spec).judged:
            raise UsageError(
                f"The measure 'every' takes no judge ({spec!r}); make a rule of its own of it."
            )


@measure(check=build_all)
def every(text: str, measures: Specs) -> Score:
    """The lowest of several measures: an instruction with several parts is kept as far as its worst
    part.
    """
    results = [(build(spec).score(text), spec) for spec in measures]
    worst, spec = min(results, key=lambda result: result[0].value)
    name = build(spec).name
    return Score(worst.value, f"{name}: {worst.reason}")
