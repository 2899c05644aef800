"""Sets of attention heads: which heads an attention method touches."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import UsageError

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from holdfast.methods.protocols import ShiftsAttention

HeadSet = frozenset[tuple[int, int]]  # (layer, head), both counted from 0; heads are query heads


def read_heads(spelled: str) -> HeadSet:
    """Reads "3.0/3.5/7.1" (layer 3 heads 0 and 5, layer 7 head 1), or a JSON file: [[3, 0], [3, 5]] or {"3": [0, 5]}.

    Raises:
        UsageError: `spelled` has another form, or the file cannot be read.
    """
    if spelled.endswith(".json"):
        return _read_file(Path(spelled))
    pairs = [re.fullmatch(r"(\d+)\.(\d+)", pair) for pair in spelled.split("/")]
    if not all(pairs):
        raise UsageError(f"Heads are written LAYER.HEAD/LAYER.HEAD, as in heads=3.0/3.5, or name a JSON file, not {spelled!r}.")
    return frozenset((int(pair[1]), int(pair[2])) for pair in pairs if pair)


def _read_file(path: Path) -> HeadSet:
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(listed, dict):
            listed = [(int(layer), head) for layer, heads in listed.items() for head in heads]
        heads = checked_heads(str(path), [tuple(pair) for pair in listed])
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"Cannot read heads from {str(path)!r} ({error}); give [[layer, head], ...] or {{\"layer\": [head, ...]}}.") from None
    assert heads is not None
    return heads


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
    chosen = mask_of(heads, layer, log_odds.shape[1], log_odds.device)
    return log_odds if chosen is None else shifted.where(chosen, log_odds)


@lru_cache(maxsize=4096)
def mask_of(heads: HeadSet, layer: int, count: int, device: torch.device) -> Tensor | None:
    """Bool [head, 1], True on the heads chosen in this layer; None if there are none."""
    import torch

    chosen = [head for chosen_layer, head in heads if chosen_layer == layer]
    if not chosen:
        return None
    if max(chosen) >= count:
        raise UsageError(f"Layer {layer} has {count} heads, so there is no head {max(chosen)}.")
    with torch.inference_mode(False):  # it is kept for passes with gradients too
        mask = torch.zeros(count, 1, dtype=torch.bool, device=device)
        mask[chosen] = True
    return mask
