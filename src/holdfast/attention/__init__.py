"""Attention whose mass on a span can be read and moved, at the speed of plain attention.

Every attention method moves the log-odds x = lse(scores on the span) - lse(scores on the rest) to
x' and keeps the ratios inside each group, so a head's output becomes sigmoid(x') * O_span +
sigmoid(-x') * O_rest: no attention matrix is needed. `layers.holdfast_attention` computes a
steered layer; docs/how.md introduces the other files.
"""

from __future__ import annotations

from holdfast.attention.batch_steering import AttentionTrace, BatchSteering
from holdfast.attention.extent import Starts
from holdfast.attention.layers import IMPLEMENTATION, holdfast_attention
from holdfast.attention.pass_refusals import cache_of
from holdfast.attention.passes import PassState, steered
from holdfast.attention.patching import install
from holdfast.attention.reaching import check_methods, layers_with_attention
from holdfast.attention.rotary import EVERY_LENGTH, SAME_FACTORS, RotaryLengths

__all__ = [
    "EVERY_LENGTH",
    "IMPLEMENTATION",
    "SAME_FACTORS",
    "AttentionTrace",
    "BatchSteering",
    "PassState",
    "RotaryLengths",
    "Starts",
    "cache_of",
    "check_methods",
    "holdfast_attention",
    "install",
    "layers_with_attention",
    "steered",
]
