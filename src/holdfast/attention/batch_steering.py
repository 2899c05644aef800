"""The steering of a batch: the methods of its rows, and their spans.

The span of a row is the set of tokens that its methods move attention to, usually its system
prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import torch
from torch import Tensor

from holdfast.attention.key_groups import Extent
from holdfast.attention.layer_shifts import (
    LayerShift,
    MethodGroup,
    MethodSequence,
    method_groups,
)
from holdfast.errors import UsageError
from holdfast.methods.compiled import CompiledMethods, head_tables
from holdfast.methods.table import HeadTable, LayerTable, layer_table

V = TypeVar("V")
_NEVER = 2**40  # a column that no row reaches


@dataclass(frozen=True)
class AttentionTrace:
    """Attention mass on the span, after steering.

    Args:
        mass: float32 [layer, head, step]; step t is the query that produced the reply's token t.
        uniform: float32 [layer, step], the mass under uniform attention, which gives equal weight
            to all tokens that the layer sees (in a layer with a sliding window or chunks, the
            tokens in the window or chunk). Its mean over layers is reported beside the mean mass.
            None if unknown.
    """

    mass: Tensor
    uniform: Tensor | None = None


@dataclass(frozen=True, eq=False)
class BatchSteering:
    """The steering of a batch's rows, in one pass or in all passes of a block.

    Everything that the host needs is computed once and cached, so later passes over the same rows
    have no extra cost.
    """

    # bool [batch, key], True on the keys of the span; keys after the last column are not in it. A
    # pass may have several rows for each of these (beams, several replies to a prompt), next to
    # each other
    span: Tensor
    methods_by_row: Sequence[CompiledMethods]
    trace: bool = False  # whether to record the mass at the last query
    # per row, the number of columns before the first generated one; None: all columns of `span`
    prompt_columns: Sequence[int] | None = None
    # whether `span` has every column of a pass; if False, it has only the prompt's columns, and
    # passes continue after it
    covers_pass: bool = True
    # the tables made so far, by layer (None: all layers), number of rows, and dtype
    _layer_tables: dict[tuple[int | None, int, torch.dtype], LayerTable] = field(
        default_factory=dict, init=False, repr=False
    )
    _groups: dict[int, list[MethodGroup]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.methods_by_row) != self.span.shape[0]:
            raise UsageError(
                f"There are methods for {len(self.methods_by_row)} rows and a span of"
                f" {self.span.shape[0]}; give each row its own.",
                option="methods_by_row",
                value=len(self.methods_by_row),
                allowed=self.span.shape[0],
            )

    @cached_property
    def first_generated(self) -> list[int]:
        """Per row, the first generated column."""
        return (
            [self.span.shape[1]] * len(self.span)
            if self.prompt_columns is None
            else list(self.prompt_columns)
        )

    @cached_property
    def includes_generated(self) -> list[bool]:
        """Per row, whether generated tokens count as part of its span."""
        return [methods.span_includes_generated for methods in self.methods_by_row]

    @cached_property
    def disagrees(self) -> bool:
        """Whether a row has methods that disagree on the span."""
        return not all(methods.agrees_on_span for methods in self.methods_by_row)

    @cached_property
    def extent(self) -> Extent:
        """The columns of the span; computing it copies the mask to the host."""
        includes_generated = self.includes_generated
        if self.disagrees:
            includes_generated = [False] * len(self.methods_by_row)
        return Extent.of(self.span, self.first_generated, includes_generated)

    @cached_property
    def first_generated_on_device(self) -> Tensor:
        """`first_generated` on the device, int64 [row]."""
        return torch.tensor(self.first_generated).to(self.span.device, non_blocking=True)

    @cached_property
    def included_from(self) -> Tensor:
        """Per row, the first generated column that counts as its span, int64 [row], on the device.

        It is `_NEVER` for rows whose generated tokens do not count as the span.
        """
        rows = zip(self.first_generated, self.includes_generated, strict=True)
        starts = [start if included else _NEVER for start, included in rows]
        return torch.tensor(starts).to(self.span.device, non_blocking=True)

    @cached_property
    def _tables(self) -> list[HeadTable] | None:
        """The table of each row's methods; None if three numbers cannot express all of them."""
        return head_tables(self.methods_by_row)

    @cached_property
    def _differs_by_layer(self) -> bool:
        return any(table.names_heads for table in self._tables or ())

    @cached_property
    def _heads(self) -> dict[int, list[int]] | None:
        """The heads that some method moves, by layer; None if a method moves all heads."""
        heads_by_method = [
            method.heads for methods in set(self.methods_by_row) for method in methods.attention
        ]
        by_layer: dict[int, list[int]] = {}
        for layer, head in sorted({pair for heads in heads_by_method for pair in heads or ()}):
            by_layer.setdefault(layer, []).append(head)
        return None if None in heads_by_method else by_layer

    def touches(self, layer: int) -> bool:
        """Whether any method moves a head of this layer."""
        return self._heads is None or layer in self._heads

    def acts_on(self, layer: int) -> bool:
        """Whether a pass does anything in this layer: methods move it, or its mass is traced."""
        return self.trace or self.touches(layer)

    def heads(self, layer: int) -> list[int] | None:
        """The heads of this layer that some method moves, in order; None if all are moved."""
        return None if self._heads is None else self._heads.get(layer, [])

    def copies_of(self, num_rows: int) -> int:
        """Returns how many rows of a pass belong to each row of the span.

        Raises:
            UsageError: the number of rows is not a multiple.
        """
        count = self.span.shape[0]
        if num_rows % count:
            raise UsageError(
                f"The span mask has {count} rows and the model's batch {num_rows}; give one row per"
                " prompt.",
                option="span_mask",
                value=count,
                allowed=num_rows,
            )
        return num_rows // count

    def layer_shift(self, layer: int, queries: Tensor) -> LayerShift:
        """Returns the shift of the log-odds of queries [B, H, Q, D] in a layer."""
        if self._tables is None:
            return self.method_sequence(layer, queries)
        num_rows, heads = queries.shape[:2]
        wide = torch.promote_types(queries.dtype, torch.float32)
        key = (layer if self._differs_by_layer else None, num_rows, wide)
        if key not in self._layer_tables:
            tables = self._repeat_per_row(self._tables, num_rows)
            self._layer_tables[key] = layer_table(tables, layer, heads, wide, self.span.device)
        return self._layer_tables[key]

    def method_sequence(self, layer: int, queries: Tensor) -> MethodSequence:
        """Returns the methods of each row as a sequence, without a table.

        Args:
            layer: counted from 0.
            queries: queries or scores of the layer, [B, H, ...]; only their shape is read.
        """
        num_rows, heads = queries.shape[:2]
        if num_rows not in self._groups:
            methods_by_row = self._repeat_per_row(self.methods_by_row, num_rows)
            self._groups[num_rows] = method_groups(methods_by_row, self.span.device)
        return MethodSequence(self._groups[num_rows], layer, heads)

    def _repeat_per_row(self, values: Sequence[V], num_rows: int) -> list[V]:
        """Repeats the value of each row for all rows of a pass that belong to it."""
        copies = self.copies_of(num_rows)
        return [value for value in values for _ in range(copies)]
