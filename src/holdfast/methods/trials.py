"""Trials: forward passes that a logits processor asks for, and the step that it asks them in."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class AttentionEnds:
    """The two ends of one layer's attention."""

    before: Tensor  # the hidden states that it reads, [..., size]
    after: Tensor  # what it adds to the residual stream, [..., size]


@dataclass(frozen=True)
class Outputs:
    """The outputs of a pass at the last token of each row."""

    logits: Tensor  # [row, vocabulary]
    mass: Tensor | None = None  # on the span, [row, layer, head]; None unless traced
    # of attention by layer, [row, size]; {} unless the trial observes them
    ends: Mapping[int, AttentionEnds] = field(default_factory=dict)

    def of(self, rows: Sequence[int]) -> Outputs:
        """Those of some rows, in this order."""
        rows = list(rows)
        if rows == list(range(len(self.logits))):
            return self
        ends = {
            layer: AttentionEnds(both.before[rows], both.after[rows])
            for layer, both in self.ends.items()
        }
        return Outputs(self.logits[rows], None if self.mass is None else self.mass[rows], ends)

    def put(self, rows: Sequence[int], other: Outputs) -> Outputs:
        """A copy in which some rows have the logits and the mass of another pass."""
        if not rows:
            return self
        import torch

        rows, mass = list(rows), self.mass
        logits = self.logits.to(torch.promote_types(self.logits.dtype, other.logits.dtype)).clone()
        logits[rows] = other.logits.to(logits.dtype)
        if mass is not None and other.mass is not None:
            mass = mass.clone()
            mass[rows] = other.mass
        return Outputs(logits, mass)


@dataclass(frozen=True)
class Trial:
    """A pass that is made again for the last tokens of some rows, steered otherwise."""

    rows: Sequence[int]  # their numbers in the step
    layers: Sequence[Sequence[int]]  # per row, the layers that are steered
    # the factor on the span's keys in those layers; the pass leaves nothing behind. None: the row's
    # attention methods act in those layers alone, and the keys and values of the pass take the
    # place of those before
    key_scale: float | None = None
    observes: bool = False  # whether both ends of attention are wanted


Trials = Generator[Trial, Outputs, Outputs]  # asks for trials, and returns what to draw from


@dataclass(frozen=True)
class Step:
    """A decoding step of the rows that share a logits processor."""

    outputs: Outputs  # of the pass under all methods of the rows
    second: Outputs | None  # of their second streams; None without
    # a token of some rows by number, drawn from these outputs; the same one whenever it is asked
    # for, and below 0 where the logits are not finite
    draw: Callable[[Outputs, Sequence[int]], list[int]]
    layers: int  # how many layers the model has
    attending: tuple[int, ...]  # the layers whose attention can be scaled and observed
    is_prefill: bool  # whether the pass has read the whole prompt
    can_repeat: bool  # whether the last token can be forwarded again
    memory: Sequence[dict[str, Any]]  # per row, what the processor keeps from step to step
