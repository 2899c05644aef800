"""Spotlight (arXiv 2505.12025), made exact."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from holdfast.methods.heads import HeadSet, only_on
from holdfast.methods.kinds import NEEDS, Ability, Kind
from holdfast.methods.knob import HEADS, Number, check_knobs, knob
from holdfast.methods.table import TableEntry

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Spotlight:
    """Raises the attention mass on the span to a target where it is lower, and leaves it where it
    is not.

    Spotlight (arXiv 2505.12025) adds log(psi / pi) to the scores of the span when its mass pi is
    below psi = `target`, which leaves less than psi after normalising. Here the mass becomes
    exactly psi: x' = max(x, logit(psi)).

    Args:
        target: psi in [0, 1); 0 changes nothing.
        heads: (layer, head) pairs; None for all.

    Raises:
        KnobOutOfRange: `target` lies outside [0, 1).
    """

    name: ClassVar[str] = "spotlight"
    kind: ClassVar[Kind] = Kind.LOG_ODDS
    needs: ClassVar[frozenset[Ability]] = NEEDS[kind]
    source: ClassVar[str] = "Spotlight, arXiv 2505.12025, made exact"
    span_includes_generated: ClassVar[bool] = False

    target: float = field(
        metadata=knob("the mass psi; 0 changes nothing", Number(0, 1, below_high=True), "0.3")
    )
    heads: HeadSet | None = field(default=None, metadata=HEADS)

    def __post_init__(self) -> None:
        check_knobs(self)

    @property
    def table_entry(self) -> TableEntry:
        """The three numbers of `shift` on the heads it touches."""
        if self.target == 0:
            return TableEntry()
        return TableEntry(floor=math.log(self.target) - math.log1p(-self.target))

    def shift(self, log_odds: Tensor, layer: int) -> Tensor:
        """Log-odds of the raised mass, [batch, head, query] like `log_odds`; a query that sees no
        span keeps -inf.
        """
        if self.target == 0:
            return log_odds
        raised = log_odds.clamp(min=math.log(self.target) - math.log1p(-self.target)).where(
            log_odds > -math.inf, log_odds
        )
        return only_on(self.heads, layer, raised, log_odds)
