"""Shifts the log-odds of one layer by the methods of a batch.

This is done by a steering table or, for methods that no table can express, by applying the methods
one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from holdfast.methods.compiled import CompiledMethods
from holdfast.methods.protocols import ShiftsAttention
from holdfast.methods.table import LayerTable, TableMethod


@dataclass(frozen=True)
class MethodGroup:
    """Rows with the same methods."""

    methods: tuple[ShiftsAttention, ...]
    rows: Tensor | slice  # int64 [row of the group]; a slice if these are all rows


def method_groups(rows: Sequence[CompiledMethods], device: torch.device | str) -> list[MethodGroup]:
    """Groups the rows of a batch by their methods; rows without methods are in no group."""
    rows_of: dict[tuple[ShiftsAttention, ...], list[int]] = {}
    for row, compiled in enumerate(rows):
        if compiled.attention:
            rows_of.setdefault(compiled.attention, []).append(row)
    groups = []
    for methods, members in rows_of.items():
        if len(members) == len(rows):
            groups.append(MethodGroup(methods, slice(None)))
        else:
            groups.append(MethodGroup(methods, torch.tensor(members, device=device)))
    return groups


@dataclass(frozen=True)
class MethodSequence:
    """Methods applied one after another: custom ones, or lists that no table can express."""

    groups: Sequence[MethodGroup]  # the rows by their methods; rows without methods are left out
    layer: int  # counted from 0
    num_heads: int  # of the layer
    heads: Sequence[int] | None = None  # the heads whose log-odds are passed in; None: all

    def mass(self, log_odds: Tensor) -> Tensor:
        """Returns the shifted mass on the span."""
        return self.shift(log_odds).sigmoid()

    def log_rest(self, log_odds: Tensor) -> Tensor:
        """Returns the logarithm of the mass that is left for the rest."""
        return softplus(self.shift(log_odds)).neg()

    def for_heads(self, heads: Sequence[int] | None) -> MethodSequence:
        """Returns the same sequence for some heads of the layer; None: all heads."""
        return MethodSequence(self.groups, self.layer, self.num_heads, heads)

    def shift(self, log_odds: Tensor) -> Tensor:
        """Returns the shifted log-odds.

        Methods expect the log-odds of all heads of the layer, so missing ones are filled with 0.
        """
        if self.heads is None:
            return self._shift_all_heads(log_odds)
        all_heads = log_odds.new_zeros(log_odds.shape[0], self.num_heads, log_odds.shape[2])
        all_heads[:, self.heads] = log_odds
        return self._shift_all_heads(all_heads)[:, self.heads]

    def _shift_all_heads(self, log_odds: Tensor) -> Tensor:
        shifted = log_odds
        for group in self.groups:
            group_odds = log_odds[group.rows]
            for method in group.methods:
                group_odds = _shift_touched_heads(method, group_odds, self.layer)
            if isinstance(group.rows, slice):  # this is the only group, and has all rows
                return group_odds
            if shifted is log_odds:
                shifted = log_odds.clone()
            shifted[group.rows] = group_odds
        return shifted

    def shift_log_masses(
        self, span: Tensor, generated: Tensor, rest: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Returns the shifted log-masses of span and generated tokens, [row, head, query] each.

        The log-mass of the rest stays as it is.

        A method whose span includes generated tokens moves the two against the rest; any other
        method moves the span against both.
        """
        shifted_span = span.clone()
        shifted_generated = generated.clone()
        for group in self.groups:
            group_span = span[group.rows]
            group_generated = generated[group.rows]
            for method in group.methods:
                group_span, group_generated = _shift_log_masses_by(
                    method, self.layer, group_span, group_generated, rest[group.rows]
                )
            shifted_span[group.rows] = group_span
            shifted_generated[group.rows] = group_generated
        return shifted_span, shifted_generated


# both compute the shifted `mass` and `log_rest` from log-odds [row, head, query]
LayerShift = LayerTable | MethodSequence


def _shift_touched_heads(method: ShiftsAttention, log_odds: Tensor, layer: int) -> Tensor:
    """Returns log-odds of all heads of a layer, shifted in those that the method touches."""
    shifted = method.shift(log_odds, layer)
    if method.heads is None or isinstance(method, TableMethod):  # a table has an entry per head
        return shifted
    touched = [head for at, head in method.heads if at == layer]
    result = log_odds.clone()
    result[:, touched] = shifted[:, touched]
    return result


def _shift_log_masses_by(
    method: ShiftsAttention, layer: int, span: Tensor, generated: Tensor, rest: Tensor
) -> tuple[Tensor, Tensor]:
    """Returns the log-masses of span and generated tokens after one method."""
    if method.span_includes_generated:
        log_odds = torch.logaddexp(span, generated) - rest
    else:
        log_odds = span - torch.logaddexp(generated, rest)
    finite = log_odds.isfinite()
    # infinite values would give a gradient of NaN, even in the branch of `where` that is not taken
    log_odds = log_odds.masked_fill(~finite, 0.0)
    shifted = _shift_touched_heads(method, log_odds, layer)
    change = torch.where(finite, shifted - log_odds, 0.0)
    if method.span_includes_generated:
        generated = generated + change
    return span + change, generated
