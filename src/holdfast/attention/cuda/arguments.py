"""What the kernels are told beside queries, keys and values: the steering of a layer, and which
columns a row sees and holds on to.

All of it is tensors on the device, so that a captured graph can be replayed after they are written
to.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class LayerTable:
    """The steering table of a layer: x' = max(logit(sigmoid(x + bias)**exponent), floor).

    x is the log-odds of the attention mass on the span. A query that sees no span, or nothing else,
    keeps what it has.

    Args:
        bias: float32 [B, H]; 0 changes nothing.
        exponent: float32 [B, H], at least 0; 1 changes nothing.
        floor: float32 [B, H]; -inf changes nothing.
    """

    bias: Tensor
    exponent: Tensor
    floor: Tensor


@dataclass(frozen=True)
class Columns:
    """Which columns (keys) of each row belong to the span, and which are in sight at all.

    Args:
        span: bool [B, W]; columns from W on are not in the span.
        prompt: int [B], the first generated column of each row; None with `holds_generated` None.
        holds_generated: bool [B], whether columns from `prompt` on count as span too; None: no
            row's do.
        first: int [B], the first column in sight (behind padding on the left); None: 0.
        length: int [B], one more than the last column in sight; None: all keys.
        seen: bool [B, K], columns in sight beside `first` and `length`, for a pass of one query;
            None: all.
    """

    span: Tensor
    prompt: Tensor | None = None
    holds_generated: Tensor | None = None
    first: Tensor | None = None
    length: Tensor | None = None
    seen: Tensor | None = None


def padded_size(head_size: int) -> int:
    """The power of two that holds a head: the matrix units take no other sizes."""
    return max(16, 1 << (head_size - 1).bit_length())


def row_major(states: Tensor) -> Tensor:
    """Itself where the numbers of a head lie side by side, as in every cache; else a copy."""
    return states if states.stride(-1) == 1 else states.contiguous()
