"""A gate on steered tokens (after DIRECTER: Kang and Kim 2026, arXiv 2603.06745)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from holdfast import knobs
from holdfast.errors import UsageError
from holdfast.methods.kinds import NEEDS, Ability, Kind, kind_of
from holdfast.methods.protocols import Method, ShiftsAttention

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Gate:
    """Takes a steered token only if the unsteered model gives it at least `threshold` times its
    best token's probability.

    Else the token is drawn again with half of the layers steered (the later ones), then a quarter,
    and at last from the unsteered model, which is forwarded in the same batch. DIRECTER scales keys
    and ranks layers by a sensitivity analysis; here any attention methods are gated, and layers go
    by depth. The first token of a reply falls back to the unsteered model at once, for the prompt's
    pass is not repeated.

    Args:
        methods: the attention methods behind the gate, at least one.
        threshold: in [0, 1]; 0 lets every token pass, 1 only those the unsteered model likes best.

    Raises:
        KnobOutOfRange: `threshold` lies outside [0, 1].
        UsageError: no methods, or others than attention methods.
    """

    name: ClassVar[str] = "gate"
    kind: ClassVar[Kind] = Kind.GATE
    needs: ClassVar[frozenset[Ability]] = NEEDS[kind]

    methods: tuple[ShiftsAttention, ...]
    threshold: float

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "threshold", knobs.number_between(self.name, "threshold", self.threshold, 0, 1)
        )
        object.__setattr__(self, "methods", tuple(self.methods))
        wrong: list[Method] = [
            method for method in self.methods if kind_of(method) is not Kind.LOG_ODDS
        ]
        if wrong or not self.methods:
            raise UsageError(
                f"gate takes attention methods, at least one, not {wrong[0] if wrong else ()!r};"
                " put other methods beside it."
            )

    def accepts(self, token: int, other: Tensor) -> bool:
        """Whether the unsteered `other`, logits [vocabulary], finds the token plausible."""
        chances = other.float().softmax(-1)
        return bool(chances[token] >= self.threshold * chances.max())
