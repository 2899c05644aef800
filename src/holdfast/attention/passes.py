"""The current forward pass: its model, its steering, and the mass that it records.

A pass is one call of the model's `forward`. The mass is the share of a query's attention weights
on the span, the tokens that the steering's methods move attention to.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor

from holdfast.attention.batch_steering import BatchSteering
from holdfast.attention.key_groups import Starts
from holdfast.attention.pass_columns import PassColumns
from holdfast.errors import Unsteerable

NEVER_REACHED = (
    "This model's attention does not go through transformers' attention interface, so its mass on"
    " the prompt can neither be read nor moved; use prompt methods such as repetition."
)
Shared = TypeVar("Shared")


@dataclass(frozen=True)
class PassMasses:
    """The mass on the span in one pass, by layer, in order; empty unless it is traced."""

    # after steering, at each row's last query, [row, head]
    steered: dict[int, Tensor] = field(default_factory=dict)
    uniform: dict[int, Tensor] = field(default_factory=dict)  # under uniform attention, [row]


@dataclass(eq=False)
class PassState:
    """The state of a steered call of `forward`: its columns, the layers reached, and their mass.

    A model may run its layers several times in one call; each time counts as a pass.
    """

    steering: BatchSteering
    passes: list[PassMasses] = field(default_factory=list)  # the passes so far, in order
    # per row, the query whose mass is recorded, as padding may follow it; None: the last query of
    # every row
    last_queries: Tensor | None = None
    entered: set[int] = field(default_factory=set)  # the layers reached so far
    columns: PassColumns = field(init=False)  # of the latest pass
    # what the layers of the latest pass share; see `shared`
    _shared: dict[tuple[str, tuple[int, int], Tensor | None], Any] = field(
        default_factory=dict, init=False
    )
    _layer: int = field(default=-1, init=False)  # the layer entered last
    # whether the model is between making the masks of a pass and entering its first layer
    _is_before_layers: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        self.columns = PassColumns(self.steering)

    @property
    def masses(self) -> Sequence[Tensor]:
        """The mass in each layer of the latest pass, in order, [row, head]; empty if untraced."""
        return list(self.passes[-1].steered.values()) if self.passes else []

    def report_keys(
        self, q_offset: int | Tensor, q_length: int, kv_offset: int | Starts, kv_length: int
    ) -> None:
        """Records the columns of a mask of the pass; see `PassColumns.report`."""
        if not self._is_before_layers:
            self.columns.clear()
            self._is_before_layers = True
        self.columns.report(q_offset, q_length, kv_offset, kv_length)

    def enter(self, layer: int) -> None:
        """Records that a layer is reached; a layer before the previous one begins a new pass.

        Some models call this twice for the same layer, which begins none, unless masks were made in
        between: then a model with a single layer runs it again.
        """
        self.entered.add(layer)
        is_same_layer_again = layer == self._layer and self._is_before_layers
        begins_pass = not self.passes or layer < self._layer or is_same_layer_again
        self._is_before_layers = False
        if begins_pass:
            self.passes.append(PassMasses())
            self._shared.clear()
        self._layer = layer

    def shared(
        self, kind: str, size: tuple[int, int], mask: Tensor | None, make: Callable[[], Shared]
    ) -> Shared:
        """Returns a value that the layers of a pass share; the first of them makes it.

        Masks are compared by identity, as tensors are hashed, so nothing waits for the device.

        Args:
            kind: names the value.
            size: the numbers of queries and keys of the layer.
            mask: the mask of the layer; None if the value does not depend on it.
            make: makes the value.
        """
        key = kind, size, mask
        if key not in self._shared:
            self._shared[key] = make()
        value: Shared = self._shared[key]
        return value

    @property
    def has_recorded(self) -> bool:
        """Whether the current layer has recorded its mass."""
        return self._layer in self.passes[-1].steered

    def record_mass(self, mass: Tensor) -> None:
        """Records the mass [row, head] of the current layer; a second call replaces the first."""
        self.passes[-1].steered[self._layer] = mass

    def record_uniform(self, mass: Tensor) -> None:
        """Records the mass [row] under uniform attention in the current layer."""
        self.passes[-1].uniform[self._layer] = mass


@dataclass(frozen=True, eq=False)
class ModelParts:
    """The parts of a model with an open block, to tell it from other models that it may call."""

    modules: Container[torch.nn.Module]
    # its cross-attention modules, whose keys come from an encoder and not from the prompt
    cross: Container[torch.nn.Module]
    configs: Sequence[object]

    def has_config(self, config: object) -> bool:
        """Whether a configuration is one of this model's."""
        return any(config is other for other in self.configs)


@dataclass(frozen=True)
class Pass:
    """The current forward pass."""

    state: PassState | None  # None if the pass is not steered
    # the model with an open block; None for a pass of this package's decode loop
    model: ModelParts | None = None
    # the position of every query, [row, query], from which masks are made if rows differ in length;
    # None if the model's own masks are right
    positions: Tensor | None = None
    # where the keys of windowed layers begin; None if all rows begin at the same column
    starts: Starts | None = None

    def crosses(self, module: torch.nn.Module) -> bool:
        """Whether a module is the cross-attention of the model with an open block."""
        return self.model is not None and module in self.model.cross


PASS: ContextVar[Pass | None] = ContextVar("holdfast_pass", default=None)


@contextmanager
def steer_pass(
    steering: BatchSteering | None, positions: Tensor | None = None, starts: Starts | None = None
) -> Iterator[PassState | None]:
    """Steers the forward pass that runs inside this context, in this thread only.

    Args:
        steering: the steering; None: the pass is not steered.
        positions: the position of every query, [row, query], from which masks are made if rows
            differ in length; None if the model's own masks are right.
        starts: where the keys of windowed layers begin; None if all rows begin at the same column.

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
