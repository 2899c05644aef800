"""The edits of one forward pass, of the engine or in a block of `holdfast.steering`: rows with the
same methods form a group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import torch
from torch import Tensor

from holdfast.errors import UsageError
from holdfast.methods.kinds import Kind, kind_of
from holdfast.methods.protocols import EditsHidden, EditsOutputs, EditsStates


@dataclass(frozen=True)
class EditedRow:
    """One row of a pass, as the host knows it.

    Args:
        methods: of keys, hidden states and attention outputs, in order.
        first: the column of the first token that the pass computes.
        tokens: how many it computes; they are its last ones, behind padding or in front of it.
        padding: in front of them.
        span: bool [column] on the host, of the prompt's columns.
        prompt: columns of the prompt.
        last: the column of its last token; None: the last one.
    """

    methods: tuple[EditsStates, ...]
    first: int
    tokens: int
    padding: int
    span: Tensor
    prompt: int
    last: int | None = None


@dataclass(frozen=True)
class EditGroup:
    """Rows with the same methods.

    Args:
        methods: in order.
        rows: which, int64 [row]; None for all.
        span: bool [row, token], True on the tokens of the pass that are held on to; None for none.
        reply: bool [row, token], True on generated tokens; None where all are, or none matters.
        last: int64 [row], the place in the pass of each prompt's last token.
    """

    methods: tuple[EditsStates, ...]
    rows: Tensor | None
    span: Tensor | None
    reply: Tensor | None
    last: Tensor | None

    def of(self, states: Tensor) -> Tensor:
        """Its rows of a pass's states, [row, token, ...]."""
        return states if self.rows is None else states[self.rows]

    def put(self, edited: Tensor, states: Tensor) -> Tensor:
        """The states with its rows as they were edited."""
        if self.rows is None:
            return edited
        return states.index_copy(0, self.rows, edited)


@dataclass(frozen=True)
class Edits:
    """The edits that hooks make in a pass.

    Args:
        groups: with different methods; rows in none of them are left alone.
    """

    groups: tuple[EditGroup, ...]


def edits_of(rows: Sequence[EditedRow], width: int, device: torch.device) -> Edits | None:
    """The edits of a pass of these rows; None where there are none.

    Args:
        rows: of the pass, in order.
        width: tokens of the pass, padding included.
        device: of the model.
    """
    places: dict[tuple[EditsStates, ...], list[int]] = {}
    for index, row in enumerate(rows):
        if row.methods:
            places.setdefault(row.methods, []).append(index)
    groups = [
        _group(methods, chosen_rows, rows, width, device)
        for methods, chosen_rows in places.items()
        if any(_acts(method, [rows[index] for index in chosen_rows]) for method in methods)
    ]
    return Edits(tuple(groups)) if groups else None


def _acts(method: EditsStates, rows: Sequence[EditedRow]) -> bool:
    """Whether a method does anything in a pass: keys are computed once, with the prompt."""
    if kind_of(method) is Kind.KEYS:
        return any(_holds(row) for row in rows)
    moving = cast("EditsHidden | EditsOutputs", method)
    return not moving.reply_only or any(row.first + row.tokens > row.prompt for row in rows)


def _holds(row: EditedRow) -> bool:
    """Whether the pass computes tokens of the span."""
    return row.first < len(row.span) and bool(row.span[row.first : row.first + row.tokens].any())


def _group(
    methods: tuple[EditsStates, ...],
    places: Sequence[int],
    rows: Sequence[EditedRow],
    width: int,
    device: torch.device,
) -> EditGroup:
    chosen_rows = [rows[index] for index in places]
    every = len(places) == len(rows)
    span = reply = last = None
    if any(_holds(row) for row in chosen_rows):
        marks = torch.zeros(len(chosen_rows), width, dtype=torch.bool)
        ends = torch.zeros(len(chosen_rows), dtype=torch.long)
        for number, row in enumerate(chosen_rows):
            part = row.span[row.first : row.first + row.tokens]
            marks[number, row.padding : row.padding + len(part)] = part
            end = row.prompt - 1 if row.last is None else row.last
            ends[number] = max(row.padding + end - row.first, 0)
        span, last = marks.to(device), ends.to(device)
    if any(row.first < row.prompt for row in chosen_rows):
        generated = torch.zeros(len(chosen_rows), width, dtype=torch.bool)
        for number, row in enumerate(chosen_rows):
            generated[number, row.padding + max(row.prompt - row.first, 0) :] = True
        reply = generated.to(device)
    return EditGroup(
        methods, None if every else _on_device(tuple(places), device), span, reply, last
    )


@lru_cache(maxsize=256)
def _on_device(rows: tuple[int, ...], device: torch.device) -> Tensor:
    """The same from step to step, while rows stay."""
    with torch.inference_mode(False):  # it is kept for passes with gradients too
        return torch.tensor(rows, device=device)


@dataclass(frozen=True)
class BlockStates:
    """The methods of a block that edit keys, hidden states or attention outputs.

    Args:
        methods: per row of the span mask.
        span: bool [row, column], on the host.
    """

    methods: tuple[tuple[EditsStates, ...], ...]
    span: Tensor


def edits_of_pass(states: BlockStates, given: Mapping[str, Any], before: int) -> Edits | None:
    """The edits of a pass of the block.

    Args:
        states: of the block.
        given: the arguments of the pass, by name.
        before: columns in front of its tokens.

    Raises:
        UsageError: it has no whole number of rows for each row of the span mask, or no tokens that
            can be counted.
    """
    ids = given.get("input_ids")
    ids = given.get("inputs_embeds") if ids is None else ids
    if not isinstance(ids, Tensor) or ids.ndim < 2:
        raise UsageError(
            "A block that edits keys or hidden states needs input_ids or inputs_embeds; pass one"
            " of them by its name."
        )
    count, width = states.span.shape
    if ids.shape[0] % count:
        raise UsageError(
            f"The span mask has {count} rows and the model's batch {ids.shape[0]}; give one row"
            " per prompt."
        )
    copies = ids.shape[0] // count
    ends = _ends(given.get("attention_mask"), ids.shape[0], width)
    rows = [
        EditedRow(
            states.methods[row // copies],
            before,
            ids.shape[1],
            0,
            states.span[row // copies],
            width,
            ends[row],
        )
        for row in range(ids.shape[0])
    ]
    return edits_of(rows, ids.shape[1], ids.device)


def _ends(mask: object, rows: int, width: int) -> list[int | None]:
    """Per row the column of the prompt's last token that is not padding; None: the last one."""
    if not isinstance(mask, Tensor) or mask.ndim != 2 or mask.shape[1] < width:
        return [None] * rows
    seen = mask[:, :width].bool().cpu()
    if bool(seen[:, -1].all()):
        return [None] * rows
    return [int(row.nonzero()[-1]) if bool(row.any()) else None for row in seen]
