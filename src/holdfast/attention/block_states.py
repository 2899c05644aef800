"""Edits of a block of `holdfast.steering` besides attention: keys, hidden states, outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from holdfast.errors import UsageError
from holdfast.methods.protocols import EditsStates
from holdfast.states.edits import EditedRow, Edits, edits_of


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
