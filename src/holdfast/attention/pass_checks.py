"""What a steered pass of a block may be, and what is refused in a sentence."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Mapping
from functools import cache as once
from types import CodeType, FrameType
from typing import Any

from torch import Tensor

from holdfast.attention.blocks import Block, Blocks
from holdfast.attention.checks import (
    cached_tokens,
    can_be_noted,
    check_padding,
    refuse_attention_weights,
)
from holdfast.attention.steering import Steering
from holdfast.errors import UsageError


def check_pass(
    blocks: Blocks, config: Any, block: Block, steering: Steering, given: Mapping[str, Any]
) -> int:
    """Refuses a pass that its span mask does not fit, or that asks for what steering leaves out;
    returns how many columns stand in front of its tokens, at least.

    Args:
        blocks, config: of the model.
        block: that the pass belongs to.
        steering: of the pass.
        given: its arguments by name.
    """
    ids = given.get("input_ids")
    ids = given.get("inputs_embeds") if ids is None else ids
    refuse_attention_weights(given)
    if not isinstance(ids, Tensor) or ids.ndim < 2:
        return 0
    tokens, width, cache = ids.shape[1], steering.span.shape[1], given.get("past_key_values")
    noted = cache is not None and can_be_noted(cache)
    goes_on = noted and blocks.computed.get(cache) == block.number
    before = 0 if goes_on and tokens == 1 else cached_tokens(cache)
    mask = given.get("attention_mask")
    mask = mask if isinstance(mask, Tensor) and mask.ndim == 2 else None
    if not (goes_on and (before or tokens == 1)):
        uses = given.get("use_cache")
        uses = getattr(config, "use_cache", True) if uses is None else uses
        _check_width(block, width, tokens, before, bool(uses))
        check_padding(steering, mask)
    block.tokens[threading.get_ident()] = tokens
    if steering.trace and tokens > 1 and mask is not None and mask.shape[1] >= tokens:
        steering.last = _last_tokens(mask[:, -tokens:])
    return width if goes_on and tokens == 1 else before


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


def _last_tokens(mask: Tensor) -> Tensor | None:
    """Per row of an attention mask [row, token], its last token; None where rows end together."""
    if bool(mask[:, -1].all()):
        return None
    return mask.shape[1] - 1 - (mask != 0).flip(1).long().argmax(1)
