"""PASTA (Zhang et al. 2024, "Tell your model where to attend")."""

from __future__ import annotations

import math
from typing import ClassVar

from holdfast.methods.heads import HeadSet
from holdfast.methods.parameters import HEADS, method, number, parameter, word
from holdfast.methods.table import TableEntry, TableMethod


@method
class Pasta(TableMethod):
    """Scales down the attention to the rest of the prompt by alpha on chosen heads, and
    renormalises.

    Zhang et al. (2024), equation 2: a weight on the span stays, one on the rest of the prompt is
    multiplied by `alpha`, and all are divided by their sum. Scaling the rest by alpha is adding
    -log(alpha) to the log-odds of everything else: x' = x - log(alpha). The paper scales tokens of
    the prompt only, so generated tokens keep their weight like the span; `generated="scale"` scales
    them too. The prompt is all that stands before the reply that is being written: in a dialog,
    earlier replies belong to it and are scaled, whoever wrote them.
    """

    name: ClassVar[str] = "pasta"
    source: ClassVar[str] = "Zhang et al. 2024, eq. 2"

    alpha: float = parameter(
        "the factor on the rest of the prompt; 1 changes nothing, the paper takes 0.01",
        number(0, 1, above_low=True),
        "0.01",
    )
    heads: HeadSet | None = parameter(*HEADS, default=None)
    generated: str = parameter(
        "whether the reply's own tokens keep their weight", word("keep", "scale"), default="keep"
    )

    @property
    def span_includes_generated(self) -> bool:
        """Whether generated tokens keep their weight, as the span does."""
        return self.generated == "keep"

    @property
    def table_entry(self) -> TableEntry:
        """A bias of -log(alpha)."""
        return TableEntry(bias=-math.log(self.alpha))
