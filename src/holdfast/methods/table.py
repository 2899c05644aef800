"""The steering table: three numbers per head define what an attention method does.

With x the log-odds of the attention mass on the span,

    x1 = x + bias;   x2 = logit(sigmoid(x1)**exponent);   x' = max(x2, floor)

InstABoost, GUIDE and PASTA have a bias, split-softmax an exponent, Spotlight a floor. A method
declares its entry; the formula itself is implemented only here, in `LayerTable`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from holdfast.errors import UsageError
from holdfast.methods.heads import Head
from holdfast.methods.kinds import MethodKind
from holdfast.methods.protocols import ShiftsAttention

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# sigmoid(-100) = 4e-44 is about the smallest float32 number above 0: all mass is on the span
_MAX_LOG_ODDS = 100.0
# above these log-odds 1 - pi < 1e-17, and 1 - pi**k equals k * (1 - pi) to double precision
_TAIL = 40.0
_MIN_EXPONENT = 1e-38  # takes the place of 0, whose logarithm is infinite


@dataclass(frozen=True)
class TableEntry:
    """The three numbers of a method on one head; the default changes nothing.

    Raises:
        UsageError: the numbers lower the mass, which the kernels cannot do precisely.
    """

    bias: float = 0.0  # added to the log-odds, at least 0
    exponent: float = 1.0  # the power of the mass, in [0, 1]
    floor: float = -math.inf  # log-odds below it are raised to it; -inf for no floor

    def __post_init__(self) -> None:
        if self.bias < 0 or self.exponent > 1:
            raise UsageError(
                f"A bias of {self.bias:g} and an exponent of {self.exponent:g} lower the mass on"
                " the span, which attention methods only raise; take a bias of at least 0 and an"
                " exponent of at most 1.",
                option="table_entry",
                value=(self.bias, self.exponent),
            )

    def then(self, later: TableEntry) -> TableEntry | None:
        """Composes two entries, `later` after this one; None if three numbers cannot do that."""
        if later.bias != 0 and self.exponent != 1:
            return None
        floor = later.floor
        if self.floor > -math.inf:
            table = LayerTable.of([TableEntry(later.bias, later.exponent)])
            floor = max(floor, table.shift(table.numbers.new_full((1, 1, 1), self.floor)).item())
        return TableEntry(self.bias + later.bias, self.exponent * later.exponent, floor)


@dataclass(frozen=True)
class LayerTable:
    """The entries of one layer's heads, and their effect on log-odds [row, head, query].

    Log-odds are -inf where the span is not visible.
    """

    # float32 or wider [3, row, head]: bias, exponent, floor; one head stands for all if they agree
    numbers: Tensor
    adds: bool  # whether some bias is not 0
    powers: bool  # whether some exponent is not 1
    floors: bool  # whether some floor is above -inf

    @classmethod
    def of(cls, heads: Sequence[TableEntry]) -> LayerTable:
        """Builds the table of one row from the entry of each head; float64 on the host."""
        import torch

        rows = [[entry.bias, entry.exponent, entry.floor] for entry in heads]
        with torch.inference_mode(False):  # passes with gradients use it too
            numbers = torch.tensor(rows, dtype=torch.double).T[:, None]
        return cls(
            numbers,
            adds=any(entry.bias != 0 for entry in heads),
            powers=any(entry.exponent != 1 for entry in heads),
            floors=any(entry.floor > -math.inf for entry in heads),
        )

    @property
    def only_adds(self) -> bool:
        """Whether the biases alone, which can be added to the scores, do everything."""
        return not (self.powers or self.floors)

    def for_heads(self, heads: Sequence[int] | None) -> LayerTable:
        """Returns the same table for some heads of the layer; None for all."""
        if heads is None or self.numbers.shape[2] == 1:
            return self
        return LayerTable(self.numbers[:, :, heads], self.adds, self.powers, self.floors)

    def to(self, dtype: torch.dtype, device: torch.device) -> LayerTable:
        """Returns the same table in another dtype, on a device."""
        numbers = self.numbers.to(dtype).contiguous().to(device, non_blocking=True)
        return LayerTable(numbers, self.adds, self.powers, self.floors)

    def shift(self, log_odds: Tensor) -> Tensor:
        """Returns the moved log-odds x', differentiable.

        Infinities stay as they are, and finite log-odds stay finite.
        """
        bias, exponent, floor = self.numbers.unsqueeze(-1)
        moved = log_odds + bias if self.adds else log_odds
        if self.powers:
            # Beyond the tail, the gradient of the branch not taken would be infinite.
            log_mass = exponent.clamp(min=_MIN_EXPONENT) * _log_sigmoid(moved.clamp(max=_TAIL))
            raised = log_mass - (-log_mass.expm1()).log()
            # Where 1 - pi underflows, the log above would be infinite.
            raised = raised.where(moved < _TAIL, moved - exponent.clamp(min=_MIN_EXPONENT).log())
            raised = raised.minimum(moved.clamp(min=_MAX_LOG_ODDS))
            raised = raised.where(exponent > 0, moved.clamp(min=_MAX_LOG_ODDS))
            moved = raised.where(exponent != 1, moved)
        moved = moved.maximum(floor) if self.floors else moved
        return moved.where(log_odds > -math.inf, log_odds)

    def mass(self, log_odds: Tensor) -> Tensor:
        """Returns the moved mass, sigmoid(x'), with fewer operations than `shift` needs."""
        bias, exponent, floor = self.numbers.unsqueeze(-1)
        moved = log_odds + bias if self.adds else log_odds
        if self.powers:
            # A mass of 0 to the power of 0 would be 1.
            mass = _log_sigmoid(moved).mul_(exponent).exp_().masked_fill_(moved == -math.inf, 0.0)
        else:
            mass = moved.sigmoid()
        if self.floors:
            mass = mass.maximum(floor.sigmoid()).masked_fill_(moved == -math.inf, 0.0)
        return mass

    def log_rest(self, log_odds: Tensor) -> Tensor:
        """Returns the logarithm of the mass left for the rest, log(sigmoid(-x'))."""
        bias, exponent, floor = self.numbers.unsqueeze(-1)
        moved = log_odds + bias if self.adds else log_odds
        if self.powers:
            log_rest = _log_sigmoid(moved).mul_(exponent).expm1_().neg_().log_()
        else:
            log_rest = _log_sigmoid(-moved)
        if self.floors:
            log_rest = log_rest.minimum(_log_sigmoid(-floor))
        return log_rest.masked_fill_(moved == -math.inf, 0.0)


def _log_sigmoid(log_odds: Tensor) -> Tensor:
    from torch.nn.functional import logsigmoid

    return logsigmoid(log_odds)


@runtime_checkable
class TableMethod(ShiftsAttention, Protocol):
    """An attention method that is defined by three numbers per head; `shift` follows from them."""

    kind: ClassVar[MethodKind] = MethodKind.LOG_ODDS

    @property
    def span_includes_generated(self) -> bool:
        """False unless a method says otherwise."""
        return False

    @property
    def table_entry(self) -> TableEntry:
        """The entry of all heads that it touches."""
        return TableEntry()

    def entry_on(self, head: Head | None) -> TableEntry:
        """Returns the entry of a head that it touches; None stands for all heads not named."""
        return self.table_entry

    def shift(self, log_odds: Tensor, layer: int) -> Tensor:
        """Returns the moved log-odds, [row, head, query] like `log_odds`."""
        method: Any = self
        table = head_table((method,))
        assert table is not None, "a method that has an entry has a table"
        heads = log_odds.shape[1]
        rule = layer_table([table], layer, heads, log_odds.dtype, log_odds.device)
        return rule.shift(log_odds)


@dataclass(frozen=True, eq=False)
class HeadTable:
    """The entries of a row's methods by head, for every layer.

    Tables are compared by identity: `head_table` returns the same one for equal methods.
    """

    # the entry of each head that some method names, and under None that of all other heads
    entries: Mapping[Head | None, TableEntry]

    @property
    def names_heads(self) -> bool:
        """Whether heads differ."""
        return len(self.entries) > 1

    def of_layer(self, layer: int, heads: int) -> list[TableEntry]:
        """Returns the entry of each head of a layer; a `UsageError` for a head that it lacks."""
        named_heads = [pair for pair in self.entries if pair is not None]
        in_layer = [head for named_layer, head in named_heads if named_layer == layer]
        if missing := [head for head in in_layer if head >= heads > 1]:
            raise UsageError(
                f"Layer {layer} has {heads} heads, so there is no head {max(missing)}.",
                option="heads",
                value=max(missing),
                allowed=heads,
            )
        default = self.entries[None]
        return [self.entries.get((layer, head), default) for head in range(heads)]


@lru_cache(maxsize=1024)
def head_table(methods: tuple[ShiftsAttention, ...]) -> HeadTable | None:
    """Combines the methods of one row into a table; None if three numbers cannot express them."""
    table_methods = [method for method in methods if isinstance(method, TableMethod)]
    includes_generated = {method.span_includes_generated for method in methods}
    if len(includes_generated) > 1 or len(table_methods) < len(methods):
        return None
    named_heads = frozenset().union(*(method.heads or () for method in table_methods))
    entries = dict[Head | None, TableEntry]()
    for head in (None, *named_heads):
        methods_on_head = (
            method for method in table_methods if method.heads is None or head in method.heads
        )
        entry = _compose(method.entry_on(head) for method in methods_on_head)
        if entry is None:
            return None
        entries[head] = entry
    return HeadTable(entries)


def layer_table(
    rows: Sequence[HeadTable],
    layer: int,
    heads: int,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
) -> LayerTable:
    """Builds the table of a layer for a batch; one column for all heads if no row names any.

    Args:
        rows: the table of each row's methods.
        layer: counted from 0.
        heads: how many heads the layer has.
        dtype: of the numbers; None for float64.
        device: None for the host.
    """
    import torch

    columns = heads if any(row.names_heads for row in rows) else 1
    table_by_row = {
        row: _table_of_row(row, layer, columns, dtype, device) for row in dict.fromkeys(rows)
    }
    if len(rows) == 1:
        return table_by_row[rows[0]]
    numbers = torch.cat([table_by_row[row].numbers for row in rows], 1)
    tables = table_by_row.values()
    return LayerTable(
        numbers,
        adds=any(table.adds for table in tables),
        powers=any(table.powers for table in tables),
        floors=any(table.floors for table in tables),
    )


@lru_cache(maxsize=8192)
def _table_of_row(
    row: HeadTable,
    layer: int,
    columns: int,
    dtype: torch.dtype | None,
    device: torch.device | None,
) -> LayerTable:
    """Builds the table of a layer for one row, with one column per head or one for all."""
    import torch

    with torch.inference_mode(False):  # passes with gradients use it too
        table = LayerTable.of(row.of_layer(layer, columns))
        return table.to(dtype or torch.double, device or torch.device("cpu"))


def _compose(entries: Iterable[TableEntry]) -> TableEntry | None:
    entry: TableEntry | None = TableEntry()
    for later in entries:
        entry = None if entry is None else entry.then(later)
    return entry
