"""Estimates as text: numbers with intervals, as the terminal, figures and pages show them."""

import textwrap
from collections.abc import Callable, Iterable, Sequence

from holdfast.analysis.statistics import Estimate
from holdfast.analysis.verdicts import verdict_on

WIDTH = 100  # columns of what is printed in a terminal
_MAX_DIGITS = 6  # after the point
_EXACT_PLACES = 9  # a sum may differ beyond these with the order of its terms
# a footnote to tables in which `needs_note` is true of a row
ONLY_SHARED = (
    "Changes and differences count only what was judged on both sides, so some are not the"
    " difference of the means shown."
)


def with_interval(
    value: Estimate, write: Callable[[float], str], fine: Callable[[float], str] | None = None
) -> str:
    """'0.74 [0.69, 0.79]'; '0.74' without an interval, and a dash if nothing was measured.

    Args:
        write: writes the mean and the ends of the interval.
        fine: writes the ends instead, if the interval excludes 0: no end should then read as 0.
    """
    if value.mean is None:
        return "–"
    text = write(value.mean)
    if value.low is None or value.high is None:
        return text
    end = fine if fine and value.excludes_zero else write
    return f"{text} [{end(value.low)}, {end(value.high)}]"


def mean_text(value: Estimate, write: Callable[[float], str] | None = None) -> str:
    """'0.74', without its interval; a dash if nothing was measured."""
    return "–" if value.mean is None else (write or two_places)(value.mean)


def plain(value: Estimate) -> str:
    """'0.74 [0.69, 0.79]'; only the mean without an interval."""
    return with_interval(value, two_places)


def signed(value: Estimate) -> str:
    """'+0.09 [+0.02, +0.15]'; only the mean without an interval."""
    return with_interval(value, signed_number, _not_zero)


def with_verdict(value: Estimate, above: str, below: str) -> str:
    """'-0.31 [-0.40, -0.22], falls; other prompts [-0.43, -0.19]', or '..., cannot tell'."""
    others = f"; {other_prompts(value)}" if value.other_prompts else ""
    return f"{signed(value)}, {verdict_on(value).word(above, below)}{others}"


def two_places(number: float) -> str:
    """'0.74': the same for numbers that differ only because they were added in another order."""
    return f"{round(number, _EXACT_PLACES):.2f}"


def signed_number(number: float) -> str:
    """'+0.09', '-0.09' or '0.00'."""
    number = round(number, _EXACT_PLACES)
    return f"{number:+.2f}" if round(number, 2) else "0.00"


def _not_zero(number: float) -> str:
    """Writes a number with enough digits that it does not read as 0: '-0.05', '-0.003'."""
    return f"{number:+.{_digits_to_see(number)}f}"


def _digits_to_see(number: float) -> int:
    """Returns how many digits after the point a number needs so that it does not read as 0: two or
    more, but not more than `_MAX_DIGITS`.
    """
    digits = 2
    while not round(number, digits) and digits < _MAX_DIGITS:
        digits += 1
    return digits


def other_prompts(value: Estimate) -> str:
    """'other prompts [-0.40, -0.21]'; "" if too few prompts were drawn to generalise."""
    others = value.other_prompts
    if others is None:
        return ""
    end = _not_zero if others.excludes_zero else signed_number
    return f"other prompts [{end(others.low)}, {end(others.high)}]"


def percent(share: float) -> str:
    """'66%', where `two_places` writes '0.66'."""
    return f"{100 * float(two_places(share)):.0f}%"


def points_apart(value: Estimate) -> str:
    """'17 points more (95% interval 10 to 26 ...)', for a difference whose interval excludes 0."""
    assert value.mean is not None
    sign = 1 if value.mean > 0 else -1
    size = _points(abs(value.mean), may_read_as_zero=False)
    noun = "point" if size == "1" else "points"
    direction = "more" if sign > 0 else "less"
    return f"{size} {noun} {direction} ({_intervals(value, sign)})"


def points(value: Estimate) -> str:
    """'-10 points (95% interval -28 to +8)', for a difference of shares that may be chance."""
    assert value.mean is not None
    number = _signed_points(value.mean)
    count = f"{number} point" if number in ("+1", "-1") else f"{number} points"
    return f"{count} ({_intervals(value, 1)})" if value.low is not None else count


def _intervals(value: Estimate, sign: int) -> str:
    """'95% interval 10 to 26 for these prompts, 8 to 28 for others like them'.

    Args:
        sign: -1 to write the ends of a negative difference as positive points.
    """
    assert value.low is not None and value.high is not None
    text = f"95% interval {_range(value.low, value.high, sign)}"
    if value.other_prompts is None:
        return text
    others = _range(value.other_prompts.low, value.other_prompts.high, sign)
    if text.endswith(f" {others}"):  # both intervals read alike
        return f"{text}, for these prompts and others like them"
    return f"{text} for these prompts, {others} for others like them"


def _range(low: float, high: float, sign: int) -> str:
    """'10 to 26', '-28 to -8' or '-28 to +8'; an end reads as 0 only if the range includes 0."""
    low, high = sorted((sign * low, sign * high))
    if low <= 0 <= high:
        return f"{_signed_points(low)} to {_signed_points(high)}"
    ends = [_points(abs(end), may_read_as_zero=False) for end in (low, high)]
    minus = "-" if high < 0 else ""
    return f"{minus}{ends[0]} to {minus}{ends[1]}"


def _signed_points(share: float) -> str:
    """'+8', '-28' or '0'."""
    number = _points(abs(share))
    if number == "0":
        return number
    return f"+{number}" if share > 0 else f"-{number}"


def _points(share: float, *, may_read_as_zero: bool = True) -> str:
    """A share in whole points, or with enough digits that it does not read as 0."""
    digits = 2 if may_read_as_zero else _digits_to_see(share)
    rounded = float(f"{share:.{digits}f}")  # as a share, so that 0.28 is also 28 points
    return f"{100 * rounded:.{digits - 2}f}"


def wrapped(sentences: Iterable[str], first: str = "", rest: str = "") -> list[str]:
    """Sentences as lines that fit into a terminal.

    Args:
        first: what the first line of each sentence begins with.
        rest: what its other lines begin with.
    """
    wrapper = textwrap.TextWrapper(WIDTH, initial_indent=first, subsequent_indent=rest)
    return [line for sentence in sentences for line in wrapper.wrap(sentence)]


def needs_note(
    difference: Estimate,
    value: float | None,
    baseline: float | None,
    visible: float = 0.005,
) -> bool:
    """Whether a table needs `ONLY_SHARED`: a difference is visibly not that of the two means beside
    it, as these are also over what was judged on one side only.

    Args:
        visible: the smallest deviation that counts: half a unit of the last digit shown.
    """
    if difference.mean is None or value is None or baseline is None:
        return False
    return abs(value - baseline - difference.mean) >= visible


def aligned(rows: Sequence[Sequence[str]], indent: str = "") -> list[str]:
    """Rows of cells as lines with aligned columns, each prefixed with `indent`."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append(indent + "  ".join(cells).rstrip())
    return lines
