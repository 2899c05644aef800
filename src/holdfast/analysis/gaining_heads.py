"""Which heads of a profile gain something when steered, and how many of the gains are certain."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from holdfast.analysis.profile import Gains
from holdfast.analysis.verdicts import MIN_SAMPLES, verdict_on
from holdfast.errors import HoldfastError
from holdfast.methods.heads import HeadSet

Combination = Literal["intersection", "union"]

_SHARE_BY_CHANCE = 0.025  # of heads without a gain: their intervals lie above 0 by chance
_DIGITS = 4  # a gain that rounds to 0 counts as 0, as the order of summation may change a score


@dataclass(frozen=True)
class GainingHeads:
    """The heads that gain something.

    Attributes:
        left_out: how many of the best heads gain nothing, and so are left out.
        certain: how many of the heads have a certain gain.
    """

    heads: HeadSet
    left_out: int
    certain: int


@dataclass(frozen=True)
class CertainGains:
    """How many heads have a certain gain, and how many would have one by chance alone."""

    count: int
    by_chance: float


def choose_heads(best: HeadSet, tasks: Sequence[Gains], combine: Combination) -> GainingHeads:
    """Keeps the heads that gain something on every task ("intersection") or on any ("union").

    Raises:
        HoldfastError: no head gains anything.
    """
    enough_tasks = all if combine == "intersection" else any
    heads = [
        head
        for head in best
        if enough_tasks(round(gains[head].mean or 0.0, _DIGITS) > 0 for gains in tasks)
    ]
    if not heads:
        raise HoldfastError(
            f"None of the best {len(best)} heads gains anything, so no heads are written; profile"
            " on other or more samples, by probability, or with a stronger --method.",
            option="top",
            value=len(best),
        )
    certain = [
        head for head in heads if enough_tasks(verdict_on(gains[head]).sign > 0 for gains in tasks)
    ]
    return GainingHeads(HeadSet(heads, best.made_for), len(best) - len(heads), len(certain))


def count_certain_gains(gains: Gains) -> CertainGains | None:
    """Counts the heads that have a certain gain; None if there are too few samples to say."""
    if max(gain.n for gain in gains.values()) < MIN_SAMPLES:
        return None
    count = sum(verdict_on(gain).sign > 0 for gain in gains.values())
    return CertainGains(count, len(gains) * _SHARE_BY_CHANCE)
