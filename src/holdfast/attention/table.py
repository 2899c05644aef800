"""The steering table of a layer: what rows of methods come to, three numbers per row and head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from holdfast.errors import UsageError
from holdfast.methods.protocols import ShiftsAttention
from holdfast.methods.table import TableEntry, table_row

NEUTRAL = TableEntry()


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
