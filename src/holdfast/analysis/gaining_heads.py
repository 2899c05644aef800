"""Which heads of a profile gain something when steered, and how many of the gains are certain."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.analysis.profile import Gains
from holdfast.analysis.verdicts import MIN_SAMPLES, verdict_on
from holdfast.errors import HoldfastError
from holdfast.methods.heads import HeadSet

_BY_CHANCE = 0.025  # the share of heads without any gain whose interval still lies above 0
_DIGITS = 4  # a gain printed as 0.0000 is none: the order of summation may change a score


@dataclass(frozen=True)
class Chosen:
    """The heads that gain something, how many were left out, and how many gains are certain."""

    heads: HeadSet
    dropped: int
    distinct: int


def choose_heads(best: HeadSet, tasks: Sequence[Gains], combine: str) -> Chosen:
    """Keeps the heads that gain something on every task ("intersection") or on any ("union").

    Raises:
        HoldfastError: no head gains anything.
    """
    some = all if combine == "intersection" else any
    kept = [
        head
        for head in best
        if some(round(gains[head].mean or 0.0, _DIGITS) > 0 for gains in tasks)
    ]
    if not kept:
        raise HoldfastError(
            f"None of the best {len(best)} heads gains anything, so no heads are written; profile"
            " on other or more samples, by probability, or with a stronger --method.",
            option="top",
            value=len(best),
        )
    distinct = sum(some(verdict_on(gains[head]).sign > 0 for gains in tasks) for head in kept)
    return Chosen(HeadSet(kept, best.made_for), len(best) - len(kept), distinct)


def count_distinct(gains: Gains) -> tuple[int, float] | None:
    """How many heads have a clear gain, and how many would by chance; None with too few samples."""
    if max(gain.n for gain in gains.values()) < MIN_SAMPLES:
        return None
    return sum(verdict_on(gain).sign > 0 for gain in gains.values()), len(gains) * _BY_CHANCE
