# mypy: disable-error-code="import-untyped, untyped-decorator, no-untyped-def, no-untyped-call"
"""The formula of the steering table for Triton kernels, and a product that they share.

The logarithms of 1 + y and 1 - exp(-a) are written out as series to avoid cancellation, because
Triton's interpreter supports no log1p or expm1.
"""

from __future__ import annotations

import triton
import triton.language as tl

_TINY = tl.constexpr(1e-37)  # keeps logarithms finite; sigmoid(-log(1e-37)) is 1 in float32
_ASYMPTOTIC = tl.constexpr(17.0)  # from here on log(sigmoid(x)) equals -exp(-x) in float32


def padded_size(head_size: int) -> int:
    """The power of two that a head is padded to, as the matrix units accept no other size."""
    return max(16, 1 << (head_size - 1).bit_length())


@triton.jit
def product(left, right, added, WIDEN: tl.constexpr):
    """Computes `left` @ `right` + `added` in float32, without TF32 for float32 inputs.

    WIDEN converts the inputs to float32 first, which does not change the products. Triton's
    interpreter needs that: it would treat the bits of bfloat16 as integers.
    """
    if WIDEN:
        left = left.to(tl.float32)
        right = right.to(tl.float32)
    return tl.dot(left, right, added, input_precision="ieee")


@triton.jit
def move_log_odds(log_odds, bias, exponent, floor):
    """Computes x' from log-odds x by the steering table; finite where x is finite.

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
    near = -tl.log(tl.maximum(expm1, _TINY))
    far = -a - tl.log(tl.maximum(1.0 - tl.exp(-a), 0.25))  # 0.25 only where `near` is taken
    raised = tl.where(a < 0.5, near, far)
    raised = tl.where(shifted > _ASYMPTOTIC, shifted - tl.log(tl.maximum(exponent, _TINY)), raised)
    raised = tl.where(exponent == 1.0, shifted, raised)
    return tl.maximum(raised, floor)


@triton.jit
def sigmoid(x):
    """Computes the sigmoid without overflow on either side."""
    y = tl.exp(-tl.abs(x))
    return tl.where(x >= 0, 1.0, y) / (1.0 + y)
