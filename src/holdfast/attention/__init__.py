"""Attention whose mass on a span can be read and moved, at the speed of plain attention.

The *span* is the set of tokens that methods move attention to, usually the system prompt; the other
tokens are the *rest*. The *mass* is the share of a query's attention weights on the span, and x its
log-odds. A *pass* is one call of the model's `forward`.

Every attention method moves the log-odds x = lse(scores on the span) - lse(scores on the rest) to
x' and keeps the ratios inside each group, so a head's output becomes sigmoid(x') * O_span +
sigmoid(-x') * O_rest: no attention matrix is needed.

layers           the attention of one layer, which calls one of the next four, and its mask
decode_step      one query per row: attends to span and rest, merges by their log-sum-exps
gpu_step         the same on a GPU, in one kernel; gpu_table has the kernel's formula
merge            several queries per row
explicit         computes the scores themselves, where the fused kernels cannot be used
fused_kernels    calls PyTorch's kernels
layer_shifts     applies methods to log-odds, by a table or one after another

batch_steering   the methods of a batch's rows, and their spans
passes           a steered forward pass, and the mass that it records
pass_columns     maps the keys of a pass to columns of the text, and to the span
key_groups       groups of keys: span, generated tokens and rest; their ranges and masks

steered_block    the handle of a block of `holdfast.steering`, and the code inside it
open_model       a model with an open block, and the passes that belong to the block
pass_refusals    refuses passes that a block cannot steer
cache_origins    records under which steering a cache was filled
patching         switches a loaded model to this attention and back
plain_attention  remembers the attention that a model had before
reaching         checks that steering reaches a model's attention
head_checks      checks that a model has the heads that methods name
rotary           rotary factors that depend on the length of the text
"""

from __future__ import annotations

from holdfast.attention.batch_steering import AttentionTrace, BatchSteering
from holdfast.attention.cache_origins import cache_of
from holdfast.attention.head_checks import check_heads
from holdfast.attention.key_groups import Starts
from holdfast.attention.layers import holdfast_attention, holdfast_mask
from holdfast.attention.passes import PassState, steer_pass
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
    "steer_pass",
    "why_unreached",
]
