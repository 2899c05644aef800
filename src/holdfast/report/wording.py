"""Estimates as text: numbers with their intervals, as terminal, figures and pages write them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.analysis.statistics import Estimate
from holdfast.analysis.verdicts import LEAST


def with_interval(value: Estimate, write: Callable[[float], str]) -> str:
    """'0.74 [0.69, 0.79]', '0.74' without an interval, '0.74 (all alike)' where it has no width."""
    if value.mean is None:
        return "–"
    text = write(value.mean)
    if value.low is None or value.high is None:
        return text
    if value.alike:
        return f"{text} (all alike)"
    return f"{text} [{write(value.low)}, {write(value.high)}]"


def plain(value: Estimate) -> str:
    """'0.74 [0.69, 0.79]'; without the interval where there is none."""
    return with_interval(value, lambda number: f"{number:.2f}")


def signed(value: Estimate) -> str:
    """'+0.09 [+0.02, +0.15]'; without the interval where there is none."""
    return with_interval(value, signed_number)


def signed_number(number: float) -> str:
    """'+0.09', '-0.09' or '0.00'."""
    return f"{number:+.2f}" if round(number, 2) else "0.00"


def count_of(number: int, noun: str) -> str:
    """'1 round', '8 rounds', '1,200 rounds'."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def percent(share: float) -> str:
    """'66 %'."""
    return f"{100 * share:.0f} %"


def points(value: Estimate) -> str:
    """'-32 points [-39, -26]', of a difference of shares."""
    text = with_interval(value, lambda share: f"{100 * share:+.0f}" if share else "0")
    number, space, rest = text.partition(" ")
    return f"{number} points{space}{rest}"


def cannot_tell(value: Estimate, what: str) -> str:
    """'this run cannot tell a change (-2 points [-9, +5])'; the difference is left out where there
    are too few.
    """
    if value.n < LEAST:
        return f"too few to tell {what}"
    return f"this run cannot tell {what} ({points(value)})"


def aligned(rows: Sequence[Sequence[str]], left: str = "") -> list[str]:
    """Rows of cells as lines whose columns stand under one another, each behind `left`."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        left
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
