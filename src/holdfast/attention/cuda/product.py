# mypy: disable-error-code="import-untyped, untyped-decorator, no-untyped-def"
"""Matrix products in float32, of inputs as they are."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def product(left, right, added, WIDEN: tl.constexpr):
    """`left` @ `right` + `added`, float32; no TF32 for float32 inputs.

    WIDEN converts the inputs first, which changes no product: Triton's interpreter takes the bits
    of bfloat16 for integers.
    """
    if WIDEN:
        left = left.to(tl.float32)
        right = right.to(tl.float32)
    return tl.dot(left, right, added, input_precision="ieee")
