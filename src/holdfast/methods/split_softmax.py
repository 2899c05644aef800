"""Split-softmax (Li et al. 2024, section 6.2)."""

from __future__ import annotations

from typing import ClassVar

from holdfast.methods.heads import HeadSet
from holdfast.methods.parameters import HEADS, method, number, parameter
from holdfast.methods.table import TableEntry, TableMethod


@method
class SplitSoftmax(TableMethod):
    """Raises the attention mass on the system prompt to a power: pi becomes pi**exponent.

    Li et al. (2024), equation 6, with k = `exponent`; the ratios of the weights inside the span,
    and inside the rest, stay as they are. In log-odds x of pi, with u = k * log(pi): x' = u - log(1
    - exp(u)).
    """

    name: ClassVar[str] = "split-softmax"
    source: ClassVar[str] = "Li et al. 2024, eq. 6"
    span_includes_generated: ClassVar[bool] = False

    exponent: float = parameter(
        "the power k; 1 changes nothing, 0 puts all mass on the span", number(0, 1), "0.5"
    )
    heads: HeadSet | None = parameter(*HEADS, default=None)

    @property
    def table_entry(self) -> TableEntry:
        """An exponent of k."""
        return TableEntry(exponent=self.exponent)
