"""InstABoost (arXiv 2506.13734) and GUIDE (arXiv 2409.19001)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from holdfast.methods.heads import HeadSet
from holdfast.methods.parameters import HEADS, Number, parameter
from holdfast.methods.table import TableEntry, TableMethod


@dataclass(frozen=True)
class Boost(TableMethod):
    """Multiplies the attention weights on the span by a factor and renormalises.

    InstABoost (arXiv 2506.13734) with M = `factor`; GUIDE (arXiv 2409.19001) adds delta = log(M) to
    the scores, which is the same. In log-odds: x' = x + log(M).

    Args:
        factor: M of at least 1; 1 changes nothing.
        heads: (layer, head) pairs; None for all.

    Raises:
        ParameterOutOfRange: `factor` is below 1.
    """

    name: ClassVar[str] = "boost"
    source: ClassVar[str] = (
        "InstABoost, arXiv 2506.13734; GUIDE, arXiv 2409.19001, with delta = log(factor)"
    )
    span_includes_generated: ClassVar[bool] = False

    factor: float = field(metadata=parameter("the factor M; 1 changes nothing", Number(1), "4"))
    heads: HeadSet | None = field(default=None, metadata=HEADS)

    @property
    def table_entry(self) -> TableEntry:
        """A bias of log(M)."""
        return TableEntry(bias=math.log(self.factor))
