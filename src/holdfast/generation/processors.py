"""Applies logits processors to a step; rows that share a processor are processed together."""

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
    logits: Tensor  # of the streams that generate, [row, vocabulary]
    second_logits: Tensor  # of the second streams, [row with one, vocabulary]
    mass: Tensor | None  # mass on the span, [row, layer, head]; None unless traced
    uniform: Tensor | None  # that of uniform attention, [row, layer]; None unless traced


def process(step: StepOutputs) -> EditedLogits:
    """The logits as the processors of each row edit them; a row whose processor fails has an
    error.
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
        for method, of_method in numbers.items():
            second = step.second_logits[[second_of[number] for number in of_method]]
            try:
                combined = method.combine_logits(logits[of_method].float(), second)
            except Exception as error:
                if ran_out_of_memory(error):
                    raise
                errors |= dict.fromkeys(of_method, error)
            else:
                wide = torch.promote_types(logits.dtype, combined.dtype)
                logits = logits.to(wide, copy=True)
                logits[of_method] = combined.to(wide)
    return EditedLogits(logits, errors)
