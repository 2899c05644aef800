"""Estimates and their verdicts as `summary.json` has them."""

from collections.abc import Iterable
from typing import Any

from holdfast.analysis.statistics import Estimate
from holdfast.analysis.verdicts import verdict_on
from holdfast.records.run_summary import Estimated, Judged, OtherPrompts

DIGITS = 6  # beyond these, sums may differ between machines


def estimated(value: Estimate) -> Estimated:
    """An estimate as the summary has it."""
    return Estimated(**_numbers(value))


def judged(value: Estimate, shared_by: int = 1) -> Judged:
    """A difference as the summary has it: with its verdict, and the interval of other prompts;
    `shared_by` as in `verdict_on`.
    """
    verdict, others = verdict_on(value, shared_by), value.other_prompts
    return Judged(
        **_numbers(value),
        verdict=verdict.word("higher", "lower"),
        why=verdict.why or None,
        other_prompts=None
        if others is None
        else OtherPrompts(
            prompts=others.prompts, low=rounded(others.low), high=rounded(others.high)
        ),
    )


def _numbers(value: Estimate) -> dict[str, Any]:
    return {
        "n": value.n,
        "mean": rounded(value.mean),
        "low": rounded(value.low),
        "high": rounded(value.high),
        "sd": rounded(value.sd),
    }


def rounded(value: float | None) -> float | None:
    """A number as the summary has it, and never -0.0."""
    return None if value is None else round(float(value), DIGITS) + 0.0


def each_estimated(values: Iterable[Estimate]) -> tuple[Estimated, ...]:
    """Estimates as the summary has them."""
    return tuple(estimated(value) for value in values)
