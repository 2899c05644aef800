"""Sets of attention heads: which heads an attention method touches."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor

    from holdfast.methods.protocols import ShiftsAttention

HeadSet = frozenset[tuple[int, int]]  # (layer, head), both counted from 0; heads are query heads


def read_heads(spelled: str) -> HeadSet:
    """Reads "3.0/3.5/7.1": layer 3 heads 0 and 5, layer 7 head 1.

    Raises:
        UsageError: `spelled` has another form.
    """
    pairs = [re.fullmatch(r"(\d+)\.(\d+)", pair) for pair in spelled.split("/")]
    if not all(pairs):
        raise UsageError(f"Heads are written LAYER.HEAD/LAYER.HEAD, as in heads=3.0/3.5, not {spelled!r}.")
    return frozenset((int(pair[1]), int(pair[2])) for pair in pairs if pair)


def spell_heads(heads: HeadSet) -> str:
    """The one spelling of a head set, in order of layer and head."""
    return "/".join(f"{layer}.{head}" for layer, head in sorted(heads))


def checked_heads(owner: str, heads: object) -> HeadSet | None:
    """Returns `heads` as a `HeadSet`, or None.

    Raises:
        UsageError: not pairs of whole numbers, or no pair at all (which would silently do nothing).
    """
    if heads is None:
        return None
    try:
        chosen = frozenset((layer, head) for layer, head in heads)  # type: ignore[attr-defined]
        right = all(type(part) is int and part >= 0 for pair in chosen for part in pair)
    except (TypeError, ValueError):
        chosen, right = frozenset(), False
    if not chosen or not right:
        raise UsageError(f"{owner} takes heads as (layer, head) pairs counted from 0, at least one, not {heads!r}.")
    return chosen


def on_layers(methods: Sequence[ShiftsAttention], layers: range, heads: int) -> tuple[ShiftsAttention, ...]:
    """The methods on these layers only, of a model with so many heads per layer; those without heads there fall away."""
    chosen = [
        (method, frozenset(pair for pair in method.heads or itertools.product(layers, range(heads)) if pair[0] in layers)) for method in methods
    ]
    return tuple(replace(method, heads=there) for method, there in chosen if there)


def only_on(heads: HeadSet | None, layer: int, shifted: Tensor, log_odds: Tensor) -> Tensor:
    """Keeps `shifted` on the heads chosen in this layer and `log_odds` on all others; both [batch, head, query]."""
    if heads is None:
        return shifted
    chosen = [head for chosen_layer, head in heads if chosen_layer == layer]
    if not chosen:
        return log_odds
    if max(chosen) >= log_odds.shape[1]:
        raise UsageError(f"Layer {layer} has {log_odds.shape[1]} heads, so there is no head {max(chosen)}.")
    result = log_odds.clone()
    result[:, chosen] = shifted[:, chosen]
    return result
