"""Spotlight (arXiv 2505.12025), made exact."""

from __future__ import annotations

import math
from typing import ClassVar

from holdfast.methods.heads import HeadSet
from holdfast.methods.parameters import HEADS, method, number, parameter
from holdfast.methods.table import TableEntry, TableMethod


@method
class Spotlight(TableMethod):
    """Raises the attention mass on the span to a target where it is lower, and leaves it where it
    is not.

    Spotlight (arXiv 2505.12025) adds log(psi / pi) to the scores of the span when its mass pi is
    below psi = `target`, which leaves less than psi after normalising. Here the mass becomes
    exactly psi: x' = max(x, logit(psi)).
    """

    name: ClassVar[str] = "spotlight"
    source: ClassVar[str] = "Spotlight, arXiv 2505.12025, made exact"
    span_includes_generated: ClassVar[bool] = False

    target: float = parameter(
        "the mass psi; 0 changes nothing", number(0, 1, below_high=True), "0.3"
    )
    heads: HeadSet | None = parameter(*HEADS, default=None)

    @property
    def table_entry(self) -> TableEntry:
        """A floor of logit(psi)."""
        if self.target == 0:
            return TableEntry()
        return TableEntry(floor=math.log(self.target) - math.log1p(-self.target))
