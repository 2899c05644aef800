"""Sets of attention heads: which heads an attention method touches."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast import knobs
from holdfast.errors import KnobOutOfRange, UsageError
from holdfast.files import write_whole

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from holdfast.methods.protocols import ShiftsAttention

Head = tuple[int, int]  # (layer, head), both counted from 0; heads are query heads
MADE_FOR = "made_for"  # the one key of a head file that is no layer


@dataclass(frozen=True)
class Shape:
    """What a head set or a profile was made for.

    Args:
        layers, heads: of the model.
        model, fingerprint: of it, for people: a set made on a base model serves its fine-tuned
            children, which have other fingerprints.
    """

    layers: int
    heads: int
    model: str = ""
    fingerprint: str = ""


class HeadSet(frozenset[Head]):
    """A frozenset of (layer, head) pairs that may know where it comes from; as a set it equals any
    other with the same pairs.

    Args:
        pairs: (layer, head), both counted from 0.
        made_for: the shape of the model it was made for, or None.
        file: where it was read, or "".
    """

    made_for: Shape | None
    file: str

    def __new__(
        cls, pairs: Iterable[Head] = (), made_for: Shape | None = None, file: str = ""
    ) -> HeadSet:
        made = super().__new__(cls, pairs)
        made.made_for, made.file = made_for, file
        return made

    def __reduce__(self):
        return HeadSet, (tuple(self), self.made_for, self.file)

    def intersection(self, *others: Iterable[Head]) -> HeadSet:
        """The heads in all of them."""
        return HeadSet(super().intersection(*others), self.made_for)

    def union(self, *others: Iterable[Head]) -> HeadSet:
        """The heads in any of them."""
        return HeadSet(super().union(*others), self.made_for)


@dataclass(frozen=True)
class Ranking:
    """All heads of a model by what steering each alone gives on one task, the best first (R of
    Algorithm 1, Zhang et al. 2024).

    Args:
        heads: (layer, head) pairs.
        made_for: the model.
    """

    heads: tuple[Head, ...]
    made_for: Shape | None = None

    def top(self, k: int) -> HeadSet:
        """The best k heads.

        Raises:
            KnobOutOfRange: `k` is not from 1 to the number of heads.
        """
        if knobs.whole_number("a ranking", "k", k, 1) > len(self.heads):
            raise KnobOutOfRange(
                f"a ranking of {len(self.heads)} heads takes k from 1 to {len(self.heads)}, not"
                f" {k}."
            )
        return HeadSet(self.heads[:k], self.made_for)


def intersection(rankings: Sequence[Ranking], k: int) -> HeadSet:
    """The heads among the best k of every task: Algorithm 1's choice for several tasks.

    Raises:
        UsageError: there are none; the message says which k gives how many. Or the rankings are of
            models of different shapes.
    """
    _check_alike(rankings)
    first, *others = (ranking.top(k) for ranking in rankings)
    if shared := first.intersection(*others):
        return shared
    sizes = {}
    for larger in range(k + 1, min(len(ranking.heads) for ranking in rankings) + 1):
        count = len(frozenset.intersection(*(ranking.top(larger) for ranking in rankings)))
        if count and count not in sizes.values():
            sizes[larger] = count
    told = ", ".join(f"k={larger} gives {count}" for larger, count in list(sizes.items())[:3])
    cure = (
        f"a larger k shares some: {told}"
        if told
        else "these rankings have no head in common, so take their union"
    )
    raise UsageError(
        f"The best {k} heads of the {len(rankings)} tasks have none in common; {cure}."
    )


def union(rankings: Sequence[Ranking], k: int) -> HeadSet:
    """The heads among the best k of any task.

    Raises:
        UsageError: the rankings are of models of different shapes.
    """
    _check_alike(rankings)
    first, *others = (ranking.top(k) for ranking in rankings)
    return first.union(*others)


def _check_alike(rankings: Sequence[Ranking]) -> None:
    if not rankings:
        raise UsageError("There is no ranking of heads to choose from ([]); give at least one.")
    shapes = {
        (ranking.made_for.layers, ranking.made_for.heads)
        for ranking in rankings
        if ranking.made_for
    }
    if len(shapes) > 1:
        one, other = sorted(shapes)[:2]
        raise UsageError(
            f"The rankings are of models of {one[0]} layers x {one[1]} heads and of {other[0]} x"
            f" {other[1]}; profile one model."
        )


def read_heads(spelled: str) -> HeadSet:
    """Reads "3.0/3.5/7.1" (layer 3 heads 0 and 5, layer 7 head 1), or a JSON file: [[3, 0], [3, 5]]
    or {"3": [0, 5]}.

    A file may say beside its layers what model it was made for, as `write_heads` does.

    Raises:
        UsageError: `spelled` has another form; the file cannot be read, or has a head twice, a
            negative or a too large one.
    """
    if spelled.endswith(".json"):
        return _read_file(Path(spelled))
    pairs = [re.fullmatch(r"(\d+)\.(\d+)", pair) for pair in spelled.split("/")]
    if not all(pairs):
        raise UsageError(
            "Heads are written LAYER.HEAD/LAYER.HEAD, as in heads=3.0/3.5, or name a JSON file,"
            f" not {spelled!r}."
        )
    return HeadSet((int(pair[1]), int(pair[2])) for pair in pairs if pair)


def write_heads(path: Path | str, heads: Iterable[Head], made_for: Shape | None = None) -> None:
    """Writes the published form, {"layer": [heads]}, and with `made_for` the model beside the
    layers.

    Raises:
        UsageError: no heads, or no pairs of whole numbers.
        RecordsError: the file cannot be written.
    """
    pairs = checked_heads(str(path), heads)
    made_for = made_for or getattr(heads, "made_for", None)
    listed: dict[str, object] = {
        str(layer): [head for _, head in some]
        for layer, some in itertools.groupby(sorted(pairs or ()), lambda pair: pair[0])
    }
    if made_for:
        listed[MADE_FOR] = asdict(made_for)
    write_whole(path, json.dumps(listed, indent=1) + "\n")


def _read_file(path: Path) -> HeadSet:
    made_for = None
    try:
        listed = json.loads(
            path.read_text(encoding="utf-8"), object_pairs_hook=lambda pairs: _once(path, pairs)
        )
        if isinstance(listed, dict):
            if (told := listed.pop(MADE_FOR, None)) is not None:
                made_for = _read_shape(told)
            listed = [(int(layer), head) for layer, heads in listed.items() for head in heads]
        pairs = [(layer, head) for layer, head in listed]
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(
            f"Cannot read heads from {str(path)!r} ({error}); give [[layer, head], ...] or"
            ' {"layer": [head, ...]}.'
        ) from None
    seen: set[Head] = set()
    for pair in pairs:
        if any(type(part) is not int or part < 0 for part in pair):
            raise UsageError(
                f"{str(path)!r} names head {pair[1]!r} in layer {pair[0]!r}; both are whole numbers"
                " counted from 0."
            )
        if pair in seen:
            raise UsageError(
                f"{str(path)!r} names head {pair[1]} in layer {pair[0]} twice; take one of them"
                " out."
            )
        if made_for and (pair[0] >= made_for.layers or pair[1] >= made_for.heads):
            raise UsageError(
                f"{str(path)!r} names head {pair[1]} in layer {pair[0]}, and the model it was made"
                f" for has {made_for.layers} layers of {made_for.heads} heads, counted from 0;"
                " profile the model again."
            )
        seen.add(pair)
    if not seen:
        raise UsageError(
            f'{str(path)!r} names no heads; give [[layer, head], ...] or {{"layer": [head, ...]}}.'
        )
    return HeadSet(seen, made_for, str(path))


def _read_shape(told: dict) -> Shape:
    if not isinstance(told, dict) or not {"layers", "heads"} <= told.keys():
        raise ValueError(f"{MADE_FOR} lacks layers or heads")
    made_for = Shape(
        told["layers"], told["heads"], str(told.get("model", "")), str(told.get("fingerprint", ""))
    )
    if any(type(number) is not int or number < 1 for number in (made_for.layers, made_for.heads)):
        raise ValueError(f"{MADE_FOR} gives {made_for.layers!r} layers of {made_for.heads!r} heads")
    return made_for


def _once(path: Path, pairs: list[tuple[str, object]]) -> dict:
    names = [name for name, _ in pairs]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"{str(path)!r} names layer {twice} twice; put its heads into one list.")
    return dict(pairs)


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
        chosen = HeadSet(
            ((layer, head) for layer, head in heads),
            getattr(heads, "made_for", None),
            getattr(heads, "file", ""),
        )  # type: ignore[attr-defined]
        right = all(type(part) is int and part >= 0 for pair in chosen for part in pair)
    except (TypeError, ValueError):
        chosen, right = HeadSet(), False
    if not chosen or not right:
        raise UsageError(
            f"{owner} takes heads as (layer, head) pairs counted from 0, at least one, not"
            f" {heads!r}."
        )
    return chosen


def on_layers(
    methods: Sequence[ShiftsAttention], layers: range, heads: int
) -> tuple[ShiftsAttention, ...]:
    """The methods on these layers only, of a model with so many heads per layer; those without
    heads there fall away.
    """
    chosen = [
        (
            method,
            frozenset(
                pair
                for pair in method.heads or itertools.product(layers, range(heads))
                if pair[0] in layers
            ),
        )
        for method in methods
    ]
    return tuple(replace(method, heads=there) for method, there in chosen if there)


def only_on(heads: HeadSet | None, layer: int, shifted: Tensor, log_odds: Tensor) -> Tensor:
    """Keeps `shifted` on the heads chosen in this layer and `log_odds` on all others; both [batch,
    head, query].
    """
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
