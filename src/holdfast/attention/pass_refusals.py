"""Refusals of passes that a block of `holdfast.steering` cannot steer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from holdfast.attention.passes import PassState
from holdfast.attention.rotary import RotaryLengths
from holdfast.errors import Unsteerable, UsageError
from holdfast.states.edits import tokens_in


def refuse_weights(given: Mapping[str, Any]) -> None:
    """Refuses a pass that is to return attention weights."""
    if given.get("output_attentions"):
        raise Unsteerable(
            "A steered pass makes no attention weights for output_attentions; leave it out, and "
            "read the mass with trace=True."
        )


def check_prompt(
    state: PassState, given: Mapping[str, Any], config: Any, before: int, first: bool | None
) -> None:
    """Refuses a pass over a prompt that does not fit the span mask.

    Args:
        state: of the pass, which has not begun.
        given: its arguments, by name.
        config: the model's text configuration.
        before: the tokens that were cached before the block.
        first: whether it is the first of a `generate`; None outside of one.

    Raises:
        UsageError: batch, prompt or padding do not fit the mask.
    """
    if (ids := tokens_in(given)) is None:
        return
    width = state.steering.span.shape[1]
    caches = given.get("use_cache")
    caches = getattr(config, "use_cache", True) if caches is None else caches
    _check_width(width, ids.shape[1], before, bool(caches), first)
    _check_copies(state, ids[:, :width])
    check_padding(state, given.get("attention_mask"))


def _check_copies(state: PassState, prompts: Tensor) -> None:
    """Refuses rows that share a row of the span mask though their prompts [row, token] differ."""
    copies = state.steering.copies_of(len(prompts))
    by_prompt = prompts.reshape(-1, copies, *prompts.shape[1:])
    if copies > 1 and not torch.equal(by_prompt, by_prompt[:, :1].expand_as(by_prompt)):
        raise UsageError(
            f"The span mask has a row for every {copies} of the batch's {len(prompts)} rows, whose"
            " prompts differ; give it one row per prompt."
        )


def _check_width(width: int, tokens: int, before: int, caches: bool, first: bool | None) -> None:
    """Checks that a prompt is as long as its mask; without a cache, a given reply may follow."""
    seen = tokens + before
    sees = f"The span mask has {width} tokens and this pass sees {seen}"
    if seen < width:
        raise UsageError(
            f"{sees}; give a mask of the whole prompt, and forward it at once.",
            option="span_mask",
            value=width,
            allowed=seen,
        )
    if seen > width and before:
        raise UsageError(
            f"{sees}, {before} of them cached before the block; give a mask of all of them.",
            option="span_mask",
            value=width,
            allowed=seen,
        )
    # a later pass of a `generate` without a cache has the reply after the prompt: Phi-3's computes
    # all keys anew where its rotary factors change
    if seen > width and (first or (caches and first is None)):
        cure = ", or use_cache=False where what follows the mask is a given reply" if caches else ""
        raise UsageError(
            f"The span mask has {width} tokens and the prompt {seen}; give a mask of the whole "
            f"prompt{cure}.",
            option="span_mask",
            value=width,
            allowed=seen,
        )


def check_padding(state: PassState, mask: object) -> None:
    """Refuses a span on tokens that an attention mask [row, token] hides; names the first row.

    A mask of any other form is not read.
    """
    span = state.steering.span
    if not isinstance(mask, Tensor) or mask.ndim != 2:
        return
    if mask.shape[0] % span.shape[0] or mask.shape[1] < span.shape[1]:
        return
    span = span.repeat_interleave(mask.shape[0] // span.shape[0], 0).to(mask.device)
    hidden = (span & (mask[:, : span.shape[1]] == 0)).nonzero()
    if len(hidden):
        row, column = hidden[0].tolist()
        raise UsageError(
            f"The span mask is True in row {row} at token {column}, which attention_mask hides as "
            "padding; pad both on the same side, as holdfast.encode_chats does.",
            option="span_mask",
            value=(row, column),
        )


def check_lengths(rotary: RotaryLengths, given: Mapping[str, Any], name: str) -> None:
    """Refuses a pass whose rows need different rotary factors, since they would all get those of
    the longest.
    """
    mask = given.get("attention_mask")
    if rotary.switch is None or not isinstance(mask, Tensor) or mask.ndim != 2 or len(mask) == 1:
        return
    lengths = sorted((mask != 0).sum(1).tolist())
    if lengths[-1] not in rotary.like(lengths[0]):
        raise Unsteerable(
            f"The rows of this pass have {lengths[0]} to {lengths[-1]} tokens, and the rotary"
            f" factors of {name} ({rotary.name}) change beyond {rotary.switch}, where transformers"
            " gives every row those of the longest; run these rows one at a time, or together"
            " with generate_batch of a holdfast model."
        )


def refuse_checkpointing(model: torch.nn.Module) -> None:
    """Refuses activation checkpointing, which repeats passes after the block was left."""
    if not (model.training and torch.is_grad_enabled()):
        return
    if getattr(model, "is_activation_checkpointing", False):
        raise Unsteerable(
            f"{type(model).__name__} computes passes again for their gradients, outside the block; "
            "call activation_checkpointing_disable() to steer it."
        )
