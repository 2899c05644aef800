"""Records under which steering a cache was filled, and refuses caches of another steering."""

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
    """The steering under which a cache was filled; all caches of a block share one origin."""

    methods_by_row: tuple[CompiledMethods, ...]  # by row of the span mask
    span: Tensor  # bool [row, token]
    spec: str  # the methods as a spec string, for messages

    def __deepcopy__(self, memo: dict[int, Any]) -> CacheOrigin:
        return self  # the keys in a copy of a cache have the same origin

    def equals(self, other: CacheOrigin) -> bool:
        """Whether keys of the two origins are interchangeable."""
        if self.methods_by_row != other.methods_by_row or len(self.span) != len(other.span):
            return False
        width = min(self.span.shape[1], other.span.shape[1])
        # under some methods, the end of the prompt is part of the steering
        by_width = any(row.states or row.span_includes_generated for row in self.methods_by_row)
        if by_width and self.span.shape != other.span.shape:
            return False
        ends_there = not any(origin.span[:, width:].any() for origin in (self, other))
        return ends_there and torch.equal(self.span[:, :width], other.span[:, :width])


def cache_of(fields: Any) -> Any:
    """Returns the cache from a model's arguments or output, by its old or new name; None if absent.

    transformers 5.24 renamed it.
    """
    by_name = dict(fields.items()) if isinstance(fields, Mapping) else {}
    cache = by_name.get("cache")
    return by_name.get("past_key_values") if cache is None else cache


def is_filled_under(cache: Any, origin: CacheOrigin | None) -> bool:
    """Whether earlier passes of this steered block have filled a cache."""
    return origin is not None and _recorded_origin(cache) is origin


def claim_cache(cache: Any, origin: CacheOrigin | None, name: str) -> None:
    """Marks a cache as filled under `origin`.

    Args:
        cache: the cache of a pass; may be None.
        origin: the steering of the pass; None if it is not steered.
        name: the model's name, for messages.

    Raises:
        UsageError: the cache has keys that were computed under another steering.
    """
    recorded = _recorded_origin(cache)
    if recorded is origin or not hasattr(cache, "__dict__"):
        return
    old = _if_steered(recorded)
    new = _if_steered(origin)
    is_same = old is new or (old is not None and new is not None and old.equals(new))
    if not is_same and cached_tokens(cache):
        old_spec = "no steering" if old is None else old.spec
        new_spec = "no steering" if new is None else new.spec
        if old_spec == new_spec:
            old_spec = f"{old_spec} on another span"
        raise UsageError(
            f"The keys in this cache were computed under {old_spec}, but this pass of {name} runs"
            f" under {new_spec}; start with a new cache and forward the whole prompt.",
            option="past_key_values",
            value=old_spec,
            allowed=new_spec,
        )
    mark_cache(cache, origin)


def _recorded_origin(cache: Any) -> CacheOrigin | None:
    origin: CacheOrigin | None = getattr(cache, "__dict__", {}).get(_ORIGIN)
    return origin


def _if_steered(origin: CacheOrigin | None) -> CacheOrigin | None:
    """Returns the origin if any of its rows is steered, otherwise None."""
    return origin if origin is not None and any(origin.methods_by_row) else None


def mark_cache(cache: Any, origin: CacheOrigin | None) -> None:
    """Records under which steering a cache was filled; None removes the record."""
    if origin is None:
        getattr(cache, "__dict__", {}).pop(_ORIGIN, None)
    elif hasattr(cache, "__dict__"):
        cache.__dict__[_ORIGIN] = origin


def cached_tokens(cache: Any) -> int:
    """Returns the number of tokens in a cache; 0 if it does not report one."""
    try:
        return int(cache.get_seq_length())
    except (AttributeError, TypeError, ValueError):
        return 0
