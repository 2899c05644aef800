"""The steering of a forward pass: what to do, and how far the pass has got."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from holdfast.attention.extent import Extent, Groups, Plans, Starts
from holdfast.attention.rules import ListRule, LogOddsRule, MethodGroup, method_groups
from holdfast.errors import ModelError, UsageError
from holdfast.methods.compiled import CompiledMethods, layer_table
from holdfast.methods.table import LayerTable


@dataclass(frozen=True)
class AttentionTrace:
    """Attention mass on the span, after steering.

    Args:
        mass: float32 [layer, head, step]; step t is the query that produced the reply's token t.
        uniform: float32 [layer, step], the mass if the layer attended evenly to all tokens that it
            sees: in a layer with a sliding window or chunks, those in the window or the chunk. Its
            mean over layers is the one number reported beside the mean mass. None if unknown.
    """

    mass: Tensor
    uniform: Tensor | None = None


@dataclass(frozen=True, eq=False)
class BatchSteering:
    """The steering of a batch's rows, in one pass or in all passes of a block.

    Everything that the host needs is computed once and kept, so reusing it while a batch has the
    same rows adds no cost to its passes.
    """

    # bool [batch, key], True on the keys of the span; later keys are not in it. The rows of a pass
    # may be a multiple of these (beams, several replies to a prompt), with the copies of each row
    # adjacent
    span: Tensor
    rows: Sequence[CompiledMethods]  # the methods of each row
    trace: bool = False  # whether to record the mass at the last query
    # per row, the number of columns before the first generated one; None: as many as `span` has
    prompt: Sequence[int] | None = None
    # whether `span` has every column of a pass; False: it has only the prompt's, and passes
    # continue after it
    follows: bool = True
    _tables: dict[tuple[int | None, int, torch.dtype], LayerTable] = field(
        default_factory=dict, repr=False
    )
    _groups: dict[int, list[MethodGroup]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if len(self.rows) != self.span.shape[0]:
            raise UsageError(
                f"There are methods for {len(self.rows)} rows and a span of"
                f" {self.span.shape[0]}; give each row its own.",
                option="methods",
                value=len(self.rows),
                allowed=self.span.shape[0],
            )

    def equals(self, other: BatchSteering) -> bool:
        """Whether both steer the same rows of the same batch; compares no numbers on a device."""
        mine, theirs = ((s.rows, s.prompt, s.trace, s.follows) for s in (self, other))
        return self.span is other.span and mine == theirs

    @cached_property
    def prompts(self) -> list[int]:
        """Per row, the first generated column."""
        return [self.span.shape[1]] * len(self.span) if self.prompt is None else list(self.prompt)

    @cached_property
    def includes(self) -> list[bool]:
        """Per row, whether generated tokens count as its span."""
        return [row.span_includes_generated for row in self.rows]

    @cached_property
    def disagrees(self) -> bool:
        """Whether methods of one row disagree on what the span is."""
        return not all(row.agrees_on_span for row in self.rows)

    @cached_property
    def extent(self) -> Extent:
        """Where the span is; copies the mask to the host."""
        includes = [False] * len(self.rows) if self.disagrees else self.includes
        return Extent.of(self.span, self.prompts, includes)

    @cached_property
    def on_device(self) -> tuple[Tensor, Tensor]:
        """`prompts` and `includes`, [row, 1] each, on the device."""
        device = self.span.device
        starts = torch.tensor(self.prompts).to(device, non_blocking=True)
        includes = torch.tensor(self.includes).to(device, non_blocking=True)
        return starts[:, None], includes[:, None]

    @cached_property
    def included_from(self) -> Tensor:
        """Per row, the first generated column that counts as its span, int64 [row], on the device;
        a column that no row reaches if none does.
        """
        every = zip(self.prompts, self.includes, strict=True)
        starts = [start if included else 2**40 for start, included in every]
        return torch.tensor(starts).to(self.span.device, non_blocking=True)

    @cached_property
    def _in_family(self) -> bool:
        return all(row.table is not None for row in self.rows)

    @cached_property
    def _by_head(self) -> bool:
        return any(len(row.table) > 1 for row in self.rows if row.table is not None)

    @cached_property
    def _heads(self) -> dict[int, list[int]] | None:
        """The heads that some method moves, by layer; None for all of them."""
        named = [method.heads for row in set(self.rows) for method in row.attention]
        heads: dict[int, list[int]] = {}
        for layer, head in sorted({pair for chosen in named for pair in chosen or ()}):
            heads.setdefault(layer, []).append(head)
        return None if None in named else heads

    def touches(self, layer: int) -> bool:
        """Whether any method moves a head of this layer."""
        return self._heads is None or layer in self._heads

    def heads(self, layer: int) -> list[int] | None:
        """The heads of this layer that some method moves, in order; None for all."""
        return None if self._heads is None else self._heads.get(layer, [])

    def copies_of(self, rows: int) -> int:
        """How many rows of a pass belong to each row of the span; a `UsageError` if uneven."""
        count = self.span.shape[0]
        if rows % count:
            raise UsageError(
                f"The span mask has {count} rows and the model's batch {rows}; give one row per"
                " prompt.",
                option="span_mask",
                value=count,
                allowed=rows,
            )
        return rows // count

    def rule(self, rows: int, layer: int, heads: int, dtype: torch.dtype) -> LogOddsRule:
        """The rule of the methods of these rows in a layer, for queries of this dtype."""
        if not self._in_family:
            return self.list_rule(rows, layer, heads)
        wide = torch.promote_types(dtype, torch.float32)
        key = (layer if self._by_head else None, rows, wide)
        if key not in self._tables:
            table = layer_table(self._repeated(rows), layer, heads)
            self._tables[key] = table.to(wide, self.span.device)
        return self._tables[key]

    def list_rule(self, rows: int, layer: int, heads: int) -> ListRule:
        """The rule that applies the methods of each row one after another, without a table."""
        if rows not in self._groups:
            self._groups[rows] = method_groups(self._repeated(rows), self.span.device)
        return ListRule(self._groups[rows], layer, heads)

    def _repeated(self, rows: int) -> list[CompiledMethods]:
        """The methods of each row of a pass."""
        return [row for row in self.rows for _ in range(self.copies_of(rows))]


@dataclass(eq=False)
class PassState:
    """How far the passes under one steering are in the sequence, and what they recorded."""

    steering: BatchSteering
    # per pass, the mass [batch, head] of every layer, in order, if it is traced
    passes: list[list[Tensor]] = field(default_factory=list)
    calls: int = 0  # how often attention was called
    # per row of this pass, the query whose mass is recorded, which padding may follow; None: the
    # last one of every row
    last: Tensor | None = None
    layers: dict[int, int] = field(default_factory=dict)  # heads of each layer that recorded mass
    entered: set[int] = field(default_factory=set)  # the layers that were reached
    # per layer of the latest pass, the mass [batch] of uniform attention
    uniform: dict[int, Tensor] = field(default_factory=dict)
    plans: Plans = field(default_factory=Plans)
    # by number of keys, the column of the first one, as reported by the model
    offsets: dict[int, int | Starts] = field(default_factory=dict)
    noted: bool = False  # whether the current layer has recorded its mass
    _seen: int | None = 0  # tokens so far, as reported by the model; None: known only on the device
    _inside: bool = False
    _layer: int = -1

    @property
    def seen(self) -> list[Tensor]:
        """[batch, head] of every layer of the latest pass, in order."""
        return self.passes[-1] if self.passes else []

    def note(self, mass: Tensor) -> None:
        """Records the mass [batch, head] of the current layer; if it attends twice, the last."""
        self.layers[self._layer] = mass.shape[1]
        if self.noted:
            self.passes[-1][-1] = mass
        else:
            self.passes[-1].append(mass)
            self.noted = True

    def enter(self, layer: int) -> None:
        """Called by each layer, by some twice; a layer before the previous one begins a pass."""
        self.calls += 1
        self.entered.add(layer)
        again = layer == self._layer and self._inside
        self._inside = True
        if not (again or layer > self._layer) or not self.passes:
            self.passes.append([])
            self.plans.clear()
            self.uniform = {}
        self.noted = self.noted and again
        self._layer = layer

    def note_keys(
        self, q_offset: int | Tensor, q_length: int, kv_offset: int | Starts, kv_length: int
    ) -> None:
        """Records that `kv_length` keys begin at column `kv_offset`; static caches give tensors."""
        if self._inside:
            self.offsets.clear()
            self._inside = False
        first = not self.offsets
        self.offsets[kv_length] = kv_offset
        if isinstance(q_offset, Tensor):
            self._seen = None
        elif first or self._seen is not None:
            seen = q_offset + q_length
            self._seen = seen if first or self._seen is None else max(self._seen, seen)

    def first_column(self, keys: int) -> int | Starts:
        """The column of the first of `keys` keys, since sliding caches keep only the last ones. A
        `ModelError` if keys are not tokens, a `UsageError` if there are too few for the mask.
        """
        width, seen = self.steering.span.shape[1], self._seen if self.offsets else keys
        if seen is not None and not self.steering.follows and seen < width:
            raise UsageError(
                f"The span mask has {width} tokens and this pass sees {seen}; give a mask of the"
                " whole prompt, and forward it at once.",
                option="span_mask",
                value=width,
                allowed=seen,
            )
        if keys in self.offsets:
            return self.offsets[keys]
        if self.offsets and keys != seen:
            raise ModelError(
                f"A layer has {keys} keys for {'other' if seen is None else seen} tokens, so they"
                " are not tokens and cannot be steered; use prompt methods."
            )
        return max(0, width - keys) if self.steering.follows else 0

    def has_generated(self, keys: int) -> bool:
        """Whether any generated keys are visible that some method counts as the span."""
        first = self.first_column(keys)
        firsts = (
            first.columns if isinstance(first, Starts) else [first] * len(self.steering.prompts)
        )
        every = zip(firsts, self.steering.includes, self.steering.prompts, strict=True)
        return any(included and first + keys > start for first, included, start in every)

    def is_two_groups(self, keys: int) -> bool:
        """Whether each row's keys fall into two groups that all its methods agree on."""
        return not self.steering.disagrees or not self.has_generated(keys)

    def groups(self, keys: int) -> Groups:
        """Where the two groups are among the keys."""
        first, extent = self.first_column(keys), self.steering.extent
        if isinstance(first, Starts):
            return extent.groups_by_row(first.columns, keys)
        return extent.groups(first, first + keys)

    def columns(self, rows: int, keys: int) -> tuple[Tensor, Tensor | None]:
        """The span over a layer's keys, bool [row, key], and the generated ones if needed."""
        first, span, generated = self.first_column(keys), self.steering.span, None
        if isinstance(first, Starts):
            width, places = span.shape[1], torch.arange(keys, device=span.device)
            places = first.on_device + places
            span = span.gather(1, places.clamp(max=width - 1)) & (places < width)
        else:
            span = span[:, first : first + keys]
        if span.shape[1] < keys:
            span = torch.nn.functional.pad(span, (0, keys - span.shape[1]))
        if self.has_generated(keys):
            places = torch.arange(keys, device=span.device)
            places = places + (first.on_device if isinstance(first, Starts) else first)
            generated = (places >= self.steering.on_device[0]) & ~span
        if (copies := self.steering.copies_of(rows)) > 1:
            span = span.repeat_interleave(copies, 0)
            generated = None if generated is None else generated.repeat_interleave(copies, 0)
        return span, generated

    def members(self, rows: int, keys: int) -> Tensor:
        """The first of the two groups, bool [row, key]."""
        span, generated = self.columns(rows, keys)
        if generated is None:
            return span
        includes = self.steering.on_device[1].repeat_interleave(self.steering.copies_of(rows), 0)
        return span | (generated & includes)


