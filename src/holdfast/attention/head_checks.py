"""Refuses heads that a model does not have."""

from __future__ import annotations

from collections.abc import Sequence

from transformers import PreTrainedModel

from holdfast.attention.reaching import layers_with_attention
from holdfast.errors import UsageError
from holdfast.methods.heads import Head
from holdfast.methods.protocols import NeedsRehearsal, ShiftsAttention


def check_heads(
    model: PreTrainedModel, methods: Sequence[ShiftsAttention | NeedsRehearsal]
) -> None:
    """Refuses methods that name a head that the model does not have.

    Raises:
        UsageError: names the head, and its file if it came from one.
    """
    for method in methods:
        heads = method.heads or ()
        file = getattr(heads, "file", "")
        source = f" (from {file!r})" if file else ""
        _check_shape(model, method.name, heads, source)
        for layer, head in sorted(heads):
            described = f"{method.name} names head {head} in layer {layer}{source}, but"
            _check_head(model, (layer, head), described)


def _check_shape(model: PreTrainedModel, method: str, heads: object, source: str) -> None:
    """Refuses heads of a file that was made for a model of another shape."""
    config = model.config.get_text_config()
    shape = getattr(heads, "made_for", None)
    num_layers = getattr(config, "num_hidden_layers", None)
    num_heads = getattr(config, "num_attention_heads", None)
    if not shape or not isinstance(num_layers, int) or not isinstance(num_heads, int):
        return
    if (shape.layers, shape.heads) != (num_layers, num_heads):
        raise UsageError(
            f"{method} has heads{source} that were chosen for {shape.model or 'a model'} with"
            f" {shape.layers} layers x {shape.heads} heads, but this model has {num_layers} x"
            f" {num_heads}; profile this model.",
            option="heads",
            value=(shape.layers, shape.heads),
            allowed=(num_layers, num_heads),
        )


def _check_head(model: PreTrainedModel, pair: Head, described: str) -> None:
    """Refuses a head whose layer does not exist or has no attention, or whose number is too high.

    `described` is the beginning of the message.
    """
    layer, head = pair
    config = model.config.get_text_config()
    layers = getattr(config, "num_hidden_layers", None)
    if isinstance(layers, int) and layer >= layers:
        raise UsageError(
            f"{described} this model has {layers} layers, counted from 0.",
            option="heads",
            value=pair,
            allowed=layers,
        )
    with_attention = layers_with_attention(model)
    if with_attention is not None and layer not in with_attention:
        cure = "leave heads out to steer all of them"
        if with_attention:
            cure = f"choose heads of layers {', '.join(map(str, sorted(with_attention)))}"
        raise UsageError(
            f"{described} {type(model).__name__} has no attention there that can be steered;"
            f" {cure}.",
            option="heads",
            value=pair,
            allowed=sorted(with_attention),
        )
    heads = getattr(config, "num_attention_heads", None)
    count = heads[layer] if isinstance(heads, (list, tuple)) else heads
    if isinstance(count, int) and head >= count:
        raise UsageError(
            f"{described} this model has {count} heads, counted from 0.",
            option="heads",
            value=pair,
            allowed=count,
        )
