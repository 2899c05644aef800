"""Applies the rows' logits processors to the outputs of a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.generation.constraints import EditedLogits
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
