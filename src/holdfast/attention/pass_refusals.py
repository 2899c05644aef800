"""Refuses passes that a block of `holdfast.steering` cannot steer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from holdfast.attention.batch_steering import BatchSteering
from holdfast.attention.rotary import RotaryLengths
from holdfast.errors import Unsteerable, UsageError
from holdfast.states.edits import tokens_in


def refuse_weight_output(arguments: Mapping[str, Any]) -> None:
    """Refuses a pass that should return attention weights."""
    if arguments.get("output_attentions"):
        raise Unsteerable(
            "A steered pass does not compute attention weights, so it cannot return them for "
            "output_attentions; leave that out, and read the mass with trace=True."
        )


def refuse_other_prompt(
    steering: BatchSteering,
    arguments: Mapping[str, Any],
    config: Any,
    num_cached: int,
    *,
    is_first: bool | None,
) -> None:
    """Refuses a pass over a prompt that does not fit the span mask.

    Args:
        arguments: of the pass, by name.
        config: the model's text configuration.
        num_cached: the number of tokens that were cached before the block.
        is_first: whether it is the first pass of a `generate`; None outside of `generate`.

    Raises:
        UsageError: batch, prompt or padding does not fit the mask.
    """
    if (ids := tokens_in(arguments)) is None:
        return
    use_cache = arguments.get("use_cache")
    use_cache = getattr(config, "use_cache", True) if use_cache is None else use_cache
    width = steering.span.shape[1]
    _refuse_other_width(
        width, ids.shape[1], num_cached, use_cache=bool(use_cache), is_first=is_first
    )
    _refuse_unequal_copies(steering, ids[:, :width])
    refuse_padded_span(steering, arguments.get("attention_mask"))


def _refuse_other_width(
    width: int, tokens: int, num_cached: int, *, use_cache: bool, is_first: bool | None
) -> None:
    """Refuses a prompt that is not as long as its mask; without a cache, a reply may follow it."""
    seen = tokens + num_cached
    sees = f"The span mask has {width} tokens, but this pass sees {seen}"
    if seen < width:
        raise UsageError(
            f"{sees}; give a mask of the whole prompt, and forward it at once.",
            option="span_mask",
            value=width,
            allowed=seen,
        )
    if seen > width and num_cached:
        raise UsageError(
            f"{sees}, {num_cached} of them cached before the block; give a mask of all of them.",
            option="span_mask",
            value=width,
            allowed=seen,
        )
    # a later pass of `generate` may contain the reply too: without a cache, and in Phi-3, which
    # recomputes all keys when its rotary factors change
    has_only_prompt = is_first or (is_first is None and use_cache)
    if seen > width and has_only_prompt:
        cure = ", or pass use_cache=False if a reply follows the prompt" if use_cache else ""
        raise UsageError(
            f"The span mask has {width} tokens, but the prompt has {seen}; give a mask of the whole"
            f" prompt{cure}.",
            option="span_mask",
            value=width,
            allowed=seen,
        )


def _refuse_unequal_copies(steering: BatchSteering, prompts: Tensor) -> None:
    """Refuses prompts [row, token] that differ although they share a row of the span mask."""
    copies = steering.copies_of(len(prompts))
    by_prompt = prompts.reshape(-1, copies, *prompts.shape[1:])
    if copies > 1 and not torch.equal(by_prompt, by_prompt[:, :1].expand_as(by_prompt)):
        raise UsageError(
            f"The span mask has one row for every {copies} of the batch's {len(prompts)} rows, but"
            " their prompts differ; give it one row per prompt."
        )


def refuse_padded_span(steering: BatchSteering, mask: object) -> None:
    """Refuses a span on tokens that an attention mask [row, token] hides.

    A mask of any other shape is not checked.

    Raises:
        UsageError: names the first such token.
    """
    span = steering.span
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


def refuse_mixed_lengths(rotary: RotaryLengths, arguments: Mapping[str, Any], name: str) -> None:
    """Refuses a pass whose rows need different rotary factors.

    transformers would give all of them the factors of the longest row.

    Args:
        name: of the model, for the message.
    """
    mask = arguments.get("attention_mask")
    if rotary.switch is None or not isinstance(mask, Tensor) or mask.ndim != 2 or len(mask) == 1:
        return
    lengths = sorted((mask != 0).sum(1).tolist())
    if lengths[-1] not in rotary.lengths_like(lengths[0]):
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
