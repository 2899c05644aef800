"""Remembers the attention that models had before ours; unsteered passes still use it."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

IMPLEMENTATION = "holdfast"  # our attention's name in transformers
# configurations, which need not be hashable, and the attention that each had before ours
_PLAIN: list[tuple[weakref.ref[Any], str]] = []


@dataclass(frozen=True, eq=False)
class PriorAttention:
    """The attention implementation that a model's configuration had before ours."""

    config: Any
    implementation: str | None  # None if the configuration had not set one


def remember_plain(before: Sequence[PriorAttention]) -> None:
    """Remembers the attention that a model's configurations had before ours."""
    forget_plain(before)
    for prior in before:
        if prior.implementation is not None and prior.implementation != IMPLEMENTATION:
            _PLAIN.append((weakref.ref(prior.config), prior.implementation))


def forget_plain(before: Sequence[PriorAttention]) -> None:
    """Forgets configurations whose attention has been restored."""
    restored = [p.config for p in before if p.implementation not in (None, IMPLEMENTATION)]
    remaining = []
    for reference, name in _PLAIN:
        config = reference()
        if config is not None and not any(config is other for other in restored):
            remaining.append((reference, name))
    _PLAIN[:] = remaining  # in one assignment, as other threads read it


def plain_name(config: object) -> str:
    """Returns the name of the attention that a configuration had before ours; "sdpa" if unknown."""
    names = (name for reference, name in _PLAIN if reference() is config)
    return next(names, "sdpa")


def plain_attention(
    module: torch.nn.Module, mask: object, kwargs: Mapping[str, Any]
) -> Callable[..., tuple[Tensor, Any]] | None:
    """Returns the attention function that a module had before ours, for an unsteered pass.

    Returns None if SDPA gives the same result.
    """
    name = plain_name(getattr(module, "config", None))
    is_additive = isinstance(mask, Tensor) and mask.is_floating_point()
    if name == "sdpa" or (name == "eager" and not (is_additive and kwargs.get("indices") is None)):
        return None
    file = sys.modules[type(module).__module__]
    eager = getattr(file, "eager_attention_forward", sdpa_attention_forward)
    attend: Callable[..., tuple[Tensor, Any]] = ALL_ATTENTION_FUNCTIONS.get_interface(name, eager)
    return attend
