"""Steering around a forward pass or `generate()` of a Hugging Face model that one already has."""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor
from transformers import PreTrainedModel

from holdfast.attention.block_states import BlockStates
from holdfast.attention.blocks import Block, frame_of_entry
from holdfast.attention.open_model import OpenModel
from holdfast.attention.patching import open_block
from holdfast.attention.reaching import check_methods
from holdfast.attention.steering import AttentionTrace, Steering
from holdfast.errors import ModelError, UsageError
from holdfast.methods import Kind, Method, in_pass, of_kind, parse, states_methods
from holdfast.methods.protocols import InPass, ShiftsAttention
from holdfast.states import check_states, sites_of

Spelled = InPass | str  # a method, or the spelling of one or several
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, repr=False)
class Steered:
    """The handle of an open block."""

    _block: Block
    _model: OpenModel
    _methods: str

    def __repr__(self) -> str:
        passes = self._block.steered
        count = len(self._block.steering.span) if self._block.steering else 0
        rows = f"{count} row{'s'[: count != 1]}"
        return f"<Steered {self._model.name}: {self._methods}, {rows}, {passes} passes>"

    @property
    def traces(self) -> list[AttentionTrace]:
        """The mass on the span in each row of the batch, a step per forward pass so far.

        In a pass of several tokens it is that of the row's last token that is not padding. Empty
        without `trace`.

        Raises:
            UsageError: passes of several threads are mixed, or batches of different sizes.
        """
        passes = list(self._block.passes)
        if not passes:
            return []
        threads = [
            thread
            for number, (thread, _) in enumerate(passes)
            if not number or passes[number - 1][0] != thread
        ]
        if len(threads) > len(set(threads)):
            raise UsageError(
                f"{len(set(threads))} threads ran passes in this block by turns, so its traces are "
                "mixed; give each thread its block."
            )
        sizes = sorted({layers[0].shape[0] for _, layers in passes})
        if len(sizes) > 1:
            raise UsageError(
                f"The passes of this block had batches of {' and '.join(map(str, sizes))} rows; "
                "give each its block to trace it."
            )
        steps = [torch.stack(layers, 1).cpu() for _, layers in passes]  # [row, layer, head]
        return [AttentionTrace(mass) for mass in torch.stack(steps, -1)]

    def bind(self, function: Callable[P, R]) -> Callable[P, R]:
        """The function, with all passes that it runs in this block, in whatever thread.

            Thread(target=steered.bind(model.generate), kwargs=arguments).start()

        Calling it raises a `UsageError` once the block was left.
        """

        @functools.wraps(function)
        def bound(*args: P.args, **kwargs: P.kwargs) -> R:
            with self._model.blocks.bound(self._block, sys._getframe()):
                return function(*args, **kwargs)

        return bound


@contextmanager
def steering(
    hf_model: PreTrainedModel,
    span_mask: Tensor,
    methods: Spelled | Sequence[Spelled] | Sequence[Sequence[Spelled]],
    *,
    trace: bool = False,
) -> Iterator[Steered]:
    """Steers one model inside the block, under `forward` and `generate()`: its attention, or the
    keys, hidden states and attention outputs that methods edit.

        with holdfast.steering(model, span_mask, "split-softmax:exponent=0.5"):
            model.generate(**inputs)

    Passes of this model are steered in whatever thread they run, and no other model's are. Where
    several blocks are open on one model, a pass belongs to the innermost one in whose code it runs;
    a thread's function is bound to its block by `steered.bind`. docs/steering.md has the cases.

    Args:
        hf_model: a causal language model, whatever its attention implementation, or what
            `holdfast.load` gave; on leaving it is exactly as before.
        span_mask: bool [B, T], True on the tokens of the prompt to hold on to. Keys after T are
            generated ones.
        methods: those that act inside a forward pass, in order, or their spellings, for all rows,
            or one sequence of them per row.
        trace: whether `traces` of the value is filled.

    Raises:
        ModelError: the model's attention cannot be reached, or does not go with a method, or a
            method was fitted on another model.
        UsageError: a span mask that is not bool [B, T] or holds nothing; a method that does not
            act inside a pass, or names a head that the model lacks; inside the block, a batch or a
            prompt of another size than the mask, or a span on padding; a pass of which it cannot be
            told to which block it belongs.
    """
    frame = frame_of_entry()
    model = causal_model(hf_model)
    span = _checked_span(span_mask)
    rows = _per_row(methods, len(span))
    attention = [of_kind(row, Kind.LOG_ODDS) for row in rows]
    states = _block_states(model, rows, span, getattr(hf_model, "fingerprint", ""))
    steers = Steering(span.to(model.device), attention, trace, follows=False)
    block = Block(steers, frame, states)
    with _open_checked(model, block, [method for row in attention for method in row]) as opened:
        yield Steered(
            block,
            opened,
            " / ".join(
                dict.fromkeys("+".join(method.name for method in row) or "none" for row in rows)
            ),
        )
    if not block.reached:
        warnings.warn(
            f"No pass of {opened.name} went through this block of holdfast.steering, so it steered "
            "nothing; run the model inside it, and "
            "bind what a generator starts between its steps by steered.bind.",
            UserWarning,
            stacklevel=3,
        )


