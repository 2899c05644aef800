"""What the attention of a forward pass is to do; set for the pass alone, in its own context."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from holdfast.attention.extent import Extent, Groups, Starts
from holdfast.attention.plan import Plans
from holdfast.attention.rules import Lane, ListRule, Rule, TableRule
from holdfast.attention.table import LayerNumbers, layer_numbers
from holdfast.errors import ModelError, UsageError
from holdfast.methods.protocols import ShiftsAttention
from holdfast.methods.table import table_row


@dataclass(frozen=True)
class AttentionTrace:
    """Attention mass on the span, after steering.

    Args:
        mass: float32 [layer, head, step]; step t is the query that produced the reply's token t.
        uniform: float32 [layer, step], what the mass would be if the layer attended evenly to all
            tokens that it sees: in a layer with a sliding window or chunks, those in the window or
            the chunk. Its mean over layers is the one number beside the mean mass. None where it is
            not known.
    """

    mass: Tensor
    uniform: Tensor | None = None


@dataclass
class _Known:
    """What is found out once about a batch, and serves all its passes."""

    extent: Extent | None = None
    numbers: dict[tuple[int | None, int, torch.dtype], LayerNumbers] = field(default_factory=dict)
    lanes: dict[int, list[Lane]] = field(default_factory=dict)
    on_device: tuple[Tensor, Tensor] | None = None


@dataclass
class Steering:
    """What attention does: in one pass in `steered`, in all that a block covers.

    One that is kept while a batch has the same rows costs nothing but its passes: what there is to
    know on the host is found once.

    Args:
        span: bool [batch, key], True on the keys to hold on to; later keys are not in the span. The
            rows of a pass may be a multiple of these (beams, several replies to a prompt), each
            row's copies in a run.
        methods: per row, the attention methods in order.
        trace: whether `passes` collects the mass at the last query.
        prompt: per row, the number of columns before the first generated one; None: as many as
            `span` has.
        follows: whether `span` has every column of this pass; False: it has the prompt's, and
            passes go on behind it.
        passes: per pass, [batch, head] of every layer, in order.
        calls: how often attention was called.
        last: per row of this pass, the query whose mass is noted; None: the last one of each,
            behind which padding may stand otherwise.
        layers: heads by layer that noted its mass.
        entered: the layers that were reached in this pass.
        uniform: by layer of the latest pass, the mass [batch] if it attended evenly.
        plans: what layers of a pass share.
    """

    span: Tensor
    methods: Sequence[Sequence[ShiftsAttention]]
    trace: bool = False
    prompt: Sequence[int] | None = None
    follows: bool = True
    passes: list[list[Tensor]] = field(default_factory=list)
    calls: int = 0
    last: Tensor | None = None
    layers: dict[int, int] = field(default_factory=dict)
    entered: set[int] = field(default_factory=set)
    uniform: dict[int, Tensor] = field(default_factory=dict)
    plans: Plans = field(default_factory=Plans)
    _offsets: dict[int, int | Starts] = field(default_factory=dict)  # by number of keys
    _seen: int | None = 0  # tokens, as far as the model told; None: only its device knows
    _inside: bool = False
    _layer: int = -1
    _noted: bool = False  # the mass of the present layer

    def __post_init__(self) -> None:
        self._rows = [tuple(methods) for methods in self.methods]
        self.methods = self._rows
        if len(self._rows) != self.span.shape[0]:
            raise UsageError(
                f"There are methods for {len(self._rows)} rows and a span of"
                f" {self.span.shape[0]}; give each row its own."
            )
        width = self.span.shape[1]
        self._prompt = [width] * len(self.span) if self.prompt is None else list(self.prompt)
        self.prompt = self._prompt
        kinds = set(self._rows)
        self._every = {method for methods in kinds for method in methods}
        self.moves = bool(self._every)
        self._in_family = all(table_row(methods) is not None for methods in kinds)
        self._includes = [any(m.span_includes_generated for m in methods) for methods in self._rows]
        # Methods of one row that disagree on what the span is.
        self._mixed = any(
            len({method.span_includes_generated for method in methods}) > 1 for methods in kinds
        )
        named = [method.heads for method in self._every]
        self._heads = (
            None
            if None in named
            else {pair for heads in named if heads is not None for pair in heads}
        )
        self._per_layer = any(heads is not None for heads in named)
        self._known = _Known()

    @property
    def seen(self) -> list[Tensor]:
        """[batch, head] of every layer of the latest pass, in order."""
        return self.passes[-1] if self.passes else []

    def for_a_pass(self) -> Steering:
        """The same for one pass, whose state no other thread's pass sees."""
        made = copy.copy(self)
        made.passes, made.plans, made._offsets, made.entered = [], Plans(), {}, set()
        made.calls, made.last, made._seen, made._layer = 0, None, 0, -1
        made._inside = made._noted = False
        return made

    # A pass

    def note(self, mass: Tensor) -> None:
        """Keeps the mass [batch, head] of the present layer.

        A layer that attends twice by the same scores has one.
        """
        self.layers[self._layer] = mass.shape[1]
        if self._noted:
            self.passes[-1][-1] = mass
        else:
            self.passes[-1].append(mass)
            self._noted = True

    def enter(self, layer: int) -> None:
        """Called by each layer, by some twice; a layer before the last one begins a pass.

        So does the last one itself after masks were made: it may be the only one with attention.
        """
        self.calls += 1
        self.entered.add(layer)
        again = layer == self._layer and self._inside
        self._inside = True
        if not (again or layer > self._layer) or not self.passes:
            self.passes.append([])
            self.plans.clear()
            self.uniform = {}
        self._noted = self._noted and again
        self._layer = layer

    def place(
        self, q_offset: int | Tensor, q_length: int, kv_offset: int | Starts, kv_length: int
    ) -> None:
        """Told before each pass, for each kind of cache: of `kv_length` keys the first is column
        `kv_offset`; a static cache has its length `q_offset` on the device.
        """
        if self._inside:
            self._offsets.clear()
            self._inside = False
        first = not self._offsets
        self._offsets[kv_length] = kv_offset
        if isinstance(q_offset, Tensor):
            self._seen = None
        elif first or self._seen is not None:
            seen = q_offset + q_length
            self._seen = seen if first or self._seen is None else max(self._seen, seen)

    def knows_columns(self, keys: int) -> bool:
        """Whether it was told where a cache of `keys` keys begins."""
        return keys in self._offsets

    def first_column(self, keys: int) -> int | Starts:
        """The column of the first of `keys` keys: sliding caches hold the last ones only.

        Raises:
            ModelError: keys that are no tokens, as of a cache that holds several tokens in one.
            UsageError: there are fewer keys than the span mask has tokens, and the model does not
                say which.
        """
        width, seen = self.span.shape[1], self._seen if self._offsets else keys
        if seen is not None and not self.follows and seen < width:
            raise UsageError(
                f"The span mask has {width} tokens and this pass sees {seen}; give a mask of the"
                " whole prompt, and forward it at once."
            )
        if keys in self._offsets:
            return self._offsets[keys]
        if self._offsets and keys != seen:
            raise ModelError(
                f"A layer has {keys} keys for {'other' if seen is None else seen} tokens, so they"
                " are not tokens and cannot be steered; use prompt methods."
            )
        return max(0, width - keys) if self.follows else 0

    # Which heads, and which keys

    def touches(self, layer: int) -> bool:
        """Whether any method moves a head of this layer."""
        return self.moves and (self._heads is None or any(own == layer for own, _ in self._heads))

    def heads(self, layer: int) -> list[int] | None:
        """The heads of this layer that some method moves, in order; None for all."""
        if not self.moves:
            return []
        if self._heads is None:
            return None
        return sorted(head for own, head in self._heads if own == layer)

    def branch(self, layer: int) -> int | None:
        """What tells apart layers in which methods do different things; None if all do the same."""
        return layer if self._per_layer else None

    def has_generated(self, keys: int) -> bool:
        """Whether generated keys are in sight that some method counts as the span."""
        first = self.first_column(keys)
        firsts = first.columns if isinstance(first, Starts) else [first] * len(self._prompt)
        every = zip(firsts, self._includes, self._prompt, strict=True)
        return any(own and first + keys > start for first, own, start in every)

    def is_two_groups(self, keys: int) -> bool:
        """Whether each row's keys fall into two groups that all its methods agree on."""
        return not self._mixed or not self.has_generated(keys)

    def groups(self, keys: int) -> Groups:
        """Where the two groups stand among the keys."""
        if self._known.extent is None:
            includes = self._includes if not self._mixed else [False] * len(self._includes)
            self._known.extent = Extent.of(self.span, self._prompt, includes)
        first = self.first_column(keys)
        if isinstance(first, Starts):
            return self._known.extent.groups_behind(first.columns, keys)
        return self._known.extent.groups(first, first + keys)

    def columns(self, rows: int, keys: int) -> tuple[Tensor, Tensor | None]:
        """The span over the keys of a layer, bool [row, key], and the generated ones that are not
        in it; None where no method asks for these, or there are none.
        """
        span = self.span_over(keys)
        if span.shape[1] < keys:
            span = torch.nn.functional.pad(span, (0, keys - span.shape[1]))
        generated = None
        if self.has_generated(keys):
            first, (starts, _) = self.first_column(keys), self._row_tensors()
            places = torch.arange(keys, device=span.device)
            places = places + (first.on_device if isinstance(first, Starts) else first)
            generated = (places >= starts) & ~span
        if (copies := self.copies_of(rows)) > 1:
            span = span.repeat_interleave(copies, 0)
            generated = None if generated is None else generated.repeat_interleave(copies, 0)
        return span, generated

    def span_over(self, keys: int) -> Tensor:
        """The span over the keys of a layer, bool [row of the span, key or fewer]."""
        first, width = self.first_column(keys), self.span.shape[1]
        if not isinstance(first, Starts):
            return self.span[:, first : first + keys]
        columns = first.on_device + torch.arange(keys, device=self.span.device)
        return self.span.gather(1, columns.clamp(max=width - 1)) & (columns < width)

    def members(self, rows: int, keys: int) -> Tensor:
        """The first of the two groups, bool [row, key]."""
        span, generated = self.columns(rows, keys)
        if generated is None:
            return span
        includes = self._row_tensors()[1].repeat_interleave(self.copies_of(rows), 0)
        return span | (generated & includes)

    def _row_tensors(self) -> tuple[Tensor, Tensor]:
        """`prompt` and whether generated tokens count as the span, [row, 1], on the device."""
        if self._known.on_device is None:
            device = self.span.device
            starts = torch.tensor(self._prompt).to(device, non_blocking=True)
            includes = torch.tensor(self._includes).to(device, non_blocking=True)
            self._known.on_device = starts[:, None], includes[:, None]
        return self._known.on_device

    # What methods do

    def rule(self, rows: int, layer: int, heads: int, dtype: torch.dtype) -> Rule:
        """What the methods of a pass of so many rows do in a layer with so many heads.

        Args:
            rows, layer, heads: of the pass, and the layer.
            dtype: of queries; log-odds are float32 or wider.
        """
        if self._in_family:
            return TableRule(self.numbers(rows, layer, heads, dtype))
        return self.list_rule(rows, layer, heads)

    def numbers(self, rows: int, layer: int, heads: int, dtype: torch.dtype) -> LayerNumbers:
        """The table of a layer; all methods must be of the family."""
        wide = torch.promote_types(dtype, torch.float32)
        name = (self.branch(layer), rows, wide)
        if name not in self._known.numbers:
            copies = self.copies_of(rows)
            each = [methods for methods in self._rows for _ in range(copies)]
            self._known.numbers[name] = layer_numbers(each, layer, heads, wide, self.span.device)
        return self._known.numbers[name]

    def list_rule(self, rows: int, layer: int, heads: int) -> ListRule:
        """The methods themselves, row by row, one after another."""
        if rows not in self._known.lanes:
            copies = self.copies_of(rows)
            places: dict[tuple[ShiftsAttention, ...], list[int]] = {}
            for row in range(rows):
                if methods := self._rows[row // copies]:
                    places.setdefault(methods, []).append(row)
            self._known.lanes[rows] = [
                Lane(
                    methods,
                    None if len(own) == rows else torch.tensor(own, device=self.span.device),
                )
                for methods, own in places.items()
            ]
        return ListRule(self._known.lanes[rows], layer, heads)

    def copies_of(self, rows: int) -> int:
        """How many rows of this pass belong to each row of the span.

        Raises:
            UsageError: no whole number does.
        """
        own = self.span.shape[0]
        if rows % own:
            raise UsageError(
                f"The span mask has {own} rows and the model's batch {rows}; give one row per"
                " prompt."
            )
        return rows // own


@dataclass(frozen=True)
class Pass:
    """A forward pass under way.

    Args:
        steering: what its attention does; None: nothing.
        model: the `OpenModel` whose pass it is; None for one of this package's decode loop, which
            says itself what to steer.
        block: that steers it; None for a plain pass, and for one of the decode loop.
        positions: of every query, [row, query], where a key's column is its position and rows are
            of different length; None where the model's own masks are right.
        starts: where the keys of windowed layers begin, if that is not the same in all rows.
        outer: of a compiled pass, the one that it interrupts.
    """

    steering: Steering | None
    model: Any = None
    block: Any = None
    positions: Tensor | None = None
    starts: Starts | None = None
    outer: Pass | None = None


NEVER_REACHED = (
    "This model's attention does not go through transformers' attention interface, so its mass on"
    " the prompt can be neither read nor moved; use prompt methods such as repetition."
)
PASS: ContextVar[Pass | None] = ContextVar("holdfast_pass", default=None)


@contextmanager
def steered(
    steering: Steering | None, positions: Tensor | None = None, starts: Starts | None = None
) -> Iterator[None]:
    """Applies `steering` to the forward pass inside, in this thread alone.

    Args:
        steering: what its attention does; None: nothing.
        positions: of every query, as in `Pass`.
        starts: of the keys of windowed layers, as in `Pass`.

    Raises:
        ModelError: a pass inside the block never reached the attention registered here.
    """
    token = PASS.set(Pass(steering, positions=positions, starts=starts))
    try:
        yield
    finally:
        PASS.reset(token)
    if steering is not None and not steering.calls:
        raise ModelError(NEVER_REACHED)
