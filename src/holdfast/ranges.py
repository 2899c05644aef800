"""Numbers with a range: checked once, where the value is made."""

from __future__ import annotations

import math
import sys
from typing import Any

from holdfast.errors import ParameterOutOfRange

_LEAST_PERCENTAGE = 5  # what is a little above 1 is more likely a share that is too large


def number_between(
    owner: str,
    name: str,
    value: Any,
    low: float,
    high: float = math.inf,
    *,
    above_low: bool = False,
    below_high: bool = False,
) -> float:
    """Returns `value` as a float when it is a finite number in [low, high], without the end that
    `above_low` or `below_high` leaves out.

    Raises:
        ParameterOutOfRange: names `owner`, `name`, the value and the range.
    """
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if (
        number
        and low <= value <= min(high, sys.float_info.max)
        and not (above_low and value == low)
        and not (below_high and value == high)
    ):
        return float(value) + 0.0  # -0.0 becomes 0.0, so that equal values have the same spec
    taken = range_in_words(low, high, above_low=above_low, below_high=below_high)
    hint = share_meant(value) if number and high == 1 else ""
    raise ParameterOutOfRange(f"{owner} takes {name} {taken}, not {value!r}{hint or '.'}")


def share_meant(value: Any) -> str:
    """'; did you mean 0.9?' of 90 in place of a share, which is likely a percentage; else ""."""
    if not isinstance(value, (int, float)) or not _LEAST_PERCENTAGE <= value < 100:
        return ""
    return f"; did you mean {value / 100:g}?"


def range_in_words(
    low: float, high: float = math.inf, *, above_low: bool = False, below_high: bool = False
) -> str:
    """A range as sentences name it: "from 0 to below 1"."""
    first = f"above {low:g}" if above_low else f"from {low:g}"
    if not math.isfinite(high):
        return f"{first} upwards"
    return f"{first} to {'below ' if below_high else ''}{high:g}"


def whole_number(owner: str, name: str, value: Any, low: int) -> int:
    """Returns `value` when it is a whole number of at least `low`.

    Raises:
        ParameterOutOfRange: names `owner`, `name`, the value and the range.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= low:
        return int(value)
    raise ParameterOutOfRange(
        f"{owner} takes {name} as a whole number from {low} upwards, not {value!r}."
    )
