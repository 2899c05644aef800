"""Some rows of the slots forwarded: in one pass, or in as many as rows that may not share one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from holdfast.engine.batch import StreamState, batch_of, spans_of
from holdfast.engine.cache import Slots
from holdfast.engine.runner import Output, Runner
from holdfast.engine.scaled_keys import ScaledKeys


def forward_slots(
    runner: Runner,
    slots: Slots,
    which: Sequence[int],
    readings: Sequence[StreamState],
    starts: Sequence[int],
    span: Tensor,
    logits: int = 1,
) -> Output:
    """Forwards rows from `starts` to their ends; what it computes counts once it is committed.

    Args:
        runner: the model.
        slots: where its rows live.
        which: slots, in order.
        readings: in them.
        starts: the first token of each that is forwarded.
        span: of these rows, bool [row, column].
        logits: of how many last tokens they are wanted; in front of a row's first token they are 0.
    """
    slots.drop()
    ends = [len(reading) for reading in readings]
    together: dict[Hashable, list[int]] = {}
    for index, slot in enumerate(which):
        batch_key = runner.batch_key(starts[index], ends[index], slots.lengths[slot])
        together.setdefault(batch_key, []).append(index)
    groups, outputs = list(together.values()), []
    for places in groups:
        whole = len(groups) == 1
        mine = which if whole else [which[index] for index in places]
        first, last = [starts[index] for index in places], [ends[index] for index in places]
        some, row_span = [readings[index] for index in places], span if whole else span[places]
        batch = batch_of(some, first, row_span, runner.device, slots, logits)
        scaled = ScaledKeys.of([reading.scaled for reading in some], row_span, len(slots.layers))
        with slots.writing(mine, first, last, scaled) as kept:
            outputs.append(runner.forward(replace(batch, starts=kept)))
        if slots.seq_length_read and not batch.level and runner.require_equal_positions():
            return forward_slots(runner, slots, which, readings, starts, span, logits)
    return outputs[0] if len(groups) == 1 else _in_order(outputs, groups)


def forward_alone(runner: Runner, reading: StreamState, logits: int) -> Tensor:
    """The logits [token, vocabulary] of a row's last tokens; the whole row is forwarded, by itself.

    Args:
        runner: the model.
        reading: the row.
        logits: of how many last tokens they are wanted.
    """
    span = spans_of([reading], runner.device)
    batch = batch_of([reading], [0], span, runner.device, logits=logits)
    return runner.forward(batch).logits[0]


def _in_order(outputs: Sequence[Output], groups: Sequence[Sequence[int]]) -> Output:
    """The outputs of several passes as one, in the order of their places."""
    order = torch.tensor([index for places in groups for index in places]).argsort().tolist()
    longest = max(output.logits.shape[1] for output in outputs)
    padded = [
        torch.nn.functional.pad(output.logits, (0, 0, longest - output.logits.shape[1], 0))
        for output in outputs
    ]
    masses = [output.mass for output in outputs if output.mass is not None]
    uniform = [output.uniform for output in outputs if output.uniform is not None]
    return Output(
        torch.cat(padded)[order],
        torch.cat(masses)[order] if masses else None,
        None,
        torch.cat(uniform)[order] if uniform else None,
    )
