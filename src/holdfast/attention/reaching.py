"""Checks whether a model's attention can be reached at all, and which heads it has."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from transformers import PreTrainedModel

from holdfast.attention.batch_steering import BatchSteering
from holdfast.attention.pass_refusals import cache_of, cached_tokens
from holdfast.attention.passes import NEVER_REACHED, PASS, Pass, PassState
from holdfast.errors import ModelError, UsageError
from holdfast.methods.compiled import UNSTEERED
from holdfast.methods.protocols import NeedsRehearsal, ShiftsAttention

# Per probed model, the number of heads of each layer with attention.
REACHED: WeakKeyDictionary[PreTrainedModel, dict[int, int]] = WeakKeyDictionary()
# Relative difference of logits: a lost mask or sink moves them by far more than rounding.
_MAX_DIFFERENCE = {torch.float32: 1e-3, torch.float64: 1e-3}


def check_methods(
    model: PreTrainedModel, methods: Sequence[ShiftsAttention | NeedsRehearsal]
) -> None:
    """Refuses a head that the model does not have, with a `UsageError` that names it."""
    config, name = model.config.get_text_config(), type(model).__name__
    layers = getattr(config, "num_hidden_layers", None)
    heads = getattr(config, "num_attention_heads", None)
    for method in methods:
        chosen = method.heads or ()
        file, made_for = getattr(chosen, "file", ""), getattr(chosen, "made_for", None)
        source = f" (from {file!r})" if file else ""
        known = isinstance(layers, int) and isinstance(heads, int)
        if made_for and known and (made_for.layers, made_for.heads) != (layers, heads):
            raise UsageError(
                f"{method.name} has heads{source} made for {made_for.model or 'a model'} of "
                f"{made_for.layers} layers x {made_for.heads} heads, and this model has {layers} x "
                f"{heads}; profile this one.",
                option="heads",
                value=(made_for.layers, made_for.heads),
                allowed=(layers, heads),
            )
        for layer, head in sorted(chosen):
            names = f"{method.name} names head {head} in layer {layer}{source}, and"
            if isinstance(layers, int) and layer >= layers:
                raise UsageError(
                    f"{names} this model has {layers} layers, counted from 0.",
                    option="heads",
                    value=(layer, head),
                    allowed=layers,
                )
            with_attention = layers_with_attention(model)
            if with_attention is not None and layer not in with_attention:
                some = ", ".join(map(str, sorted(with_attention)))
                cure = f"take heads of layers {some}" if some else "give no heads, which steers all"
                raise UsageError(
                    f"{names} no attention of {name} can be steered there; {cure}.",
                    option="heads",
                    value=(layer, head),
                    allowed=sorted(with_attention),
                )
            count = heads[layer] if isinstance(heads, (list, tuple)) else heads
            if isinstance(count, int) and head >= count:
                raise UsageError(
                    f"{names} this model has {count} heads, counted from 0.",
                    option="heads",
                    value=(layer, head),
                    allowed=count,
                )


def layers_with_attention(model: PreTrainedModel) -> frozenset[int] | None:
    """The layers with their own attention; None before the model was first steered."""
    if (layers := REACHED.get(model)) is None:
        return None
    return frozenset(layer for layer in layers if layer >= 0)


def check_reached(model: PreTrainedModel, state: PassState, implementation: str | None) -> None:
    """Refuses a pass in which steering missed a layer, naming the layer or what replaced ours."""
    config = model.config.get_text_config()
    count = getattr(config, "num_hidden_layers", None)
    missed = sorted(set(REACHED.get(model, ())) - state.entered)
    missed = [layer for layer in missed if count is None or layer < count]
    if state.calls and not missed:
        return
    name, now = type(model).__name__, config._attn_implementation
    if now != implementation:
        raise ModelError(
            f"{name} was set to the attention implementation {now!r} inside a block of "
            "holdfast.steering, so this pass is not steered; set it before the block, which steers "
            "any of them."
        )
    where = f"layer{'s'[: len(missed) != 1]} {', '.join(map(str, missed))}"
    raise ModelError(
        f"Something replaces the attention of {name} in {where}, so this pass is not steered "
        "there; put the model's own attention back."
    )


def why_unreached(model: PreTrainedModel) -> str:
    """Why the attention of a model is not steered, as a subordinate clause."""
    devices = sorted({str(parameter.device) for parameter in model.parameters()})
    if "meta" in devices:
        return "whose weights are offloaded in part and are steered on one device only"
    if len(devices) > 1:
        return f"whose weights lie on {' and '.join(devices)} and are steered on one device only"
    return "whose attention cannot be reached"


def check_reachable(model: PreTrainedModel) -> None:
    """Refuses models that would otherwise fail far from the cause."""
    name = type(model).__name__
    if getattr(model.config, "is_encoder_decoder", False):
        raise ModelError(
            f"{name} has an encoder, whose keys are not those of its prompt's span; steer a "
            "decoder-only model."
        )
    devices = {parameter.device for parameter in model.parameters()}
    if torch.device("meta") in devices:
        raise ModelError(
            f"{name} has weights that are not on a device (offloaded by accelerate, or on 'meta'); "
            "load it whole on one device."
        )
    if len(devices) > 1:
        places = ", ".join(sorted(map(str, devices)))
        raise ModelError(
            f"The weights of {name} lie on {places}, and steering needs them on one device."
        )


def plain_logits(model: PreTrainedModel) -> Tensor:
    """The logits of two tokens before the switch."""
    try:
        return logits_of(model)
    except torch.OutOfMemoryError:
        raise
    except (ValueError, TypeError, LookupError, RuntimeError, AttributeError) as error:
        if isinstance(error, AttributeError) and "logits" in str(error):
            raise ModelError(
                f"{type(model).__name__} gives no logits (a base model without a head?); load it "
                "with AutoModelForCausalLM."
            ) from error
        raise ModelError(unreachable(model, " ".join(str(error).split())[:200])) from error


def probe(model: PreTrainedModel, plain: Tensor) -> None:
    """Checks with two tokens, once per model, that its attention arrives here and logits stay."""
    span = torch.tensor([[True, False]], device=model.device)
    state = PassState(BatchSteering(span, [UNSTEERED], trace=True))
    try:
        ours, cache = _forward(model, state, use_cache=True)
        if not state.calls:
            raise ModelError(NEVER_REACHED)
    except (ModelError, ValueError, TypeError, KeyError, RuntimeError, AttributeError) as error:
        why = " ".join(str(error).split())[:200] if state.calls else NEVER_REACHED
        raise ModelError(unreachable(model, why)) from error
    difference = float((ours - plain).abs().max() / plain.abs().max().clamp(min=1e-6))
    if not model.training and difference > _MAX_DIFFERENCE.get(model.dtype, 0.2):
        why = f"it computes something else than softmax attention: logits move by {difference:.0%}"
        raise ModelError(unreachable(model, why))
    if hasattr(cache, "get_seq_length") and (count := cached_tokens(cache)) != 2:
        why = f"its cache counts {count} tokens after 2, so no place in it is certain"
        raise ModelError(unreachable(model, why))
    REACHED[model] = state.layers


def logits_of(model: PreTrainedModel) -> Tensor:
    """The logits of two tokens, float32 [1, token, vocabulary], in an unsteered pass."""
    return _forward(model, None)[0]


@torch.inference_mode()
def _forward(
    model: PreTrainedModel, state: PassState | None, use_cache: bool = False
) -> tuple[Tensor, object]:
    """The logits of two tokens, and the cache."""
    token = PASS.set(Pass(state))  # not the pass of a block around this one
    try:
        output = model(input_ids=torch.tensor([[0, 1]], device=model.device), use_cache=use_cache)
        return output.logits.float(), cache_of(output)
    finally:
        PASS.reset(token)


def unreachable(model: PreTrainedModel, reason: str) -> str:
    """The sentence about a model whose attention cannot be steered, with the reason."""
    why = reason.rstrip(".").removesuffix("; use prompt methods such as repetition")
    return (
        f"The attention of {type(model).__name__} cannot be steered ({why}); use a prompt method "
        "such as repetition."
    )
