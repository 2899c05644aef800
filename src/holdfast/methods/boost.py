"""InstABoost (arXiv 2506.13734) and GUIDE (arXiv 2409.19001)."""

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
class Boost:
    """Multiplies the attention weights on the span by a factor and renormalises.

    InstABoost (arXiv 2506.13734) with M = `factor`; GUIDE (arXiv 2409.19001) adds delta = log(M) to
    the scores, which is the same. In log-odds: x' = x + log(M).

    Args:
        factor: M of at least 1; 1 changes nothing.
        heads: (layer, head) pairs; None for all.

    Raises:
        KnobOutOfRange: `factor` is below 1.
    """

    name: ClassVar[str] = "boost"
    kind: ClassVar[Kind] = Kind.LOG_ODDS
    needs: ClassVar[frozenset[Ability]] = NEEDS[kind]
    source: ClassVar[str] = (
        "InstABoost, arXiv 2506.13734; GUIDE, arXiv 2409.19001, with delta = log(factor)"
    )
    span_includes_generated: ClassVar[bool] = False

    factor: float = field(metadata=knob("the factor M; 1 changes nothing", Number(1), "4"))
    heads: HeadSet | None = field(default=None, metadata=HEADS)

    def __post_init__(self) -> None:
        check_knobs(self)

    @property
    def table_entry(self) -> TableEntry:
        """The three numbers of `shift` on the heads it touches."""
        return TableEntry(bias=math.log(self.factor))

    def shift(self, log_odds: Tensor, layer: int) -> Tensor:
        """Log-odds of the boosted span, [batch, head, query] like `log_odds`."""
        if self.factor == 1:
            return log_odds
        return only_on(self.heads, layer, log_odds + math.log(self.factor), log_odds)
