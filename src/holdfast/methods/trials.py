"""Trials: forward passes that a logits processor asks for, and the step that it asks them in."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class AttentionEnds:
    """The two ends of one layer's attention.

    Args:
        before: the hidden states that it reads, [..., size].
        after: what it adds to the residual stream, [..., size].
    """

    before: Tensor
    after: Tensor


@dataclass(frozen=True)
class Outputs:
    """The outputs of a pass at the last token of each row.

    Args:
        logits: [row, vocabulary].
        mass: on the span, [row, layer, head]; None unless traced.
        ends: of attention by layer, [row, size]; {} unless the trial observes them.
    """

    logits: Tensor
    mass: Tensor | None = None
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
    """A pass that is made again for the last tokens of some rows, steered otherwise.

    Args:
        rows: their numbers in the step.
        layers: per row, the layers that are steered.
        key_scale: the factor on the span's keys in those layers; the pass leaves nothing behind.
            None: the row's attention methods act in those layers alone, and the keys and values of
            the pass take the place of those before.
        observes: whether both ends of attention are wanted.
    """

    rows: Sequence[int]
    layers: Sequence[Sequence[int]]
    key_scale: float | None = None
    observes: bool = False


Trials = Generator[Trial, Outputs, Outputs]  # asks for trials, and returns what to draw from


@dataclass(frozen=True)
class Step:
    """A decoding step of the rows that share a logits processor.

    Args:
        outputs: of the pass under all methods of the rows.
        second: of their second streams; None without.
        draw: a token of some rows by number, drawn from these outputs; the same one whenever it is
            asked for, and below 0 where the logits are not finite.
        layers: how many layers the model has.
        attending: the layers whose attention can be scaled and observed.
        is_prefill: whether the pass has read the whole prompt.
        can_repeat: whether the last token can be forwarded again.
        memory: per row, what the processor keeps from step to step.
    """

    outputs: Outputs
    second: Outputs | None
    draw: Callable[[Outputs, Sequence[int]], list[int]]
    layers: int
    attending: tuple[int, ...]
    is_prefill: bool
    can_repeat: bool
    memory: Sequence[dict[str, Any]]