@dataclass(frozen=True)
class Pass:
    """A forward pass under way."""

    state: PassState | None  # of its steering; None if it has none
    # the open model; None for a pass of this package's decode loop, which sets its own steering
    model: Any = None
    # the block that steers it; None for an unsteered pass, and for one of the decode loop
    block: Any = None
    # of every query, [row, query], if a key's column is its position and row lengths differ; None
    # if the model's own masks are right
    positions: Tensor | None = None
    # where the keys of windowed layers begin, if that differs between rows
    starts: Starts | None = None
    first: bool | None = None  # whether it is the first of a `generate`; None outside of one


NEVER_REACHED = (
    "This model's attention does not go through transformers' attention interface, so its mass on"
    " the prompt can be neither read nor moved; use prompt methods such as repetition."
)
PASS: ContextVar[Pass | None] = ContextVar("holdfast_pass", default=None)


@contextmanager
def steered(
    steering: BatchSteering | None, positions: Tensor | None = None, starts: Starts | None = None
) -> Iterator[PassState | None]:
    """Steers the forward pass inside, in this thread only; with None, it is not steered. A
    `ModelError` if the pass never reached our attention.
    """
    state = None if steering is None else PassState(steering)
    token = PASS.set(Pass(state, positions=positions, starts=starts))
    try:
        yield state
    finally:
        PASS.reset(token)
    if state is not None and not state.calls:
        raise ModelError(NEVER_REACHED)
