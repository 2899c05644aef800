"""What methods make of log-odds: by the numbers of the table, or one method after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

from holdfast.attention.table import LayerNumbers
from holdfast.methods.protocols import ShiftsAttention


class Rule(Protocol):
    """What the methods of a batch do in one layer.

    Log-odds are float32 or wider, [row, head, query]: -inf where the span is not in sight, which
    stays so.
    """

    def mass(self, log_odds: Tensor) -> Tensor:
        """The mass on the span instead."""

    def log_rest(self, log_odds: Tensor) -> Tensor:
        """The logarithm of what is left for the rest."""

    def on(self, heads: Sequence[int] | None) -> Rule:
        """The same for some heads, whose log-odds are given."""


@dataclass(frozen=True)
class TableRule:
    """The three numbers of the table."""

    layer: LayerNumbers

    def mass(self, log_odds: Tensor) -> Tensor:
        bias, exponent, floor = self.layer.numbers.unsqueeze(-1)
        moved = log_odds + bias if self.layer.adds else log_odds
        if self.layer.powers:
            # A power of 0 of no mass at all would be 1.
            mass = logsigmoid(moved).mul_(exponent).exp_().masked_fill_(moved == -torch.inf, 0.0)
        else:
            mass = moved.sigmoid()
        if self.layer.floors:
            mass = mass.maximum(floor.sigmoid()).masked_fill_(moved == -torch.inf, 0.0)
        return mass

    def log_rest(self, log_odds: Tensor) -> Tensor:
        bias, exponent, floor = self.layer.numbers.unsqueeze(-1)
        moved = log_odds + bias if self.layer.adds else log_odds
        if self.layer.powers:
            left = logsigmoid(moved).mul_(exponent).expm1_().neg_().log_()
        else:
            left = softplus(moved).neg_()
        if self.layer.floors:
            left = left.minimum(softplus(floor).neg())
        return left.masked_fill_(moved == -torch.inf, 0.0)

    def on(self, heads: Sequence[int] | None) -> TableRule:
        return TableRule(self.layer.on(heads))


@dataclass(frozen=True)
class Lane:
    """Rows with the same methods; `rows` is None where these are all."""

    methods: tuple[ShiftsAttention, ...]
    rows: Tensor | None


@dataclass(frozen=True)
class ListRule:
    """Lists of methods that no table holds, or methods of one's own: one after another.

    Args:
        lanes: rows grouped by their methods; rows without any are in none.
        layer: counted from 0.
        count: the heads of the layer.
        heads: those whose log-odds are given; None: all.
    """

    lanes: Sequence[Lane]
    layer: int
    count: int
    heads: Sequence[int] | None = None

    def mass(self, log_odds: Tensor) -> Tensor:
        return self.shift(log_odds).sigmoid()

    def log_rest(self, log_odds: Tensor) -> Tensor:
        return softplus(self.shift(log_odds)).neg()

    def on(self, heads: Sequence[int] | None) -> ListRule:
        return ListRule(self.lanes, self.layer, self.count, heads)

    def shift(self, log_odds: Tensor) -> Tensor:
        """The log-odds instead; methods see those of all heads of the layer."""
        if self.heads is None:
            return self._shift(log_odds)
        every = log_odds.new_zeros(log_odds.shape[0], self.count, log_odds.shape[2])
        every[:, self.heads] = log_odds
        return self._shift(every)[:, self.heads]

    def _shift(self, log_odds: Tensor) -> Tensor:
        shifted = log_odds.clone()
        for lane in self.lanes:
            moved = log_odds if lane.rows is None else log_odds[lane.rows]
            for method in lane.methods:
                moved = method.shift(moved, self.layer)
            if lane.rows is None:
                return moved
            shifted[lane.rows] = moved
        return shifted

    def shift_groups(self, span: Tensor, generated: Tensor, rest: Tensor) -> tuple[Tensor, Tensor]:
        """The log-masses [row, head, query] of span and generated tokens instead; the rest stays.

        A method whose span includes generated tokens moves the two against the rest, any other the
        span against both.
        """
        moved = span.clone(), generated.clone()
        for lane in self.lanes:
            where = slice(None) if lane.rows is None else lane.rows
            both = span[where], generated[where]
            for method in lane.methods:
                both = _shift_one(method, self.layer, *both, rest[where])
            moved[0][where], moved[1][where] = both
        return moved


def _shift_one(
    method: ShiftsAttention, layer: int, span: Tensor, generated: Tensor, rest: Tensor
) -> tuple[Tensor, Tensor]:
    """Log-masses of span and generated tokens after one method."""
    if method.span_includes_generated:
        log_odds = torch.logaddexp(span, generated) - rest
    else:
        log_odds = span - torch.logaddexp(generated, rest)
    finite = log_odds.isfinite()
    log_odds = log_odds.masked_fill(~finite, 0.0)  # else what is not taken has a gradient of NaN
    change = torch.where(finite, method.shift(log_odds, layer) - log_odds, 0.0)
    return span + change, generated + change if method.span_includes_generated else generated
