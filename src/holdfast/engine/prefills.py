"""Which rows that join are prefilled together."""

from __future__ import annotations

import math
from collections.abc import Sequence

from holdfast.engine.running import Running

PASS = 128  # tokens that cost about as much as a forward pass costs beside its tokens
_PREFILL = 16_384  # tokens of one prefill, padding included, unless a single row has more
_PADDED = 65_536  # columns read in one prefill, unless at least a quarter is used


def prefills(rows: Sequence[Running]) -> list[list[Running]]:
    """The rows in groups of like length, of the least cost.

    Rows are padded to the longest, and each pass costs something by itself.
    """
    ordered = sorted(rows, key=lambda running: running.fresh, reverse=True)
    # of the first rows: their cost, and where their last group starts
    least, start_of = [0.0], [0]
    for stop in range(1, len(ordered) + 1):
        costs, count, longest, tokens = [math.inf] * stop, 0, 0, 0
        for start in reversed(range(stop)):
            cached = ordered[start].cached
            count += len(cached)
            longest = max(longest, *cached)
            tokens += sum(cached)
            padded = count * ordered[start].fresh
            fits = padded <= _PREFILL and count * longest <= max(_PADDED, 4 * tokens)
            if fits or start == stop - 1:
                costs[start] = least[start] + PASS + padded
        least.append(min(costs))
        start_of.append(costs.index(least[-1]))
    groups, stop = [], len(ordered)
    while stop:
        groups.append(ordered[start_of[stop] : stop])
        stop = start_of[stop]
    return groups
