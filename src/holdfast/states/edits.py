"""The edits of one forward pass, in the engine or in a block of `holdfast.steering`: rows with the
same methods form a group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from holdfast.errors import UsageError
from holdfast.methods.compiled import CompiledMethods


@dataclass(frozen=True)
class EditedRow:
    """One row of a pass, as known on the host."""

    pass_methods: CompiledMethods
    start: int  # the column of the first token that the pass computes
    num_tokens: int  # how many tokens the pass computes: the last ones of the row
    padding: int  # columns of padding before these tokens
    span: Tensor  # bool [column] on the host, for the prompt's columns
    prompt_len: int  # the number of columns of the prompt

    @property
    def has_span(self) -> bool:
        """Whether the pass computes tokens of the span."""
        if self.start >= len(self.span):
            return False
        return bool(self.span[self.start : self.start + self.num_tokens].any())


@dataclass(frozen=True)
class EditGroup:
    """Rows with the same methods."""

    pass_methods: CompiledMethods
    rows: Tensor | None  # the indices of the rows, int64 [row]; None for all
    # bool [row, token], True on the tokens of the pass that are in the span; None if there are none
    span: Tensor | None
    # bool [row, token], True on generated tokens; None if all tokens are generated
    reply: Tensor | None

    def select(self, states: Tensor) -> Tensor:
        """Returns the group's rows of a pass's states, [row, token, ...]."""
        return states if self.rows is None else states[self.rows]

    def replace(self, states: Tensor, edited: Tensor) -> Tensor:
        """Returns the states with the group's rows replaced by the edited ones."""
        return edited if self.rows is None else states.index_copy(0, self.rows, edited)


def group_edits(rows: Sequence[EditedRow], width: int, device: torch.device) -> list[EditGroup]:
    """Groups the rows of a pass by their methods; rows that nothing edits are in no group.

    Args:
        width: the number of tokens per row, padding included.
    """
    by_methods: dict[CompiledMethods, list[int]] = {}
    for index, row in enumerate(rows):
        if row.pass_methods.states:
            by_methods.setdefault(row.pass_methods, []).append(index)
    groups = []
    for methods, indices in by_methods.items():
        group_rows = [rows[index] for index in indices]
        if not _have_effect(methods, group_rows):
            continue
        has_all = len(indices) == len(rows)
        row_indices = None if has_all else _on_device(tuple(indices), device)
        groups.append(_make_group(methods, row_indices, group_rows, width, device))
    return groups


def _have_effect(methods: CompiledMethods, rows: Sequence[EditedRow]) -> bool:
    """Whether the methods edit anything in this pass.

    Keys are edited only in the pass that computes the span, and some methods edit only generated
    tokens.
    """
    if methods.keys and any(row.has_span for row in rows):
        return True
    generates = any(row.start + row.num_tokens > row.prompt_len for row in rows)
    return any(generates or not method.reply_only for method in methods.hidden)


def _make_group(
    methods: CompiledMethods,
    row_indices: Tensor | None,
    rows: Sequence[EditedRow],
    width: int,
    device: torch.device,
) -> EditGroup:
    """Gathers the spans and the replies of rows with the same methods in tensors."""
    span = reply = None
    if any(row.has_span for row in rows):
        in_span = torch.zeros(len(rows), width, dtype=torch.bool)
        for number, row in enumerate(rows):
            computed = row.span[row.start : row.start + row.num_tokens]
            in_span[number, row.padding : row.padding + len(computed)] = computed
        span = in_span.to(device)
    if any(row.start < row.prompt_len for row in rows):
        generated = torch.zeros(len(rows), width, dtype=torch.bool)
        for number, row in enumerate(rows):
            generated[number, row.padding + max(row.prompt_len - row.start, 0) :] = True
        reply = generated.to(device)
    return EditGroup(methods, row_indices, span, reply)


@lru_cache(maxsize=256)
def _on_device(rows: tuple[int, ...], device: torch.device) -> Tensor:
    """Returns the row indices as a tensor, cached because rows stay for many steps."""
    with torch.inference_mode(False):  # passes with gradients use it too
        return torch.tensor(rows, device=device)


def tokens_in(arguments: Mapping[str, Any]) -> Tensor | None:
    """Returns the tokens among a model's arguments, as ids [row, token] or embeddings [row, token,
    size]; None if neither is there in that shape.
    """
    ids = arguments.get("input_ids")
    ids = arguments.get("inputs_embeds") if ids is None else ids
    return ids if isinstance(ids, Tensor) and ids.ndim >= 2 else None


def edits_in_block(
    methods_by_row: Sequence[CompiledMethods],
    span: Tensor,
    arguments: Mapping[str, Any],
    columns_before: int,
) -> list[EditGroup]:
    """Returns the edits of one pass inside a block of `holdfast.steering`.

    Args:
        methods_by_row: of each row of the block's span.
        span: bool [row, column], on the host.
        arguments: of the pass, by name.
        columns_before: the number of columns before the pass.

    Raises:
        UsageError: the pass has no tokens that can be counted, or its rows do not fit the span.
    """
    if not any(methods.states for methods in methods_by_row):
        return []
    ids = tokens_in(arguments)
    if ids is None:
        raise UsageError(
            "A block that edits keys or hidden states needs input_ids or inputs_embeds; pass one"
            " of them by its name."
        )
    batch_size, num_tokens = ids.shape[:2]
    num_prompts, prompt_len = span.shape
    if batch_size % num_prompts:
        raise UsageError(
            f"The span mask has {num_prompts} rows and the model's batch {batch_size}; give one row"
            " per prompt."
        )
    prompt_of_row = [row // (batch_size // num_prompts) for row in range(batch_size)]
    rows = [
        EditedRow(
            pass_methods=methods_by_row[prompt],
            start=columns_before,
            num_tokens=num_tokens,
            padding=0,
            span=span[prompt],
            prompt_len=prompt_len,
        )
        for prompt in prompt_of_row
    ]
    return group_edits(rows, num_tokens, ids.device)
