"""Refuses passes that a block of `holdfast.steering` cannot steer."""

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
    """Refuses a pass that should return attention weights."""
    if given.get("output_attentions"):
        raise Unsteerable(
            "A steered pass does not compute attention weights, so it cannot return them for "
            "output_attentions; leave that out, and read the mass with trace=True."
        )


def check_prompt(
    state: PassState, given: Mapping[str, Any], config: Any, before: int, first: bool | None
) -> None:
    """Refuses a pass over a prompt that does not fit the span mask.

    Args:
        state: of the pass, which has not begun.
        given: the arguments of the pass, by name.
        config: the model's text configuration.
        before: the number of tokens that were cached before the block.
        first: whether it is the first pass of a `generate`; None outside of `generate`.

    Raises:
        UsageError: batch, prompt or padding does not fit the mask.
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
    """Refuses prompts [row, token] that differ although they share a row of the span mask."""
    copies = state.steering.copies_of(len(prompts))
    by_prompt = prompts.reshape(-1, copies, *prompts.shape[1:])
    if copies > 1 and not torch.equal(by_prompt, by_prompt[:, :1].expand_as(by_prompt)):
        raise UsageError(
            f"The span mask has one row for every {copies} of the batch's {len(prompts)} rows, but"
            " their prompts differ; give it one row per prompt."
        )


def _check_width(width: int, tokens: int, before: int, caches: bool, first: bool | None) -> None:
    """Checks that a prompt is as long as its mask; without a cache, a reply may follow it."""
    seen = tokens + before
    sees = f"The span mask has {width} tokens, but this pass sees {seen}"
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
    # a later pass of `generate` may contain the reply too: without a cache, and in Phi-3, which
    # recomputes all keys when its rotary factors change
    if seen > width and (first or (caches and first is None)):
        cure = ", or pass use_cache=False if a reply follows the prompt" if caches else ""
        raise UsageError(
            f"The span mask has {width} tokens, but the prompt has {seen}; give a mask of the whole"
            f" prompt{cure}.",
            option="span_mask",
            value=width,
            allowed=seen,
        )


def check_padding(state: PassState, mask: object) -> None:
    """Refuses a span on tokens that an attention mask [row, token] hides.

    A mask of any other shape is not checked.

    Raises:
        UsageError: names the first such token.
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
            f"The span mask is True in row {row} at token {column}, but attention_mask hides that "
            "token as padding; pad both on the same side, as holdfast.encode_chats does.",
            option="span_mask",
            value=(row, column),
        )


def check_lengths(rotary: RotaryLengths, given: Mapping[str, Any], name: str) -> None:
    """Refuses a pass whose rows need different rotary factors.

    transformers would give all of them the factors of the longest row.
    """
    mask = given.get("attention_mask")
    if rotary.switch is None or not isinstance(mask, Tensor) or mask.ndim != 2 or len(mask) == 1:
        return
    lengths = sorted((mask != 0).sum(1).tolist())
    if lengths[-1] not in rotary.like(lengths[0]):
        raise Unsteerable(
            f"The rows of this pass have {lengths[0]} to {lengths[-1]} tokens, but the rotary"
            f" factors of {name} ({rotary.name}) change beyond {rotary.switch}, and transformers"
            " would give every row the factors of the longest; run these rows one at a time, or"
            " together with generate_batch of a holdfast model."
        )


def refuse_checkpointing(model: torch.nn.Module) -> None:
    """Refuses activation checkpointing, which would repeat passes after the block was left."""
    if not (model.training and torch.is_grad_enabled()):
        return
    if getattr(model, "is_activation_checkpointing", False):
        raise Unsteerable(
            f"{type(model).__name__} uses activation checkpointing, which repeats passes outside "
            "the block; call activation_checkpointing_disable() to steer it."
        )
