# mypy: disable-error-code="import-untyped, untyped-decorator, no-untyped-def, no-untyped-call"
"""The steering table inside a kernel: from log-odds to weights, in float32.

The logarithms of 1 + y and 1 - exp(-a) are written out as series where they would cancel: Triton
has no log1p or expm1 that its interpreter knows.
"""

from __future__ import annotations

import triton
import triton.language as tl

_LEAST = tl.constexpr(1e-37)  # keeps logarithms finite; sigmoid(-log(1e-37)) is 1 in float32
_SURE = tl.constexpr(17.0)  # from here on log(sigmoid(x)) is -exp(-x) to float32's last bit


@triton.jit
def moved(log_odds, bias, exponent, floor):
    """x' of log-odds x, finite where x is finite.

    With a = -exponent * log(sigmoid(x + bias)), the log-odds of exp(-a) are -log(expm1(a)).
    """
    shifted = log_odds + bias
    y = tl.exp(-tl.abs(shifted))
    z = y / (2.0 + y)  # log(1 + y) = 2 * artanh(z), and z is at most 1/3
    zz = z * z
    series = 1.0 / 7 + zz * (1.0 / 9 + zz * (1.0 / 11 + zz * (1.0 / 13 + zz * (1.0 / 15))))
    log1p = 2.0 * z * (1.0 + zz * (1.0 / 3 + zz * (1.0 / 5 + zz * series)))
    a = exponent * (tl.maximum(-shifted, 0.0) + log1p)
    expm1 = a * (1 + a / 2 * (1 + a / 3 * (1 + a / 4 * (1 + a / 5 * (1 + a / 6 * (1 + a / 7))))))
    near = -tl.log(tl.maximum(expm1, _LEAST))
    far = -a - tl.log(tl.maximum(1.0 - tl.exp(-a), 0.25))  # 0.25 only where `near` is taken
    raised = tl.where(a < 0.5, near, far)
    raised = tl.where(shifted > _SURE, shifted - tl.log(tl.maximum(exponent, _LEAST)), raised)
    raised = tl.where(exponent == 1.0, shifted, raised)
    return tl.maximum(raised, floor)


@triton.jit
def sigmoid(x):
    """Without an overflow on either side."""
    y = tl.exp(-tl.abs(x))
    return tl.where(x >= 0, 1.0, y) / (1.0 + y)


@triton.jit
def weights(span_top, span_total, rest_top, rest_total, bias, exponent, floor):
    """What the outputs of span and rest are weighted with.

    Args:
        span_top, rest_top: the largest score of each group, in units of log(2).
        span_total, rest_total: the sum of 2**(score - top) in each, 0 where it is not in sight.
        bias, exponent, floor: of the table.
    """
    has_span = span_total > 0
    has_rest = rest_total > 0
    both = has_span & has_rest
    tops = tl.where(both, span_top, 0.0) - tl.where(both, rest_top, 0.0)
    totals = tl.log(tl.where(both, span_total, 1.0)) - tl.log(tl.where(both, rest_total, 1.0))
    x = moved(tops * 0.6931471805599453 + totals, bias, exponent, floor)
    on_span = tl.where(both, sigmoid(x), tl.where(has_span, 1.0, 0.0))
    on_rest = tl.where(both, sigmoid(-x), tl.where(has_rest, 1.0, 0.0))
    return on_span, on_rest
