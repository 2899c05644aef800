"""The closed family of log-odds methods: three numbers say what a method does.

With x the log-odds of the attention mass on the span,

    x1 = x + bias;   x2 = logit(sigmoid(x1)**exponent);   x' = max(x2, floor)

InstABoost, GUIDE and PASTA have a bias, split-softmax an exponent, Spotlight a floor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class TableEntry:
    """What a method of the family does on one head; the default changes nothing.

    Args:
        bias: added to the log-odds.
        exponent: the power of the mass, in [0, 1].
        floor: the least log-odds; -inf for none.
    """

    bias: float = 0.0
    exponent: float = 1.0
    floor: float = -math.inf

    def then(self, later: TableEntry) -> TableEntry | None:
        """Both, `later` behind this one, as one entry; None where the family has none.

        A floor passes through what is behind it, since all steps are monotonic. A bias joins the
        bias before it, unless a power stands between the two.
        """
        if later.bias != 0 and self.exponent != 1:
            return None
        floor = raised(self.floor + later.bias, later.exponent)
        return TableEntry(
            self.bias + later.bias,
            self.exponent * later.exponent,
            max(floor, later.floor),
        )


def raised(log_odds: float, exponent: float) -> float:
    """The log-odds of sigmoid(log_odds)**exponent; where there is no mass there is none after."""
    if exponent == 1 or math.isinf(log_odds):
        return log_odds
    if exponent == 0:
        return math.inf
    log_mass = min(log_odds, 0.0) - math.log1p(math.exp(-abs(log_odds)))
    power = exponent * log_mass
    if power == 0:  # 1 - mass underflows, and (1 - mass**k) is k * (1 - mass)
        return log_odds - math.log(exponent)
    return power - math.log(-math.expm1(power))
