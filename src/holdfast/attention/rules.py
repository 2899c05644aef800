"""How the methods of a batch change log-odds in one layer: a steering table or, for methods that no
table can express, a rule that applies them one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from holdfast.methods.compiled import CompiledMethods
from holdfast.methods.protocols import ShiftsAttention
from holdfast.methods.table import LayerTable


@dataclass(frozen=True)
class MethodGroup:
    """Rows with the same methods; `rows` is None if these are all rows."""

    methods: tuple[ShiftsAttention, ...]
    rows: Tensor | None


def method_groups(rows: Sequence[CompiledMethods], device: torch.device | str) -> list[MethodGroup]:
    """The rows of a batch grouped by their methods; rows without any are in no group."""
    rows_of: dict[tuple[ShiftsAttention, ...], list[int]] = {}
    for row, compiled in enumerate(rows):
        if compiled.attention:
            rows_of.setdefault(compiled.attention, []).append(row)
    return [
        MethodGroup(methods, None if len(some) == len(rows) else torch.tensor(some, device=device))
        for methods, some in rows_of.items()
    ]


@dataclass(frozen=True)
class ListRule:
    """Methods applied one after another: custom ones, or lists that no table can express."""

    groups: Sequence[MethodGroup]  # rows grouped by their methods; rows without any are in none
    layer: int  # counted from 0
    num_heads: int  # of the layer
    heads: Sequence[int] | None = None  # those whose log-odds are given; None: all

    def mass(self, log_odds: Tensor) -> Tensor:
        """The moved mass on the span."""
        return self.shift(log_odds).sigmoid()

    def log_rest(self, log_odds: Tensor) -> Tensor:
        """The logarithm of the mass left for the rest."""
        return softplus(self.shift(log_odds)).neg()

    def on(self, heads: Sequence[int] | None) -> ListRule:
        """The same rule for some heads of the layer; None: all."""
        return ListRule(self.groups, self.layer, self.num_heads, heads)

    def shift(self, log_odds: Tensor) -> Tensor:
        """The moved log-odds; methods see those of all heads of the layer."""
        if self.heads is None:
            return self._shift(log_odds)
        every = log_odds.new_zeros(log_odds.shape[0], self.num_heads, log_odds.shape[2])
        every[:, self.heads] = log_odds
        return self._shift(every)[:, self.heads]

    def _shift(self, log_odds: Tensor) -> Tensor:
        shifted = log_odds.clone()
        for group in self.groups:
            moved = log_odds if group.rows is None else log_odds[group.rows]
            for method in group.methods:
                moved = method.shift(moved, self.layer)
            if group.rows is None:
                return moved
            shifted[group.rows] = moved
        return shifted

    def shift_groups(self, span: Tensor, generated: Tensor, rest: Tensor) -> tuple[Tensor, Tensor]:
        """The moved log-masses [row, head, query] of span and generated tokens; the rest stays.

        A method whose span includes generated tokens moves the two against the rest; any other
        method moves the span against both.
        """
        moved = span.clone(), generated.clone()
        for group in self.groups:
            where = slice(None) if group.rows is None else group.rows
            both = span[where], generated[where]
            for method in group.methods:
                both = _shift_one(method, self.layer, *both, rest[where])
            moved[0][where], moved[1][where] = both
        return moved


# of log-odds [row, head, query], each gives the moved `mass` and the `log_rest`
LogOddsRule = LayerTable | ListRule


def _shift_one(
    method: ShiftsAttention, layer: int, span: Tensor, generated: Tensor, rest: Tensor
) -> tuple[Tensor, Tensor]:
    """Log-masses of span and generated tokens after one method."""
    if method.span_includes_generated:
        log_odds = torch.logaddexp(span, generated) - rest
    else:
        log_odds = span - torch.logaddexp(generated, rest)
    finite = log_odds.isfinite()
    log_odds = log_odds.masked_fill(~finite, 0.0)  # else the branch not taken has a gradient of NaN
    change = torch.where(finite, method.shift(log_odds, layer) - log_odds, 0.0)
    return span + change, generated + change if method.span_includes_generated else generated
