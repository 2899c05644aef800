"""A forward pass under a steering: how far it has got, what it recorded, and whose it is."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from holdfast.attention.batch_steering import BatchSteering
from holdfast.attention.extent import Groups, Plans, Starts
from holdfast.errors import ModelError, UsageError


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
        generated = self.steering.first_generated
        firsts = first.columns if isinstance(first, Starts) else [first] * len(generated)
        every = zip(firsts, self.steering.includes, generated, strict=True)
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

    def columns(self, num_rows: int, keys: int) -> tuple[Tensor, Tensor | None]:
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
        if (copies := self.steering.copies_of(num_rows)) > 1:
            span = span.repeat_interleave(copies, 0)
            generated = None if generated is None else generated.repeat_interleave(copies, 0)
        return span, generated

    def members(self, num_rows: int, keys: int) -> Tensor:
        """The first of the two groups, bool [row, key]."""
        span, generated = self.columns(num_rows, keys)
        if generated is None:
            return span
        copies = self.steering.copies_of(num_rows)
        includes = self.steering.on_device[1].repeat_interleave(copies, 0)
        return span | (generated & includes)


class SteeredModel(Protocol):
    """A model with an open block: `OpenModel` of `holdfast.attention.blocks`."""

    @property
    def modules(self) -> Container[torch.nn.Module]:
        """Its modules."""

    @property
    def cross(self) -> Container[torch.nn.Module]:
        """Its cross-attention modules, whose keys are an encoder's and not the prompt's."""

    def has_config(self, config: object) -> bool:
        """Whether a configuration is one of this model's."""


@dataclass(frozen=True)
class Pass:
    """A forward pass under way."""

    state: PassState | None  # of its steering; None if it has none
    # the open model; None for a pass of this package's decode loop, which sets its own steering
    model: SteeredModel | None = None
    # of every query, [row, query], if a key's column is its position and row lengths differ; None
    # if the model's own masks are right
    positions: Tensor | None = None
    # where the keys of windowed layers begin, if that differs between rows
    starts: Starts | None = None


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
