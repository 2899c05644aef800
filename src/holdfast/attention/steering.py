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

from holdfast.errors import ModelError, UsageError
from holdfast.methods.protocols import ShiftsAttention
from holdfast.methods.table import TableEntry

_Lane = tuple[
    tuple[ShiftsAttention, ...], Tensor | None
]  # methods, and the rows that have them; None: every row


@dataclass(frozen=True)
class AttentionTrace:
    """Attention mass on the span, after steering.

    Args:
        mass: float32 [layer, head, step]; step t is the query that produced the reply's token t.
        uniform: float32 [step], what the mass would be if attention were uniform over all tokens in
            sight; None where that is not known.
    """

    mass: Tensor
    uniform: Tensor | None = None


@dataclass
class Steering:
    """What attention does: in one pass in `steered`, in all that a block covers.

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
    """

    span: Tensor
    methods: Sequence[Sequence[ShiftsAttention]]
    trace: bool = False
    prompt: Sequence[int] | None = None
    follows: bool = True
    passes: list[list[Tensor]] = field(default_factory=list)
    calls: int = 0
    last: Tensor | None = None
    plans: dict = field(default_factory=dict)
    _offsets: dict[int, int] = field(default_factory=dict)  # first column, by number of keys
    _seen: int = 0  # tokens, as far as the model told
    _inside: bool = False
    _layer: int = -1
    _noted: bool = False  # the mass of the present layer
    layers: dict[int, int] = field(default_factory=dict)  # heads by layer that noted its mass
    _every: set[ShiftsAttention] = field(default_factory=set)
    _lanes: dict[int, list[_Lane]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.methods = [tuple(methods) for methods in self.methods]
        if len(self.methods) != self.span.shape[0]:
            raise UsageError(
                f"There are methods for {len(self.methods)} rows and a span of"
                f" {self.span.shape[0]}; give each row its own."
            )
        if self.prompt is None:
            self.prompt = [self.span.shape[1]] * len(self.span)
        every = self._every = {method for methods in self.methods for method in methods}
        self.moves = bool(every)
        self.span_includes_generated = any(method.span_includes_generated for method in every)
        self._by_heads = any(method.heads is not None for method in every)
        self.adds = self.moves and all(_only_adds(method) for method in every)
        self._layers = (
            None
            if any(m.heads is None for m in every)
            else {layer for m in every for layer, _ in m.heads}
        )

    @property
    def seen(self) -> list[Tensor]:
        """[batch, head] of every layer of the latest pass, in order."""
        return self.passes[-1] if self.passes else []

    def for_a_pass(self) -> Steering:
        """The same for one pass, whose state no other thread's pass sees."""
        made = copy.copy(self)
        made.passes, made.plans, made._offsets = [], {}, {}
        made.calls, made.last, made._seen, made._layer = 0, None, 0, -1
        made._inside = made._noted = False
        return made

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

    def touches(self, layer: int) -> bool:
        """Whether any method moves a head of this layer."""
        return self.moves and (self._layers is None or layer in self._layers)

    def heads(self, layer: int) -> list[int] | None:
        """The heads of this layer that some method moves, in order; None for all."""
        if not self.touches(layer):
            return []
        if self._layers is None:
            return None
        return sorted(
            {head for method in self._every for other, head in method.heads if other == layer}
        )

    def branch(self, layer: int) -> int | None:
        """What tells apart layers in which methods do different things; None if all do the same."""
        return None if not self._by_heads else layer

    def enter(self, layer: int) -> None:
        """Called by each layer, by some twice; a layer before the last one begins a pass."""
        self.calls += 1
        self._inside = True
        if layer < self._layer or not self.passes:
            self.passes.append([])
            self.plans.clear()
        self._noted = self._noted and layer == self._layer
        self._layer = layer

    def place(self, q_offset: int, q_length: int, kv_offset: int, kv_length: int) -> None:
        """Told before each pass, for each kind of cache: of `kv_length` keys the first is column
        `kv_offset`.
        """
        if self._inside:
            self._offsets.clear()
            self._inside = False
        self._offsets[kv_length] = kv_offset
        self._seen = (
            max(self._seen, q_offset + q_length) if len(self._offsets) > 1 else q_offset + q_length
        )

    def knows_columns(self, keys: int) -> bool:
        """Whether it was told where a cache of `keys` keys begins."""
        return keys in self._offsets

    def first_column(self, keys: int) -> int:
        """The column of the first of `keys` keys: sliding caches hold the last ones only.

        Raises:
            ModelError: keys that are no tokens, as of a cache that holds several tokens in one.
            UsageError: there are fewer keys than the span mask has tokens, and the model does not
                say which.
        """
        width, seen = self.span.shape[1], self._seen if self._offsets else keys
        if not self.follows and seen < width:
            raise UsageError(
                f"The span mask has {width} tokens and this pass sees {seen}; give a mask of the"
                " whole prompt, and forward it at once."
            )
        if keys in self._offsets:
            return self._offsets[keys]
        if self._offsets and keys != seen:
            raise ModelError(
                f"A layer has {keys} keys for {seen} tokens, so they are not tokens and cannot be"
                " steered; use prompt methods."
            )
        return max(0, width - keys) if self.follows else 0

    def columns(self, rows: int, keys: int) -> tuple[Tensor, Tensor | None]:
        """The span over the keys of a layer, bool [rows, key], and the reply; None where no method
        asks for it, or it has no keys.
        """
        first = self.first_column(keys)
        span, reply = self.span[:, first : first + keys], None
        if span.shape[1] < keys:
            span = torch.nn.functional.pad(span, (0, keys - span.shape[1]))
        if self.has_reply(keys):
            starts = torch.tensor(self.prompt, device=span.device)[:, None]
            reply = (torch.arange(first, first + keys, device=span.device) >= starts) & ~span
        if (copies := self.copies_of(rows)) > 1:
            span, reply = (
                None if part is None else part.repeat_interleave(copies, 0)
                for part in (span, reply)
            )
        return span, reply

    def has_reply(self, keys: int) -> bool:
        """Whether there is a group of generated keys, which some method treats in its own way."""
        return self.span_includes_generated and self.first_column(keys) + keys > min(self.prompt)

    def shift(self, log_odds: Tensor, layer: int) -> Tensor:
        """Applies each row's methods, all of one set, to its log-odds [row, head, query]; rows with
        the same methods are moved together.
        """
        lanes = self.lanes(log_odds)
        if len(lanes) == 1 and lanes[0][1] is None:
            for method in lanes[0][0]:
                log_odds = method.shift(log_odds, layer)
            return log_odds
        shifted = log_odds.clone()
        for methods, rows in lanes:
            moved = log_odds[rows]
            for method in methods:
                moved = method.shift(moved, layer)
            shifted[rows] = moved
        return shifted

    def mass(self, log_odds: Tensor, layer: int) -> Tensor:
        """The sigmoid of `shift`."""
        lanes = self.lanes(log_odds)
        if len(lanes) == 1 and lanes[0][1] is None:
            *before, last = lanes[0][0]
            for method in before:
                log_odds = method.shift(log_odds, layer)
            if direct := getattr(last, "mass", None):
                return direct(log_odds, layer)
            return last.shift(log_odds, layer).sigmoid()
        return self.shift(log_odds, layer).sigmoid()

    def shift_groups(
        self, span: Tensor, reply: Tensor, prompt: Tensor, layer: int
    ) -> tuple[Tensor, Tensor]:
        """Applies methods of both sets to the log-masses [row, head, query] of three groups.

        A method that holds the reply moves the set of span and reply against the rest, any other
        the span against both. Returns the moved log-masses of span and reply; that of the rest
        stays."""
        moved = span.clone(), reply.clone()
        for methods, rows in self.lanes(span):
            own, said, other = (
                part if rows is None else part[rows] for part in (span, reply, prompt)
            )
            for method in methods:
                held, rest = (
                    (torch.logaddexp(own, said), other)
                    if method.span_includes_generated
                    else (own, torch.logaddexp(said, other))
                )
                log_odds = held - rest
                finite = log_odds.isfinite()
                # Else the gradient of what is not taken would be NaN.
                log_odds = log_odds.masked_fill(~finite, 0.0)
                change = torch.where(finite, method.shift(log_odds, layer) - log_odds, 0.0)
                own = own + change
                said = said + change if method.span_includes_generated else said
            where = slice(None) if rows is None else rows
            moved[0][where], moved[1][where] = own, said
        return moved

    def lanes(self, log_odds: Tensor) -> list[_Lane]:
        """The methods of the rows of `log_odds`, grouped; rows without any are left out."""
        rows = log_odds.shape[0]
        if rows not in self._lanes:
            groups: dict[tuple, list[int]] = {}
            copies = self.copies_of(rows)
            for row in range(rows):
                if methods := self.methods[row // copies]:
                    groups.setdefault(methods, []).append(row)
            self._lanes[rows] = [
                (methods, None if len(own) == rows else torch.tensor(own, device=log_odds.device))
                for methods, own in groups.items()
            ]
        return self._lanes[rows]

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


def _only_adds(method: ShiftsAttention) -> bool:
    """Whether a method adds one number to the log-odds, which is adding it to the scores."""
    entry = getattr(method, "table_entry", None)
    return entry is not None and entry == TableEntry(bias=entry.bias)


@dataclass(frozen=True)
class Pass:
    """A forward pass under way.

    Args:
        steering: what its attention does; None: nothing.
        model: whose pass it is, as `blocks` knows it; None for one of this package's decode loop,
            which says itself what to steer.
        masks: whether its masks are of this package's form; else they and its attention are the
            model's own.
        positions: of every query, [row, query], where a key's column is its position and rows are
            of different length; None where the model's own masks are right.
    """

    steering: Steering | None
    model: Any = None
    masks: bool = True
    positions: Tensor | None = None


NEVER_REACHED = (
    "This model's attention does not go through transformers' attention interface, so its mass on"
    " the prompt can be neither read nor moved; use prompt methods such as repetition."
)
PASS: ContextVar[Pass | None] = ContextVar("holdfast_pass", default=None)


@contextmanager
def steered(steering: Steering | None, positions: Tensor | None = None) -> Iterator[None]:
    """Applies `steering` to the forward pass inside, in this thread alone.

    Args:
        steering: what its attention does; None: nothing.
        positions: of every query, as in `Pass`.

    Raises:
        ModelError: a pass inside the block never reached the attention registered here.
    """
    token = PASS.set(Pass(steering, positions=positions))
    try:
        yield
    finally:
        PASS.reset(token)
    if steering is not None and not steering.calls:
        raise ModelError(NEVER_REACHED)
