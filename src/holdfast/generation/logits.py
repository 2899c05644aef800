"""From the outputs of a pass to the logits that tokens are drawn from.

Processors combine a row's logits with those of its second stream; then its penalties and its
grammar constrain the next token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from holdfast.generation.memory import ran_out_of_memory
from holdfast.generation.rows import RowState
from holdfast.methods.protocols import EditsLogits


@dataclass(frozen=True)
class StepOutputs:
    """The outputs of a pass, by row."""

    rows: Sequence[RowState]  # the rows that draw a token
    logits: Tensor  # of each row's first stream, which generates, [row, vocabulary]
    second_logits: Tensor  # of the second streams, [row with two streams, vocabulary]
    mass: Tensor | None  # mass on the span, [row, layer, head]; None unless traced
    uniform: Tensor | None  # mass under uniform attention, [row, layer]; None unless traced


class EditedLogits(NamedTuple):
    """Logits to draw tokens from, [row, vocabulary]."""

    logits: Tensor
    errors: dict[int, Exception]  # by number of the row, for rows that cannot continue


def process(step: StepOutputs) -> EditedLogits:
    """Applies each row's processors, in order, to its logits.

    Rows that share a processor are processed together. A row whose processor fails gets an error.
    """
    logits = step.logits
    errors = dict[int, Exception]()
    paired = [number for number, state in enumerate(step.rows) if len(state.streams) > 1]
    second_of = {number: index for index, number in enumerate(paired)}
    for turn in range(max(len(state.row.processors) for state in step.rows)):
        numbers: dict[EditsLogits, list[int]] = {}
        for number, state in enumerate(step.rows):
            if turn < len(state.row.processors) and number not in errors:
                numbers.setdefault(state.row.processors[turn], []).append(number)
        for method, members in numbers.items():
            second = step.second_logits[[second_of[number] for number in members]]
            try:
                combined = method.combine_logits(logits[members].float(), second)
            except Exception as error:
                if ran_out_of_memory(error):
                    raise
                errors |= dict.fromkeys(members, error)
            else:
                wide = torch.promote_types(logits.dtype, combined.dtype)
                logits = logits.to(wide, copy=True)
                logits[members] = combined.to(wide)
    return EditedLogits(logits, errors)


def constrain(rows: Sequence[RowState], logits: Tensor) -> EditedLogits:
    """Applies the rows' constraints to their logits, [row, vocabulary].

    Rows without constraints keep their logits. A row whose grammar cannot continue gets an error.
    """
    penalised = [number for number, state in enumerate(rows) if any(state.penalties)]
    matched = [number for number, state in enumerate(rows) if state.matcher is not None]
    if not penalised and not matched:
        return EditedLogits(logits, {})
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32), copy=True)
    if penalised:
        _penalise([(number, rows[number]) for number in penalised], logits)
    errors = dict[int, Exception]()
    masks = list[Tensor]()
    for number in matched:
        state = rows[number]
        width = logits.shape[-1]
        forbidden = torch.ones(width, dtype=torch.bool)
        try:
            assert state.matcher is not None
            allowed = state.matcher.allowed(state.token_ids)[:width]
        except Exception as error:
            errors[number] = error
        else:
            # logits beyond the tokenizer's vocabulary stay forbidden: they belong to no token
            torch.logical_not(allowed, out=forbidden[: len(allowed)])
        masks.append(forbidden)
    if matched:
        mask = torch.stack(masks).to(logits.device)
        logits[matched] = logits[matched].masked_fill(mask, -torch.inf)
    return EditedLogits(logits, errors)


def _penalise(rows: Sequence[tuple[int, RowState]], logits: Tensor) -> None:
    """Subtracts the penalties of OpenAI's API from logits [row, vocabulary], in place.

    Each token that the row has drawn `count` > 0 times loses `frequency * count + presence`.
    """
    numbers = list[int]()
    ids = list[int]()
    amounts = list[Tensor]()
    for number, state in rows:
        frequency, presence = state.penalties
        counts = torch.tensor([*state.token_counts.values()], dtype=torch.float64)
        numbers += [number] * len(counts)
        ids += state.token_counts
        amounts.append(frequency * counts + presence)
    where = torch.tensor([numbers, ids], dtype=torch.long).to(logits.device)
    logits[where[0], where[1]] -= torch.cat(amounts).to(logits.device, logits.dtype)
