"""InstABoost (arXiv 2506.13734) and GUIDE (arXiv 2409.19001)."""

from __future__ import annotations

import math
from typing import ClassVar

from holdfast.methods.heads import HeadSet
from holdfast.methods.parameters import HEADS, method, number, parameter
from holdfast.methods.table import TableEntry, TableMethod


@method
class Boost(TableMethod):
    """Multiplies the attention weights on the span by a factor and renormalises.

    InstABoost (arXiv 2506.13734) with M = `factor`; GUIDE (arXiv 2409.19001) adds delta = log(M) to
    the scores, which is the same. In log-odds: x' = x + log(M).
    """

    name: ClassVar[str] = "boost"
    source: ClassVar[str] = (
        "InstABoost, arXiv 2506.13734; GUIDE, arXiv 2409.19001, with delta = log(factor)"
    )
    span_includes_generated: ClassVar[bool] = False

    factor: float = parameter("the factor M; 1 changes nothing", number(1), "4")
    heads: HeadSet | None = parameter(*HEADS, default=None)

    @property
    def table_entry(self) -> TableEntry:
        """A bias of log(M)."""
        return TableEntry(bias=math.log(self.factor))
