"""Refusals: passes that a block cannot steer, and caches whose keys were steered otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from holdfast.attention.passes import PassState
from holdfast.attention.rotary import RotaryLengths
from holdfast.errors import ModelError, UsageError
from holdfast.methods.compiled import CompiledMethods

_ORIGIN = "_holdfast_origin"  # the attribute of a cache with its `CacheOrigin`


@dataclass(frozen=True, eq=False)
class CacheOrigin:
    """The steering that the keys in a cache were computed under; caches of a block share one."""

    compiled: tuple[CompiledMethods, ...]  # of each row of the span mask
    span: Tensor  # bool [row, token]
    spec: str  # the methods as messages name them

    def __deepcopy__(self, memo: dict[int, Any]) -> CacheOrigin:
        return self  # the keys in a copy of a cache have the same origin

    def equals(self, other: CacheOrigin) -> bool:
        """Whether keys of the two are interchangeable."""
        if self.compiled != other.compiled or len(self.span) != len(other.span):
            return False
        width = min(self.span.shape[1], other.span.shape[1])
        # under some methods, where the prompt ends is part of the steering
        by_width = any(one.states or one.span_includes_generated for one in self.compiled)
        if by_width and self.span.shape != other.span.shape:
            return False
        beyond = [origin.span[:, width:].any() for origin in (self, other)]
        return torch.equal(self.span[:, :width], other.span[:, :width]) and not any(beyond)


def cache_of(given: Any) -> Any:
    """The cache among the arguments of a model, or in its output: transformers 5.24 renamed it."""
    named = dict(given.items()) if isinstance(given, Mapping) else {}
    cache = named.get("cache")
    return named.get("past_key_values") if cache is None else cache


def claim_cache(cache: Any, origin: CacheOrigin | None, name: str) -> bool:
    """Marks a cache as steered by `origin`, or raises a `UsageError`; returns whether it was."""
    if not hasattr(cache, "__dict__"):
        return False
    before = cache.__dict__.get(_ORIGIN)
    if before is origin:
        return origin is not None
    old, new = (mark if mark and any(mark.compiled) else None for mark in (before, origin))
    same = old is new or (old is not None and new is not None and old.equals(new))
    if not same and cached_tokens(cache):
        was, now = (mark.spec if mark else "no steering" for mark in (old, new))
        if was == now:
            was += " on another span"
        raise UsageError(
            f"The keys in this cache were computed under {was}, and this pass of {name} runs under "
            f"{now}; start with a fresh cache and forward the whole prompt.",
            option="past_key_values",
            value=was,
            allowed=now,
        )
    mark_cache(cache, origin)
    return False


def mark_cache(cache: Any, origin: CacheOrigin | None) -> None:
    """Records the steering that the keys in a cache were computed under."""
    if origin is None:
        getattr(cache, "__dict__", {}).pop(_ORIGIN, None)
    elif hasattr(cache, "__dict__"):
        cache.__dict__[_ORIGIN] = origin


def cached_tokens(cache: Any) -> int:
    """The number of tokens in a cache; 0 if it does not report one."""
    try:
        return int(cache.get_seq_length())
    except (AttributeError, TypeError, ValueError):
        return 0


def check_pass(
    state: PassState, given: Mapping[str, Any], config: Any, *, continues: bool, first: bool | None
) -> int:
    """Refuses a pass that does not fit the span mask; returns the number of columns before it.
    `continues`: its cache was filled in this block; `first`: it is the first of a `generate`.
    """
    ids = given.get("input_ids")
    ids = given.get("inputs_embeds") if ids is None else ids
    if given.get("output_attentions"):
        raise ModelError(
            "A steered pass makes no attention weights for output_attentions; leave it out, and "
            "read the mass with trace=True."
        )
    if not isinstance(ids, Tensor) or ids.ndim < 2:
        return 0
    tokens, width = ids.shape[1], state.steering.span.shape[1]
    step = continues and tokens == 1  # does not query the cache, which may wait for the device
    before = 0 if step else cached_tokens(cache_of(given))
    mask = given.get("attention_mask")
    mask = mask if isinstance(mask, Tensor) and mask.ndim == 2 else None
    if not step and not (continues and before):
        caches = given.get("use_cache")
        caches = getattr(config, "use_cache", True) if caches is None else caches
        _check_width(width, tokens, before, bool(caches), first)
        _check_copies(state, ids[:, :width])
        check_padding(state, mask)
    if state.steering.trace and tokens > 1 and mask is not None and mask.shape[1] >= tokens:
        state.last = _last_tokens(mask[:, -tokens:])
    return width if step else before


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


def check_padding(state: PassState, mask: Tensor | None) -> None:
    """Refuses a span on tokens that an attention mask [row, token] hides; names the first row."""
    span = state.steering.span
    if mask is None or mask.ndim != 2:
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
        raise ModelError(
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
        raise ModelError(
            f"{type(model).__name__} computes passes again for their gradients, outside the block; "
            "call activation_checkpointing_disable() to steer it."
        )


def _last_tokens(mask: Tensor) -> Tensor | None:
    """The last token of each row of an attention mask [row, token]; None if all end together."""
    if bool(mask[:, -1].all()):
        return None
    return mask.shape[1] - 1 - (mask != 0).flip(1).long().argmax(1)
