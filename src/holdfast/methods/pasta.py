"""PASTA (Zhang et al. 2024, "Tell your model where to attend")."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

from holdfast.errors import ParameterOutOfRange
from holdfast.methods.heads import HeadSet
from holdfast.methods.parameters import HEADS, Number, Word, check_parameters, parameter
from holdfast.methods.table import TableEntry, TableMethod


@dataclass(frozen=True)
class Pasta(TableMethod):
    """Scales down the attention to the rest of the prompt by alpha on chosen heads, and
    renormalises.

    Zhang et al. (2024), equation 2: a weight on the span stays, one on the rest of the prompt is
    multiplied by `alpha`, and all are divided by their sum. Scaling the rest by alpha is adding
    -log(alpha) to the log-odds of everything else: x' = x - log(alpha). The paper scales tokens of
    the prompt only, so generated tokens keep their weight like the span. The prompt is all that
    stands in front of the reply that is being written: in a dialog, earlier replies belong to it
    and are scaled, whoever wrote them.

    Args:
        alpha: in (0, 1]; 1 changes nothing. The paper uses 0.01.
        heads: (layer, head) pairs; None for all.
        generated: "keep" leaves the weights of the tokens generated in this reply, as the paper
            does, so that a reply is read anew once it is history; "scale" scales them too.

    Raises:
        ParameterOutOfRange: `alpha` lies outside (0, 1].
        UsageError: `generated` is neither of the two.
    """

    name: ClassVar[str] = "pasta"
    source: ClassVar[str] = "Zhang et al. 2024, eq. 2"

    alpha: float = field(
        metadata=parameter(
            "the factor on the rest of the prompt; 1 changes nothing, the paper takes 0.01",
            Number(0, 1, above_low=True),
            "0.01",
        )
    )
    heads: HeadSet | None = field(default=None, metadata=HEADS)
    generated: str = field(
        default="keep",
        metadata=parameter(
            "whether the reply's own tokens keep their weight", Word(("keep", "scale"))
        ),
    )

    def __post_init__(self) -> None:
        if self.alpha == 0:
            raise ParameterOutOfRange(
                f"{self.name} takes alpha above 0 to 1, not 0: it would take away the rest of the"
                " prompt; the paper's 0.01 does not."
            )
        check_parameters(self)

    @property
    def span_includes_generated(self) -> bool:
        """Whether generated tokens keep their weight, as the span does."""
        return self.generated == "keep"

    @property
    def table_entry(self) -> TableEntry:
        """A bias of -log(alpha)."""
        return TableEntry(bias=-math.log(self.alpha))
