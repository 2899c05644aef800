"""A gate on steered tokens (after DIRECTER: Kang and Kim 2026, arXiv 2603.06745)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from holdfast.methods.kinds import Kind
from holdfast.methods.parameters import AttentionMethods, Number, check_parameters, parameter
from holdfast.methods.protocols import ShiftsAttention

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
    source: ClassVar[str] = "after Kang and Kim 2026, arXiv 2603.06745"

    methods: tuple[ShiftsAttention, ...] = field(
        metadata=parameter(
            "what the gate lets through", AttentionMethods(), "[split-softmax:exponent=0.5]"
        )
    )
    threshold: float = field(
        metadata=parameter(
            "0 lets every token pass, 1 only those the unsteered model likes best",
            Number(0, 1),
            "0.1",
        )
    )

    def __post_init__(self) -> None:
        check_parameters(self)

    def accepts(self, tokens: Tensor, other: Tensor) -> Tensor:
        """Whether the unsteered model finds tokens plausible.

        Args:
            tokens: int64 [row].
            other: logits of the unsteered stream, [row, vocabulary].

        Returns:
            bool [row].
        """
        chances = other.float().softmax(-1)
        theirs = chances.gather(-1, tokens[:, None])[:, 0]
        return theirs >= self.threshold * chances.amax(-1)
