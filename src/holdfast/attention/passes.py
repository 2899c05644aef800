"""A forward pass under way: whose it is, how it is steered, and the mass that it recorded."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from holdfast.attention.batch_steering import BatchSteering
from holdfast.attention.extent import Starts
from holdfast.attention.pass_columns import PassColumns
from holdfast.errors import Unsteerable

Plan = TypeVar("Plan")


@dataclass(frozen=True)
class PassMasses:
    """The mass on the span in one pass, by layer, in order; empty unless it is traced."""

    # after steering, at each row's last query, [row, head]
    steered: dict[int, Tensor] = field(default_factory=dict)
    uniform: dict[int, Tensor] = field(default_factory=dict)  # that of uniform attention, [row]


class _PlanEntry(NamedTuple):
    kind: str
    size: tuple[int, int]
    mask: Tensor | None
    plan: Any


@dataclass
class Plans:
    """Values that the layers of a pass share, by kind, and by the size and mask of a layer.

    There are as many as there are kinds of layers, so they are searched one by one; a mask is known
    by its tensor, as comparing its values would wait for the device.
    """

    _entries: list[_PlanEntry] = field(default_factory=list, init=False)

    def get(
        self, kind: str, size: tuple[int, int], mask: Tensor | None, make: Callable[[], Plan]
    ) -> Plan:
        """The plan of this kind for queries x keys under a mask, made if there is none yet."""
        for entry in self._entries:
            if entry.kind == kind and entry.size == size and entry.mask is mask:
                return entry.plan  # type: ignore[no-any-return]
        plan = make()
        self._entries.append(_PlanEntry(kind, size, mask, plan))
        return plan

    def clear(self) -> None:
        """Drops the plans of the pass before."""
        self._entries.clear()


@dataclass(eq=False)
class PassState:
    """A steered pass: where its keys are, the layers it has reached, and the mass they recorded.

    A model that runs its layers several times in one call of `forward` makes as many passes.
    """

    steering: BatchSteering
    passes: list[PassMasses] = field(default_factory=list)  # so far, the latest one last
    # per row of this pass, the query whose mass is recorded, which padding may follow; None: the
    # last one of every row
    last: Tensor | None = None
    entered: set[int] = field(default_factory=set)  # the layers that were reached
    plans: Plans = field(default_factory=Plans)  # of the latest pass
    columns: PassColumns = field(init=False)  # of the latest pass
    _layer: int = field(default=-1, init=False)  # the one that was entered last
    # whether masks were made for a pass that has not entered a layer yet
    _masks_made: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        self.columns = PassColumns(self.steering)

    @property
    def masses(self) -> Sequence[Tensor]:
        """The mass in every layer of the latest pass, in order, [row, head]; empty if untraced."""
        return list(self.passes[-1].steered.values()) if self.passes else []

    def report_keys(
        self, q_offset: int | Tensor, q_length: int, kv_offset: int | Starts, kv_length: int
    ) -> None:
        """Takes the columns of keys from the masks of a pass; see `PassColumns.report`."""
        if not self._masks_made:
            self.columns.clear()
            self._masks_made = True
        self.columns.report(q_offset, q_length, kv_offset, kv_length)

    def enter(self, layer: int) -> None:
        """Called by each layer, by some twice; a layer before the previous one begins a pass."""
        self.entered.add(layer)
        again = layer == self._layer and not self._masks_made
        self._masks_made = False
        if not (again or layer > self._layer) or not self.passes:
            self.passes.append(PassMasses())
            self.plans.clear()
        self._layer = layer

    @property
    def has_noted(self) -> bool:
        """Whether the current layer has recorded its mass."""
        return self._layer in self.passes[-1].steered

    def note(self, mass: Tensor) -> None:
        """Records the mass [row, head] of the current layer; if it attends twice, the last."""
        self.passes[-1].steered[self._layer] = mass

    def note_uniform(self, mass: Tensor) -> None:
        """Records the mass [row] of uniform attention in the current layer."""
        self.passes[-1].uniform[self._layer] = mass


@dataclass(frozen=True, eq=False)
class ModelParts:
    """The parts of a model with an open block, which set it apart from a model in its passes."""

    modules: Container[torch.nn.Module]
    # its cross-attention, whose keys are an encoder's and not the prompt's
    cross: Container[torch.nn.Module]
    configs: Sequence[object]

    def has_config(self, config: object) -> bool:
        """Whether a configuration is one of this model's."""
        return any(config is other for other in self.configs)


@dataclass(frozen=True)
class Pass:
    """A forward pass under way."""

    state: PassState | None  # of its steering; None if it has none
    # the model with an open block; None for a pass of this package's decode loop, which sets its
    # own steering
    model: ModelParts | None = None
    # of every query, [row, query], if a key's column is its position and row lengths differ; None
    # if the model's own masks are right
    positions: Tensor | None = None
    # where the keys of windowed layers begin, if that differs between rows
    starts: Starts | None = None

    def crosses(self, module: torch.nn.Module) -> bool:
        """Whether a module is the cross-attention of the model with an open block."""
        return self.model is not None and module in self.model.cross


PASS: ContextVar[Pass | None] = ContextVar("holdfast_pass", default=None)
NEVER_REACHED = (
    "This model's attention does not go through transformers' attention interface, so its mass on"
    " the prompt can be neither read nor moved; use prompt methods such as repetition."
)


@contextmanager
def steered(
    steering: BatchSteering | None, positions: Tensor | None = None, starts: Starts | None = None
) -> Iterator[PassState | None]:
    """Steers the forward pass inside, in this thread only; with None, it is not steered.

    Raises:
        Unsteerable: the pass never reached our attention.
    """
    state = None if steering is None else PassState(steering)
    token = PASS.set(Pass(state, positions=positions, starts=starts))
    try:
        yield state
    finally:
        PASS.reset(token)
    if state is not None and not state.entered:
        raise Unsteerable(NEVER_REACHED)
