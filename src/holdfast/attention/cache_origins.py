"""The steering that the keys in a cache were computed under; caches under another are refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from holdfast.errors import UsageError
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
        by_width = any(row.states or row.span_includes_generated for row in self.compiled)
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
