"""The one seam to transformers: attention whose mass on a span can be read and moved, at the speed
of attention that is left alone.

    steering.py    `SteeringSpec`, what a pass is to do, and `PassState`, where it stands
    layers.py      the attention of one layer in the pass under way: which of two routes it takes
    merge.py       outputs of the span and of the other keys, merged by their log-sum-exps
    explicit.py    the same by explicit scores, block by block: soft caps, sinks, biases, values
                   narrower than keys
    kernels.py     attention over a range of keys that also returns its log-sum-exp
    extent.py      where span, generated tokens and rest stand among the keys, and their masks
    rules.py       methods that no steering table holds, one after another
    blocks.py      which block of `holdfast.steering` a pass belongs to
    checks.py      passes and caches that a block refuses; reaching.py, models
    patching.py    switching a loaded model to this attention, and GPT-J, which has no interface
    interface.py   the functions that transformers calls, eager and in a compiled pass

Every attention method moves the log-odds x = lse(scores on the span) - lse(scores on the rest) to
x' and leaves the ratios inside each group alone, so a head's output becomes sigmoid(x') * O_span +
sigmoid(-x') * O_rest: no attention matrix is needed."""

from __future__ import annotations

from holdfast.attention.extent import Starts
from holdfast.attention.interface import IMPLEMENTATION, holdfast_attention
from holdfast.attention.patching import install
from holdfast.attention.reaching import check_methods, layers_with_attention
from holdfast.attention.steering import AttentionTrace, PassState, SteeringSpec, steered

__all__ = [
    "IMPLEMENTATION",
    "AttentionTrace",
    "PassState",
    "Starts",
    "SteeringSpec",
    "check_methods",
    "holdfast_attention",
    "install",
    "layers_with_attention",
    "steered",
]
