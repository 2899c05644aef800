"""Small charts of block characters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

_RISING = "▁▂▃▄▅▆▇█"
_GROWING = " ▏▎▍▌▋▊▉█"


def bar(value: float, most: float, width: int) -> str:
    """A bar of at most `width` characters, as long as `value` is of `most`.

    >>> bar(0.5, 1, 5)
    '██▌'
    """
    eighths = round(8 * width * min(1.0, value / most)) if most > 0 else 0
    whole, rest = divmod(eighths, 8)
    return "█" * whole + _GROWING[rest].strip()


def line(values: Sequence[float], width: int) -> str:
    """Values from 0 as heights, at most `width` of them: where there are more, means of neighbours.

    >>> line([0, 1, 2, 4], 4), line([0, 2, 4, 4], 2)
    ('▁▃▅█', '▃█')
    """
    shown = _condensed(values, width)
    most = max(shown, default=0)
    if most <= 0:
        return _RISING[0] * len(shown)
    return "".join(_RISING[min(7, int(8 * value / most))] for value in shown)


def _condensed(values: Sequence[float], width: int) -> list[float]:
    if len(values) <= width:
        return list(values)
    ends = [len(values) * place // width for place in range(width + 1)]
    groups = [values[first:last] for first, last in pairwise(ends)]
    return [sum(group) / len(group) for group in groups]
