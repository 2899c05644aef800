"""Numbers with a range, checked once, when the value is created.

Range(0, 1).check_value("spotlight", "target", 40)
-> ParameterOutOfRange: spotlight takes target from 0 to 1, not 40.
"""

import math
import sys
from dataclasses import dataclass
from typing import Any

from holdfast.errors import ParameterOutOfRange, option, shortened

_MIN_PERCENTAGE = 10  # 1.5 is more likely a share that is too large than 1.5%


@dataclass(frozen=True)
class Range:
    """The finite numbers from `low` to `high`.

    Args:
        low, high: the ends.
        above_low, below_high: exclude `low`, or `high`.
        share: whether the numbers are shares, which some users write as a percentage.
    """

    low: float
    high: float = math.inf
    above_low: bool = False
    below_high: bool = False
    share: bool = False

    def check(self, owner: str, name: str, value: Any) -> float:
        """Returns the value of a command-line option if it is in the range."""
        return self.check_value(owner, name, value, option(name))

    def check_value(self, owner: str, name: str, value: Any, label: str = "") -> float:
        """Returns a value that is in the range, such as that of a method's parameter.

        Args:
            owner: the command or method that takes the value; the message begins with it.
            name: of the parameter.
            label: the name as the message shows it; "" if that is `name`.

        Raises:
            ParameterOutOfRange: the value is not a number in the range.
        """
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if is_number and self._includes(value):
            return float(value) + 0.0  # -0.0 becomes 0.0, so that equal values have the same spec
        share = share_meant(value) if is_number and self.share else None
        end = "." if share is None else f"; did you mean {share:g}?"
        is_whole = isinstance(value, float) and abs(value) < 1e15 and value.is_integer()
        shown = int(value) if is_whole else value
        message = f"{owner} takes {label or name} {self.words}, not {shown!r}{end}"
        raise ParameterOutOfRange(message, option=name, value=value, allowed=self.words)

    def _includes(self, number: float) -> bool:
        if (self.above_low and number == self.low) or (self.below_high and number == self.high):
            return False
        return self.low <= number <= min(self.high, sys.float_info.max)

    @property
    def words(self) -> str:
        """The range in words, such as "from 0 to below 1"."""
        first = f"above {self.low:g}" if self.above_low else f"from {self.low:g}"
        if not math.isfinite(self.high):
            return first if self.above_low else f"{first} upwards"
        return f"{first} to {'below ' if self.below_high else ''}{self.high:g}"

    @property
    def schema(self) -> dict[str, Any]:
        """The range as a JSON Schema."""
        ends = {"exclusiveMinimum" if self.above_low else "minimum": self.low}
        if math.isfinite(self.high):
            ends["exclusiveMaximum" if self.below_high else "maximum"] = self.high
        return {"type": "number", **ends}


def share_meant(value: Any, min_percentage: float = _MIN_PERCENTAGE) -> float | None:
    """Returns the share that a likely percentage stands for, such as 0.9 for 90; else None."""
    if not isinstance(value, (int, float)) or not min_percentage <= value < 100:
        return None
    return value / 100


def whole_number(owner: str, name: str, value: Any, low: int, high: int | None = None) -> int:
    """Returns the value of a command-line option if it is a whole number from `low` to `high`."""
    return whole_value(owner, name, value, low, high, option(name))


def whole_value(
    owner: str, name: str, value: Any, low: int, high: int | None = None, label: str = ""
) -> int:
    """Returns a value that is a whole number from `low` to `high`, such as a method's parameter.

    Args:
        owner: the command or method that takes the value; the message begins with it.
        name: of the parameter.
        high: None for no upper limit.
        label: the name as the message shows it; "" if that is `name`.

    Raises:
        ParameterOutOfRange: the value is not such a number.
    """
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if is_whole and value >= low and (high is None or value <= high):
        return int(value)
    allowed = f"from {low} upwards" if high is None else f"from {low} to {high}"
    message = f"{owner} takes {label or name} as a whole number {allowed}, not {shortened(value)}."
    raise ParameterOutOfRange(message, option=name, value=value, allowed=allowed)
