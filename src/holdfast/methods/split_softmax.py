"""Split-softmax (Li et al. 2024, section 6.2)."""

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

# sigmoid(-100) = 4e-44 is about the least that float32 tells from 0: all mass is on the span
_SURE = 100.0
_TAIL = 40.0  # from here on 1 - pi < 1e-17, and 1 - pi**k equals k * (1 - pi) to double precision


@dataclass(frozen=True)
class SplitSoftmax:
    """Raises the attention mass on the system prompt to a power: pi becomes pi**exponent.

    Li et al. (2024), equation 6, with k = `exponent`; the ratios of the weights inside the span,
    and inside the rest, stay as they are. In log-odds x of pi, with u = k * log(pi): x' = u - log(1
    - exp(u)).

    Args:
        exponent: k in [0, 1]; 1 changes nothing, 0 puts all mass on the span.
        heads: (layer, head) pairs; None for all.

    Raises:
        KnobOutOfRange: `exponent` lies outside [0, 1].
    """

    name: ClassVar[str] = "split-softmax"
    kind: ClassVar[Kind] = Kind.LOG_ODDS
    needs: ClassVar[frozenset[Ability]] = NEEDS[kind]
    source: ClassVar[str] = "Li et al. 2024, eq. 6"
    span_includes_generated: ClassVar[bool] = False

    exponent: float = field(
        metadata=knob(
            "the power k; 1 changes nothing, 0 puts all mass on the span", Number(0, 1), "0.5"
        )
    )
    heads: HeadSet | None = field(default=None, metadata=HEADS)

    def __post_init__(self) -> None:
        check_knobs(self)

    @property
    def table_entry(self) -> TableEntry:
        """The three numbers of `shift` on the heads it touches."""
        return TableEntry(exponent=self.exponent)

    def shift(self, log_odds: Tensor, layer: int) -> Tensor:
        """Log-odds of pi**exponent, [batch, head, query] like `log_odds`, float32 or wider.

        Finite for finite input: at most 100, or `log_odds` where that is larger. Infinities stay (a
            query that sees no span, or nothing else)."""
        if self.exponent == 1:
            return log_odds
        return only_on(self.heads, layer, _power(log_odds, self.exponent), log_odds)

    def mass(self, log_odds: Tensor, layer: int) -> Tensor:
        """pi**exponent itself, [batch, head, query], by fewer operations than the sigmoid of
        `shift`.
        """
        from torch.nn.functional import logsigmoid

        if self.exponent == 0:
            return self.shift(log_odds, layer).sigmoid()
        raised = logsigmoid(log_odds).mul_(self.exponent).exp_()
        return (
            raised if self.heads is None else only_on(self.heads, layer, raised, log_odds.sigmoid())
        )


def _power(x: Tensor, k: float) -> Tensor:
    """Log-odds of sigmoid(x)**k without leaving log space."""
    if k == 0:
        return x.clamp(min=_SURE).where(x > -math.inf, x)
    # Beyond the tail, the gradient of what is not taken would be infinite.
    near = x.clamp(max=_TAIL) if x.requires_grad else x
    log_pi = near.clamp(max=0) - (-near.abs()).exp().log1p()
    u = k * log_pi
    raised = u - (-u.expm1()).log()
    # Where 1 - pi underflows, the log above would be infinite.
    raised = raised.where(x < _TAIL, x - math.log(k))
    raised = raised.minimum(x.clamp(min=_SURE))
    return raised.where(x > -math.inf, x)
