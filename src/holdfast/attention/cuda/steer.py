"""What a pass is to do, as the kernels take it: the table of a layer, and the columns of each row.

The kernels take rows whose methods belong to the family of `holdfast.methods.table`, and agree on
whether generated tokens count as span. Passes with any other row go the general way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor

from holdfast.attention.cuda import is_covered
from holdfast.attention.cuda.arguments import Columns, LayerTable
from holdfast.attention.extent import Starts
from holdfast.attention.steering import Steering
from holdfast.attention.table import layer_numbers
from holdfast.methods.protocols import ShiftsAttention
from holdfast.methods.table import table_row

_KEPT = 4096  # tables of layers, some kilobytes each, for the passes to come


@dataclass(frozen=True)
class Rows:
    """The rows of a batch in one layer.

    Args:
        table: of their heads.
        holds_generated: bool [B]; None where no row's generated tokens count as span.
    """

    table: LayerTable
    holds_generated: Tensor | None


@dataclass(frozen=True)
class LayerPass:
    """A pass of a layer that the kernels take."""

    steering: Steering
    layer: int
    rows: Rows


def taken(
    steering: Steering | None,
    layer: int,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
) -> LayerPass | None:
    """The pass of a layer, if the kernels take it."""
    if steering is None or not is_covered(query, key, value):
        return None
    if mask is not None and (
        mask.dtype != torch.bool or mask.ndim != 4 or mask.shape[1:3] != (1, query.shape[2])
    ):
        return None
    rows, heads = query.shape[:2]
    copies, methods = steering.copies_of(rows), tuple(steering.methods)
    made = layer_rows(methods, copies, steering.branch(layer), heads, query.device)
    return None if made is None else LayerPass(steering, layer, made)


def attend(
    layer_pass: LayerPass,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    causal: bool,
    scaling: float,
) -> Tensor | None:
    """Attention [B, H, Q, D], moved where a method touches this layer; notes the mass if asked to.

    None where the unsteered output will do.
    """
    from holdfast.attention.cuda.decode import decode
    from holdfast.attention.cuda.prefill import prefill, shape_for
    from holdfast.attention.cuda.tiles import Sight, Tiles, cut

    steering, rows = layer_pass.steering, layer_pass.rows
    queries, keys = query.shape[2], key.shape[2]
    columns = _columns(steering, rows, query, keys, mask)
    if queries == 1 or (steering.trace and steering.last is None):
        last = query[:, :, -1:]
        output, mass = decode(last, key, value, columns, rows.table, scaling, steering.trace)
        if mass is not None:
            steering.note(mass)
        if queries == 1:
            return output
    if not steering.touches(layer_pass.layer):
        return None
    shape = shape_for(query.shape[3], query.dtype)

    def made() -> Tiles:
        return cut(columns, keys, Sight(causal, mask=mask), shape)

    tiles = steering.plans.get(f"tiles on {query.device}", (queries, keys), mask, made)
    return prefill(query, key, value, tiles, rows.table, scaling)


@lru_cache(_KEPT)
def layer_rows(
    methods: tuple[Sequence[ShiftsAttention], ...],
    copies: int,
    layer: int | None,
    heads: int,
    device: torch.device,
) -> Rows | None:
    """The table of a layer, `copies` rows for each row of methods; None outside the family.

    `layer` may be None where no method names heads.
    """
    if any(table_row(tuple(row)) is None for row in methods):
        return None
    every = [tuple(row) for row in methods for _ in range(copies)]
    made = layer_numbers(every, -1 if layer is None else layer, heads, torch.float32, device)
    numbers = made.numbers.expand(3, len(every), heads)
    holds = [any(method.span_includes_generated for method in row) for row in every]
    held = torch.tensor(holds).to(device) if any(holds) else None
    return Rows(LayerTable(*(part.contiguous() for part in numbers.unbind(0))), held)


@lru_cache(64)
def _prompts(prompt: tuple[int, ...], copies: int, device: torch.device) -> Tensor:
    return torch.tensor(prompt).repeat_interleave(copies).to(device)


def _columns(
    steering: Steering, rows: Rows, query: Tensor, keys: int, mask: Tensor | None
) -> Columns:
    """The columns of each row, and those that the last query sees by the mask."""

    def made() -> Columns:
        copies, first = steering.copies_of(query.shape[0]), steering.first_column(keys)
        span = steering.span_over(keys).to(query.device)
        prompt = None
        if rows.holds_generated is not None and steering.prompt is not None:
            prompt = _prompts(tuple(steering.prompt), copies, query.device)
            prompt = prompt - (first.on_device[:, 0] if isinstance(first, Starts) else first)
        columns = Columns(
            span if copies == 1 else span.repeat_interleave(copies, 0),
            prompt,
            rows.holds_generated,
            seen=None if mask is None else mask[:, 0, -1].expand(query.shape[0], -1),
        )
        if columns.seen is not None and query.shape[2] == 1:
            return _bounded(columns, columns.seen)
        return columns

    # Layers of one model may stand on several devices.
    kind = f"columns on {query.device}"
    return steering.plans.get(kind, (query.shape[2], keys), mask, made)


def _bounded(columns: Columns, seen: Tensor) -> Columns:
    """The same, told where the columns in sight begin and end: a static cache is mostly empty."""
    column = torch.arange(seen.shape[1], device=seen.device)
    first = torch.where(seen, column, seen.shape[1]).amin(-1)
    length = torch.where(seen, column + 1, 0).amax(-1)
    return replace(columns, first=first, length=length)
