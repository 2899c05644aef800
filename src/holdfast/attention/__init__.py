"""The one seam to transformers: attention whose mass on a span can be read and moved, at the speed
of attention that is left alone.

    steering.py    what a forward pass is to do: span, methods per row, trace
    blocks.py      which block of `holdfast.steering` a pass belongs to
    plan.py        the masks of the groups of keys: made once per pass, not per layer
    kernels.py     attention over a range of keys that also returns its log-sum-exp
    extent.py      where span, generated tokens and rest stand among the keys, known on the host
    table.py       three numbers per row, layer and head
    rules.py       what methods make of log-odds: by the table, or one after another
    decode.py      one query per row: the outputs of the groups, merged by their moved masses
    prefill.py     several queries per row: the outputs moved towards those of the span
    explicit.py    the same by explicit scores, block by block: soft caps, sinks, biases, values
                   narrower than keys
    layers.py      the attention of one layer in the pass under way
    compiled.py    the same as operations of a compiled pass
    interface.py   what transformers calls
    patching.py    switching a loaded model to it, and GPT-J, which needs a door of its own

Every attention method moves the log-odds x = lse(scores on the span) - lse(scores on the rest) to
x' and leaves the ratios inside each group alone, so a head's output becomes sigmoid(x') * O_span +
sigmoid(-x') * O_rest: no attention matrix is needed."""

from __future__ import annotations

from holdfast.attention.extent import Starts
from holdfast.attention.interface import IMPLEMENTATION, holdfast_attention
from holdfast.attention.patching import adopt
from holdfast.attention.reaching import check_methods, layers_with_attention
from holdfast.attention.steering import AttentionTrace, Steering, steered

__all__ = [
    "IMPLEMENTATION",
    "AttentionTrace",
    "Starts",
    "Steering",
    "adopt",
    "check_methods",
    "holdfast_attention",
    "layers_with_attention",
    "steered",
]
