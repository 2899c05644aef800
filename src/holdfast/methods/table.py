"""The closed family of log-odds methods: three numbers say what a method does.

With x the log-odds of the attention mass on the span,

    x1 = x + bias;   x2 = logit(sigmoid(x1)**exponent);   x' = max(x2, floor)

InstABoost, GUIDE and PASTA have a bias, split-softmax an exponent, Spotlight a floor. `table_row`
gives those of a list of methods, on every head; it needs no tensor.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from holdfast.methods.protocols import ShiftsAttention


@dataclass(frozen=True)
class TableEntry:
    """What a method of the family does on one head; the default changes nothing.

    Args:
        bias: added to the log-odds.
        exponent: the power of the mass, in [0, 1].
        floor: the least log-odds; -inf for none.
    """

    bias: float = 0.0
    exponent: float = 1.0
    floor: float = -math.inf

    def then(self, later: TableEntry) -> TableEntry | None:
        """Both, `later` behind this one, as one entry; None where the family has none.

        A floor passes through what is behind it, since all steps are monotonic. A bias joins the
        bias before it, unless a power stands between the two.
        """
        if later.bias != 0 and self.exponent != 1:
            return None
        floor = raised(self.floor + later.bias, later.exponent)
        return TableEntry(
            self.bias + later.bias,
            self.exponent * later.exponent,
            max(floor, later.floor),
        )


def raised(log_odds: float, exponent: float) -> float:
    """The log-odds of sigmoid(log_odds)**exponent; where there is no mass there is none after."""
    if exponent == 1 or math.isinf(log_odds):
        return log_odds
    if exponent == 0:
        return math.inf
    log_mass = min(log_odds, 0.0) - math.log1p(math.exp(-abs(log_odds)))
    power = exponent * log_mass
    if power == 0:  # 1 - mass underflows, and (1 - mass**k) is k * (1 - mass)
        return log_odds - math.log(exponent)
    return power - math.log(-math.expm1(power))


@dataclass(frozen=True)
class TableRow:
    """What the methods of one row come to.

    Args:
        everywhere: on every head that is not named.
        heads: (layer, head) -> the entry of a head that some method names.
        span_includes_generated: whether generated tokens count as the span.
    """

    everywhere: TableEntry
    heads: Mapping[tuple[int, int], TableEntry]
    span_includes_generated: bool

    def entries(self, layer: int, heads: int) -> list[TableEntry]:
        """The entry of each head of a layer."""
        return [self.heads.get((layer, head), self.everywhere) for head in range(heads)]


@lru_cache(maxsize=1024)
def table_row(methods: tuple[ShiftsAttention, ...]) -> TableRow | None:
    """The methods of one row as numbers; None where their list is outside of the family.

    It is outside where a method has no numbers, where a bias stands behind a power on the same
    head, and where some methods count generated tokens as the span and others do not.
    """
    sets = {method.span_includes_generated for method in methods}
    if len(sets) > 1 or not all(map(_has_numbers, methods)):
        return None
    named = frozenset().union(*(method.heads or () for method in methods))
    everywhere = _composed(_entry(method) for method in methods if method.heads is None)
    heads = {
        pair: _composed(_entry(method, pair) for method in methods if _moves(method, pair))
        for pair in named
    }
    if everywhere is None:
        return None
    inside = {pair: entry for pair, entry in heads.items() if entry is not None}
    return TableRow(everywhere, inside, True in sets) if len(inside) == len(heads) else None


def _moves(method: ShiftsAttention, pair: tuple[int, int]) -> bool:
    return method.heads is None or pair in method.heads


def _has_numbers(method: ShiftsAttention) -> bool:
    names = ("table_entry", "table_entries")
    return any(getattr(method, name, None) is not None for name in names)


def _entry(method: Any, pair: tuple[int, int] | None = None) -> TableEntry:
    """The numbers of a method on a head that it moves; None: on any."""
    by_head: Mapping[tuple[int, int], TableEntry] | None = getattr(method, "table_entries", None)
    entry: TableEntry = by_head[pair] if by_head is not None and pair else method.table_entry
    return entry


def _composed(entries: Iterable[TableEntry]) -> TableEntry | None:
    composed: TableEntry | None = TableEntry()
    for later in entries:
        composed = None if composed is None else composed.then(later)
    return composed
