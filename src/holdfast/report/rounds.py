"""Which rounds are numbered, dotted and listed where there are many of them."""

from __future__ import annotations

MOST_ACROSS = 16  # rounds that a table has as columns; more go down
MOST_DOTS = 24  # means of a curve that have a dot each
_NUMBERED = 12
_STEPS = (1, 2, 5, 10, 20, 25, 50, 100)


def numbered(rounds: int) -> tuple[int, ...]:
    """The rounds that an axis numbers: all, or the first, the last, and round numbers between.

    >>> numbered(3), numbered(32), numbered(100)
    ((1, 2, 3), (1, 5, 10, 15, 20, 25, 32), (1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100))
    """
    step = next((step for step in _STEPS if rounds <= _NUMBERED * step), rounds)
    if step == 1:
        return tuple(range(1, rounds + 1))
    between = [number for number in range(step, rounds, step) if rounds - number > step / 2]
    return (1, *between, rounds)
