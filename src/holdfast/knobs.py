"""Numbers with a range: checked once, where the value is made."""

from __future__ import annotations

import math
import sys
from typing import Any

from holdfast.errors import KnobOutOfRange


def number_between(
    owner: str,
    knob: str,
    value: Any,
    low: float,
    high: float = math.inf,
    *,
    above_low: bool = False,
) -> float:
    """Returns `value` as a float when it is a finite number in [low, high], or in (low, high] with
    `above_low`.

    Raises:
        KnobOutOfRange: names `owner`, `knob`, the value and the range.
    """
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if (
        number
        and low <= value <= min(high, sys.float_info.max)
        and not (above_low and value == low)
    ):
        return float(value) + 0.0  # -0.0 becomes 0.0, so that equal values are spelled alike
    first = f"above {low:g}" if above_low else f"from {low:g}"
    last = f" to {high:g}" if math.isfinite(high) else " upwards"
    raise KnobOutOfRange(f"{owner} takes {knob} {first}{last}, not {value!r}.")


def whole_number(owner: str, knob: str, value: Any, low: int) -> int:
    """Returns `value` when it is a whole number of at least `low`.

    Raises:
        KnobOutOfRange: names `owner`, `knob`, the value and the range.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= low:
        return int(value)
    raise KnobOutOfRange(
        f"{owner} takes {knob} as a whole number from {low} upwards, not {value!r}."
    )