@contextmanager
def unsteered(hf_model: PreTrainedModel) -> Iterator[None]:
    """Leaves passes of a model inside the block as they are, whatever other blocks are open on it.

    Args:
        hf_model: as in `steering`.

    Raises:
        ModelError: as in `steering`.
    """
    with open_block(causal_model(hf_model), Block(None, frame_of_entry())):
        yield


def _block_states(
    model: PreTrainedModel, rows: Sequence[tuple[InPass, ...]], span: Tensor, fingerprint: str
) -> BlockStates | None:
    """What is edited besides attention; a model is looked at in a plain pass, once."""
    methods = tuple(states_methods(row) for row in rows)
    if not any(methods):
        return None
    with open_block(model, Block(None, sys._getframe())):
        check_states(model, [method for row in methods for method in row], fingerprint)
        return BlockStates(methods, span.cpu(), sites_of(model))


@contextmanager
def _open_checked(
    model: PreTrainedModel, block: Block, methods: Sequence[ShiftsAttention]
) -> Iterator[OpenModel]:
    """The block, if the model has the heads that are named; says when it was left too early."""
    check_methods(model, methods)
    with open_block(model, block) as opened:
        check_methods(
            model, methods
        )  # again: what layers have attention is known once it was reached
        yield opened
    if block.abandoned:
        warnings.warn(
            f"A block of holdfast.steering on {opened.name} was left while another thread "
            "generates in it, and the rest of that is not "
            "steered; join the thread inside the block.",
            UserWarning,
            stacklevel=5,
        )


def causal_model(model: Any) -> PreTrainedModel:
    """The Hugging Face model that someone means.

    Raises:
        ModelError: a model of another kind, or inside another that changes what it is given.
    """
    model = getattr(model, "hf_model", model)
    model = getattr(model, "_orig_mod", model)  # torch.compile
    if adapters := getattr(model, "peft_config", None):
        if prompts := [
            config
            for config in getattr(adapters, "values", list)()
            if getattr(config, "is_prompt_learning", False)
        ]:
            kind = getattr(prompts[0].peft_type, "value", prompts[0].peft_type)
            raise ModelError(
                f"{kind} puts tokens of its own before the prompt, which no span mask covers; "
                "steer the model without that adapter."
            )
        if hasattr(model, "get_base_model"):
            model = model.get_base_model()
    if isinstance(model, PreTrainedModel):
        return model
    kind = type(model).__name__
    if isinstance(getattr(model, "module", None), torch.nn.Module):
        raise ModelError(
            f"{kind} copies or splits its model over devices; give the model in it (model.module), "
            "on one device."
        )
    raise ModelError(
        "steering takes a causal language model of transformers, or what holdfast.load gave, not "
        f"{kind}."
    )


def _per_row(methods: Any, rows: int) -> list[tuple[InPass, ...]]:
    """The methods of each row, all of which act inside a forward pass."""
    if not isinstance(methods, (list, tuple)):
        methods = [methods]
    nested = any(isinstance(row, (list, tuple)) for row in methods)
    if nested and len(methods) != rows:
        raise UsageError(
            f"There are {len(methods)} lists of methods for {rows} rows of the span mask; give one "
            "per row, or one for all."
        )
    if not nested:
        return [_read(methods)] * rows
    return [_read(row if isinstance(row, (list, tuple)) else [row]) for row in methods]


def _read(methods: Sequence[Spelled]) -> tuple[InPass, ...]:
    """The methods, the spelled ones read."""
    read: list[Method] = []
    for given in methods:
        read += parse(given) if isinstance(given, str) else [given]
    for method in read:
        if of_kind([method], Kind.REHEARSED):
            raise UsageError(
                f"{method!r} becomes an attention method once a reply was rehearsed, which a block"
                " cannot do; give the methods that model.rehearse(messages, methods) returns."
            )
        if not in_pass([method]) or of_kind([method], Kind.GATE):
            raise UsageError(
                f"{method!r} does not act inside a forward pass, which is all a block can do; give "
                "the others to holdfast.load(...).generate."
            )
    return in_pass(read)


def _checked_span(span_mask: Tensor) -> Tensor:
    if not isinstance(span_mask, Tensor) or span_mask.dtype != torch.bool or span_mask.ndim != 2:
        seen = (
            f"{span_mask.dtype} {list(span_mask.shape)}"
            if isinstance(span_mask, Tensor)
            else type(span_mask).__name__
        )
        raise UsageError(
            f"A span mask is a bool tensor [batch, token], not {seen}; make it with input_ids's "
            "shape and True on the span."
        )
    empty = (~span_mask.any(1)).nonzero().flatten().tolist()
    if empty or not len(span_mask):
        raise UsageError(
            f"The span mask {list(span_mask.shape)} is empty in row {empty[0] if empty else 0}:"
            " encode_chats marks the system prompt, or emphasis, and a chat with neither has no"
            " span; add a system message, or set True on the tokens to hold on to."
        )
    return span_mask
