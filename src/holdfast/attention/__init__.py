"""Attention whose mass on a span can be read and moved, at the speed of plain attention.

Every attention method moves the log-odds x = lse(scores on the span) - lse(scores on the rest) to
x' and keeps the ratios inside each group, so a head's output becomes sigmoid(x') * O_span +
sigmoid(-x') * O_rest: no attention matrix is needed.

layers           computes a steered layer, by one of the next four
decode_step      one query per row: span and rest apart, merged by their log-sum-exps
gpu_step         the same on a GPU, in one kernel; gpu_table is the formula there
merge            several queries per row
explicit         scores, a block of queries at a time, where the fused kernels cannot do it
fused_kernels    the calls of PyTorch's kernels
layer_shifts     how methods change log-odds, by a table or one after another

batch_steering   what a batch's rows do to attention
passes           a forward pass under a steering, and the mass that it records
pass_columns     where the keys of a pass are in the text, and which are the span's
extent           ranges of keys that contain span, generated tokens and rest
group_masks      groups of keys, and their masks
pass_masks       the mask that a layer gets

steered_block    the handle of a block of `holdfast.steering`, and the code inside it
open_model       a model with an open block, and its passes that belong to it
pass_refusals    passes that a block cannot steer
cache_origins    the steering under which a cache was filled
patching         switches a loaded model to this attention and back
gptj             attention like GPT-J's, which is patched another way
plain_attention  the attention that it had before
reaching         whether steering reaches a model's attention
head_checks      whether a model has the heads that methods name
rotary           rotary factors that depend on the length of the text
"""

from __future__ import annotations

from holdfast.attention.batch_steering import AttentionTrace, BatchSteering
from holdfast.attention.cache_origins import cache_of
from holdfast.attention.extent import Starts
from holdfast.attention.head_checks import check_heads
from holdfast.attention.layers import holdfast_attention
from holdfast.attention.pass_masks import holdfast_mask
from holdfast.attention.passes import PassState, steered
from holdfast.attention.patching import install
from holdfast.attention.plain_attention import IMPLEMENTATION
from holdfast.attention.reaching import layers_with_attention, why_unreached
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
    "check_heads",
    "holdfast_attention",
    "holdfast_mask",
    "install",
    "layers_with_attention",
    "steered",
    "why_unreached",
]
