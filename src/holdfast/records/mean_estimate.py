"""Means with their uncertainty, as analysis computes them, and as summaries have them.

In memory they have all digits. Summaries round them, as digits beyond `DIGITS` may differ between
machines.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import ConfigDict, Field, PlainSerializer, with_config

DIGITS = 6
_NOISE = 1e-9  # how much the order of summation may change a score


def excludes_zero(low: float | None, high: float | None) -> bool:
    """Whether an interval exists and does not include 0."""
    return low is not None and high is not None and (low > _NOISE or high < -_NOISE)


# a summary is read from objects of JSON, which the strict mode of records would refuse
_read_from_json = with_config(ConfigDict(strict=False, allow_inf_nan=False))


@_read_from_json
@dataclass(frozen=True)
class OtherPrompts:
    """The 95% interval of a mean for other prompts like those of a run."""

    prompts: int  # how many prompts the run drew
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval does not include 0."""
        return excludes_zero(self.low, self.high)


@_read_from_json
@dataclass(frozen=True)
class Estimate:
    """A mean over conversations, with its uncertainty.

    Args:
        n: the number of conversations.
        mean: None if nothing was measured.
        sd: the standard deviation between conversations (n - 1 in the denominator), the error bar
            of Li et al. 2024, Figure 3; None for fewer than two conversations.
        low, high: the 95% interval of the mean; None for fewer than two conversations.
        decisive: the interval for verdicts, if they need one wider than 95% because the run may
            be extended and read again, or because several verdicts share the error; None if it is
            [low, high]. Not in summaries.
        other_prompts: the interval for prompts that the run did not draw; None if it drew too few
            to tell.
    """

    n: int
    mean: float | None
    sd: float | None
    low: float | None
    high: float | None
    decisive: tuple[float, float] | None = None
    other_prompts: OtherPrompts | None = None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95% interval; None for fewer than two conversations."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def deciding(self) -> tuple[float, float] | None:
        """The interval that verdicts are based on; None for fewer than two conversations."""
        return self.interval if self.decisive is None else self.decisive

    @property
    def excludes_zero(self) -> bool:
        """Whether the 95% interval exists and does not include 0."""
        return excludes_zero(self.low, self.high)


@_read_from_json
@dataclass(frozen=True, kw_only=True)
class Judged(Estimate):
    """An estimate of a difference, with its verdict; `analysis.verdicts.verdict_on` makes it.

    Args:
        verdict: "higher", "lower" or "cannot tell".
        why: the reason for "cannot tell"; None for the other verdicts.
    """

    verdict: str
    why: str | None = None

    @property
    def sign(self) -> int:
        """1 for "higher", -1 for "lower", 0 for "cannot tell"."""
        return {"higher": 1, "lower": -1}.get(self.verdict, 0)

    def word(self, above: str, below: str) -> str:
        """Returns a word of the caller's for "higher" and for "lower", or "cannot tell"."""
        return {1: above, -1: below}.get(self.sign, self.verdict)


@_read_from_json
@dataclass(frozen=True, kw_only=True)
class EstimateFrom(Estimate):
    """The estimate of a bin, which reaches from `start` to the start of the next bin."""

    start: Annotated[int, Field(validation_alias="from")]


def round_number(value: float | None) -> float | None:
    """Rounds a number to the digits of summaries; never returns -0.0."""
    return None if value is None else round(float(value), DIGITS) + 0.0


def _estimate_json(value: Estimate) -> dict[str, Any]:
    return {
        "n": value.n,
        "mean": round_number(value.mean),
        "low": round_number(value.low),
        "high": round_number(value.high),
        "sd": round_number(value.sd),
    }


def _estimate_from_json(value: EstimateFrom) -> dict[str, Any]:
    return {"from": value.start, **_estimate_json(value)}


def _judged_json(value: Judged) -> dict[str, Any]:
    fields = {**_estimate_json(value), "verdict": value.verdict, "why": value.why}
    if value.other_prompts is not None:
        fields["other_prompts"] = {
            "prompts": value.other_prompts.prompts,
            "low": round_number(value.other_prompts.low),
            "high": round_number(value.other_prompts.high),
        }
    return fields


# types for the fields of summaries
SummaryNumber = Annotated[float, PlainSerializer(round_number)]
SummaryEstimate = Annotated[Estimate, PlainSerializer(_estimate_json)]
SummaryDifference = Annotated[Judged, PlainSerializer(_judged_json)]
SummaryEstimateFrom = Annotated[EstimateFrom, PlainSerializer(_estimate_from_json)]
