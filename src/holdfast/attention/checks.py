"""What a steered pass of a block may be, and what is refused in a sentence."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Mapping
from functools import cache as once
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from holdfast.attention.steering import Steering
from holdfast.errors import ModelError, UsageError

if TYPE_CHECKING:
    from holdfast.attention.blocks import Block
    from holdfast.attention.open_model import OpenModel


def cached_tokens(cache: Any) -> int:
    """How many tokens a cache holds; 0 where it does not say."""
    try:
        return int(cache.get_seq_length())
    except (AttributeError, TypeError, ValueError):
        return 0


def can_be_noted(cache: object) -> bool:
    return type(cache).__hash__ is not None and hasattr(cache, "__weakref__")


def refuse_checkpointing(name: str, module: torch.nn.Module) -> None:
    if not (module.training and torch.is_grad_enabled()):
        return
    if getattr(module, "is_activation_checkpointing", False):
        raise ModelError(
            f"{name} computes passes again for their gradients, outside the block; call "
            "activation_checkpointing_disable() to steer it."
        )


def check_pass(model: OpenModel, block: Block, steering: Steering, given: Mapping[str, Any]) -> int:
    """Refuses a pass that its span mask does not fit, or that asks for what steering leaves out;
    returns how many columns stand in front of its tokens, at least.
    """
    ids = given.get("input_ids")
    ids = given.get("inputs_embeds") if ids is None else ids
    refuse_attention_weights(given)
    if not isinstance(ids, Tensor) or ids.ndim < 2:
        return 0
    tokens, width, cache = ids.shape[1], steering.span.shape[1], given.get("past_key_values")
    noted = cache is not None and can_be_noted(cache)
    goes_on = noted and model.blocks.computed.get(cache) == block.number
    before = 0 if goes_on and tokens == 1 else cached_tokens(cache)
    mask = given.get("attention_mask")
    mask = mask if isinstance(mask, Tensor) and mask.ndim == 2 else None
    if not (goes_on and (before or tokens == 1)):
        uses = given.get("use_cache")
        uses = getattr(model.config, "use_cache", True) if uses is None else uses
        _check_width(block, width, tokens, before, bool(uses))
        check_padding(steering, mask)
    block.tokens[threading.get_ident()] = tokens
    if steering.trace and tokens > 1 and mask is not None and mask.shape[1] >= tokens:
        steering.last = _last_tokens(mask[:, -tokens:])
    return width if goes_on and tokens == 1 else before


def refuse_attention_weights(given: Mapping[str, Any]) -> None:
    if given.get("output_attentions"):
        raise ModelError(
            "A steered pass makes no attention weights for output_attentions; leave it out, and "
            "read the mass with trace=True."
        )


def _check_width(block: Block, width: int, tokens: int, before: int, caches: bool) -> None:
    """A prompt is as long as its span mask; without a cache, a given reply may stand behind it."""
    seen = tokens + before
    if seen < width:
        raise UsageError(
            f"The span mask has {width} tokens and this pass sees {seen}; give a mask of the whole "
            "prompt, and forward it at once."
        )
    if seen == width:
        return
    if before:
        raise UsageError(
            f"The span mask has {width} tokens and this pass sees {seen}, {before} of them cached "
            "before the block; give a mask of all of them."
        )
    # Without a cache, `generate` forwards the whole each time.
    grown = block.tokens.get(threading.get_ident()) == tokens - 1
    if caches or (not grown and _generates()):
        cure = ", or use_cache=False where what follows the mask is a given reply" if caches else ""
        raise UsageError(
            f"The span mask has {width} tokens and the prompt {seen}; give a mask of the whole "
            f"prompt{cure}."
        )


def _generates() -> bool:
    """Whether this pass is one of transformers' `generate`."""
    frame: FrameType | None = sys._getframe(1)
    code = _code_of_generate()
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame is not None


@once
def _code_of_generate() -> CodeType:
    from transformers import GenerationMixin

    code: CodeType = inspect.unwrap(GenerationMixin.generate).__code__
    return code


def check_padding(steering: Steering, mask: Tensor | None) -> None:
    """Refuses a span on tokens that an attention mask [row, token] hides.

    Raises:
        UsageError: names the first such row.
    """
    span = steering.span
    if mask is None or mask.ndim != 2 or mask.shape[0] % span.shape[0]:
        return
    if mask.shape[1] < span.shape[1]:
        return
    span = span.repeat_interleave(mask.shape[0] // span.shape[0], 0).to(mask.device)
    hidden = (span & (mask[:, : span.shape[1]] == 0)).nonzero()
    if len(hidden):
        row, column = hidden[0].tolist()
        raise UsageError(
            f"The span mask is True in row {row} at token {column}, which attention_mask hides as "
            "padding; pad both on the same side, as holdfast.encode_chats does."
        )


def _last_tokens(mask: Tensor) -> Tensor | None:
    """Per row of an attention mask [row, token], its last token; None where rows end together."""
    if bool(mask[:, -1].all()):
        return None
    return mask.shape[1] - 1 - (mask != 0).flip(1).long().argmax(1)
