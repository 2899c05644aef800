"""The steering table: what rows of methods come to, three numbers per row, layer and head."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import torch
from torch import Tensor

from holdfast.errors import UsageError
from holdfast.methods.protocols import ShiftsAttention
from holdfast.methods.table import TableEntry

NEUTRAL = TableEntry()


@dataclass(frozen=True)
class TableRow:
    """What the methods of one row come to.

    Args:
        everywhere: on every head that is not named.
        heads: (layer, head) -> the entry of a head that some method names.
        span_includes_generated: whether generated tokens count as the span.
    """

    everywhere: TableEntry
    heads: Mapping[tuple[int, int], TableEntry]
    span_includes_generated: bool

    def entries(self, layer: int, heads: int) -> list[TableEntry]:
        """The entry of each head of a layer."""
        return [self.heads.get((layer, head), self.everywhere) for head in range(heads)]


@lru_cache(maxsize=1024)
def table_row(methods: tuple[ShiftsAttention, ...]) -> TableRow | None:
    """The methods of one row as numbers; None where their list is outside of the family.

    It is outside where a method has no numbers, where a bias stands behind a power on the same
    head, and where some methods count generated tokens as the span and others do not.
    """
    sets = {method.span_includes_generated for method in methods}
    if len(sets) > 1 or any(getattr(method, "table_entry", None) is None for method in methods):
        return None
    named = frozenset().union(*(method.heads or () for method in methods))
    everywhere = _composed(method for method in methods if method.heads is None)
    heads = {
        pair: _composed(method for method in methods if _moves(method, pair)) for pair in named
    }
    if everywhere is None:
        return None
    inside = {pair: entry for pair, entry in heads.items() if entry is not None}
    return TableRow(everywhere, inside, True in sets) if len(inside) == len(heads) else None


def _moves(method: ShiftsAttention, pair: tuple[int, int]) -> bool:
    return method.heads is None or pair in method.heads


def _composed(methods: Iterable[ShiftsAttention]) -> TableEntry | None:
    entry: TableEntry | None = NEUTRAL
    for method in methods:
        later: TableEntry = method.table_entry  # type: ignore[attr-defined]
        entry = None if entry is None else entry.then(later)
    return entry


@dataclass(frozen=True)
class LayerNumbers:
    """The table of one layer; `holdfast.methods.table` has its formula.

    Args:
        numbers: float32 or wider [3, row, head]: bias, exponent, floor; head is 1 where all heads
            have the same.
        adds: whether some bias is not 0; `powers` and `floors` likewise.
    """

    numbers: Tensor
    adds: bool
    powers: bool
    floors: bool

    @property
    def only_adds(self) -> bool:
        """Whether all there is to do can be done by adding to scores."""
        return not (self.powers or self.floors)

    def on(self, heads: Sequence[int] | None) -> LayerNumbers:
        """The same for some heads of the layer."""
        if heads is None or self.numbers.shape[2] == 1:
            return self
        return LayerNumbers(self.numbers[:, :, heads], self.adds, self.powers, self.floors)


def layer_numbers(
    rows: Sequence[tuple[ShiftsAttention, ...]],
    layer: int,
    heads: int,
    dtype: torch.dtype,
    device: torch.device,
) -> LayerNumbers:
    """The numbers of one layer with as many heads, for the methods of each row."""
    kinds = {methods: number for number, methods in enumerate(dict.fromkeys(rows))}
    if not any(method.heads is not None for methods in kinds for method in methods):
        heads = 1
    each = torch.stack([_numbers(methods, layer, heads) for methods in kinds])  # [kind, head, 3]
    numbers = each[[kinds[methods] for methods in rows]].permute(2, 0, 1).to(dtype)
    biases, exponents, floors = each.unbind(2)
    return LayerNumbers(
        numbers.contiguous().to(device, non_blocking=True),
        adds=bool((biases != NEUTRAL.bias).any()),
        powers=bool((exponents != NEUTRAL.exponent).any()),
        floors=bool((floors != NEUTRAL.floor).any()),
    )


@lru_cache(maxsize=4096)
def _numbers(methods: tuple[ShiftsAttention, ...], layer: int, heads: int) -> Tensor:
    """float64 [head, 3] on the host, of methods in the family.

    Raises:
        UsageError: a method names a head that the layer lacks.
    """
    row = table_row(methods)
    assert row is not None
    if missing := [head for place, head in row.heads if place == layer and head >= heads > 1]:
        raise UsageError(f"Layer {layer} has {heads} heads, so there is no head {max(missing)}.")
    entries = row.entries(layer, heads)
    with torch.inference_mode(False):  # it is kept for passes with gradients too
        return torch.tensor(
            [[entry.bias, entry.exponent, entry.floor] for entry in entries], dtype=torch.double
        )


@dataclass
class SteeringTable:
    """The table of a whole batch, preallocated: rows are written as they come and go.

    Nothing moves and no shape changes, so that what was captured or compiled over it goes on. A row
    that nothing was written to is not steered.

    Args:
        layers, heads, rows: of the model, and of the batch.
        device: of the tensors.
    """

    layers: int
    heads: int
    rows: int
    device: torch.device
    numbers: Tensor = field(init=False)  # float32 [3, layer, row, head]
    span_includes_generated: Tensor = field(init=False)  # bool [row]

    def __post_init__(self) -> None:
        self.numbers = torch.zeros(3, self.layers, self.rows, self.heads, device=self.device)
        self.span_includes_generated = torch.zeros(self.rows, dtype=torch.bool, device=self.device)
        for row in range(self.rows):
            self.clear(row)

    def write(self, row: int, methods: tuple[ShiftsAttention, ...]) -> None:
        """Steers a row by methods, in order.

        Raises:
            UsageError: they are outside of the family.
        """
        if (table := table_row(methods)) is None:
            names = " + ".join(method.name for method in methods)
            raise UsageError(
                f"{names} cannot be told by three numbers; leave the row clear and steer by calls."
            )
        layers = [_numbers(methods, layer, self.heads) for layer in range(self.layers)]
        self.numbers[:, :, row].copy_(torch.stack(layers).permute(2, 0, 1))
        self.span_includes_generated[row] = table.span_includes_generated

    def clear(self, row: int) -> None:
        """Leaves a row as it is."""
        self.write(row, ())
