"""InstABoost (arXiv 2506.13734) and GUIDE (arXiv 2409.19001)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from holdfast import knobs
from holdfast.methods.heads import HeadSet, checked_heads, only_on
from holdfast.methods.kinds import NEEDS, Ability, Kind
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
    span_includes_generated: ClassVar[bool] = False

    factor: float
    heads: HeadSet | None = None

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "factor", knobs.number_between(self.name, "factor", self.factor, 1)
        )
        object.__setattr__(self, "heads", checked_heads(self.name, self.heads))

    @property
    def table_entry(self) -> TableEntry:
        """The three numbers of `shift` on the heads it touches."""
        return TableEntry(bias=math.log(self.factor))

    def shift(self, log_odds: Tensor, layer: int) -> Tensor:
        """Log-odds of the boosted span, [batch, head, query] like `log_odds`."""
        if self.factor == 1:
            return log_odds
        return only_on(self.heads, layer, log_odds + math.log(self.factor), log_odds)
