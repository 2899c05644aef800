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


def cache_of(fields: Any) -> Any:
    """The cache among the arguments of a model, or in its output: transformers 5.24 renamed it."""
    by_name = dict(fields.items()) if isinstance(fields, Mapping) else {}
    cache = by_name.get("cache")
    return by_name.get("past_key_values") if cache is None else cache


def claim_cache(cache: Any, origin: CacheOrigin | None, name: str) -> bool:
    """Marks a cache as steered by `origin`, or raises a `UsageError`; returns whether it was."""
    if not hasattr(cache, "__dict__"):
        return False
    recorded = cache.__dict__.get(_ORIGIN)
    if recorded is origin:
        return origin is not None
    old = _if_steered(recorded)
    new = _if_steered(origin)
    is_same = old is new or (old is not None and new is not None and old.equals(new))
    if not is_same and cached_tokens(cache):
        old_spec = "no steering" if old is None else old.spec
        new_spec = "no steering" if new is None else new.spec
        if old_spec == new_spec:
            old_spec += " on another span"
        raise UsageError(
            f"The keys in this cache were computed under {old_spec}, and this pass of {name} runs"
            f" under {new_spec}; start with a fresh cache and forward the whole prompt.",
            option="past_key_values",
            value=old_spec,
            allowed=new_spec,
        )
    mark_cache(cache, origin)
    return False


def _if_steered(origin: CacheOrigin | None) -> CacheOrigin | None:
    """The origin, if any of its rows is steered."""
    return origin if origin is not None and any(origin.compiled) else None


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
