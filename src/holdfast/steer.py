"""Steering around a forward pass or `generate()` of a Hugging Face model that someone already has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from holdfast.attention.reach import check_methods, reached
from holdfast.attention.steering import STEERING, AttentionTrace, Steering
from holdfast.errors import UsageError
from holdfast.methods.protocols import ShiftsAttention

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class Steered:
    """What a `steering` block saw."""

    _steering: Steering

    @property
    def traces(self) -> list[AttentionTrace]:
        """The mass on the span in each row of the batch, a step per forward pass so far; empty without `trace`."""
        passes = [layers for layers in self._steering.passes if layers]
        if not passes:
            return []
        steps = [torch.stack(layers, 1).cpu() for layers in passes]  # [row, layer, head]
        return [AttentionTrace(mass) for mass in torch.stack(steps, -1)]


@contextmanager
def steering(
    hf_model: PreTrainedModel,
    span_mask: Tensor,
    methods: Sequence[ShiftsAttention] | Sequence[Sequence[ShiftsAttention]],
    *,
    trace: bool = False,
) -> Iterator[Steered]:
    """Steers the attention of a model inside the block, in this thread, under `forward` and `generate()`.

        with holdfast.steering(model, span_mask, [holdfast.SplitSoftmax(0.5)]):
            model.generate(**inputs)

    Args:
        hf_model: a causal language model, whatever its attention implementation; on leaving it is exactly as before.
        span_mask: bool [B, T], True on the tokens of the prompt to hold on to. Keys after T are generated ones.
        methods: attention methods in order, for all rows, or one sequence of them per row.
        trace: whether `traces` of the value is filled.

    Raises:
        ModelError: the model's attention cannot be reached, or does not go with a method.
        UsageError: a span mask that is not bool [B, T] or holds nothing; a method that does not steer attention, or names a head
            that the model lacks; inside the block, a batch or a prompt of another size than the mask.
    """
    span = _checked_span(span_mask)
    rows = _per_row(methods, len(span))
    check_methods(hf_model, [method for row in rows for method in row])
    state = Steering(span.to(hf_model.device), rows, trace, follows=False)
    with reached(hf_model):
        token = STEERING.set(state)
        try:
            yield Steered(state)
        finally:
            STEERING.reset(token)


def _per_row(methods: Sequence, rows: int) -> list[tuple[ShiftsAttention, ...]]:
    """The methods of each row, none that is not about attention."""
    nested = any(isinstance(one, (list, tuple)) for one in methods)
    if nested and len(methods) != rows:
        raise UsageError(f"There are {len(methods)} lists of methods for {rows} rows of the span mask; give one per row, or one for all.")
    each = [tuple(one) for one in methods] if nested else [tuple(methods)] * rows
    for method in {id(method): method for row in each for method in row}.values():
        if not isinstance(method, ShiftsAttention):
            raise UsageError(f"{method!r} does not steer attention, which is all a block can do; give the others to holdfast.load(...).generate.")
    return each


def _checked_span(span_mask: Tensor) -> Tensor:
    if not isinstance(span_mask, Tensor) or span_mask.dtype != torch.bool or span_mask.ndim != 2:
        seen = f"{span_mask.dtype} {list(span_mask.shape)}" if isinstance(span_mask, Tensor) else type(span_mask).__name__
        raise UsageError(f"A span mask is a bool tensor [batch, token], not {seen}; make it with input_ids's shape and True on the span.")
    empty = (~span_mask.any(1)).nonzero().flatten().tolist()
    if empty or not len(span_mask):
        raise UsageError(f"The span mask {list(span_mask.shape)} is empty in row {empty[0] if empty else 0}; set True on the tokens to hold on to.")
    return span_mask
