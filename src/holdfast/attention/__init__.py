"""Attention whose mass on a span can be read and moved, at the speed of plain attention.

Every attention method moves the log-odds x = lse(scores on the span) - lse(scores on the rest) to
x' and keeps the ratios inside each group, so a head's output becomes sigmoid(x') * O_span +
sigmoid(-x') * O_rest: no attention matrix is needed.

layers          computes a steered layer, by one of the next three
merge           span and rest apart, by fused kernels, merged by their log-sum-exps
gpu_step        a decode step on a GPU, in one kernel; gpu_table is the formula there
explicit        scores, a block of queries at a time, where the fused kernels cannot do it
fused_kernels   the calls of PyTorch's kernels
rules           methods that no three numbers per head express

batch_steering  what a batch's rows do to attention
extent          where span, generated tokens and rest are among the keys
passes          a forward pass under a steering
blocks          a block of `holdfast.steering`, and the passes that belong to it
pass_refusals   passes and caches that a block cannot steer

patching        switches a loaded model to this attention and back
reaching        whether a model's attention can be reached, and which heads it has
rotary          rotary factors that depend on the length of the text
"""

from __future__ import annotations

from holdfast.attention.batch_steering import AttentionTrace, BatchSteering
from holdfast.attention.extent import Starts
from holdfast.attention.layers import IMPLEMENTATION, holdfast_attention
from holdfast.attention.pass_refusals import cache_of
from holdfast.attention.passes import PassState, steered
from holdfast.attention.patching import install
from holdfast.attention.reaching import check_methods, layers_with_attention, why_unreached
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
    "why_unreached",
]
