"""Checks that steering reaches a model's attention.

This is checked before a model's first block, by a pass of two tokens when the model is switched,
and after each pass.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from transformers import PreTrainedModel

from holdfast.attention.batch_steering import BatchSteering
from holdfast.attention.cache_origins import cache_of, cached_tokens
from holdfast.attention.passes import NEVER_REACHED, PASS, Pass, PassState
from holdfast.errors import ModelError, Unsteerable
from holdfast.methods.compiled import UNSTEERED

# per probed model, the number of heads of each layer with attention
REACHED: WeakKeyDictionary[PreTrainedModel, dict[int, int]] = WeakKeyDictionary()
# largest relative difference of logits: a lost mask or sink moves them by far more than rounding
_MAX_DIFFERENCE = {torch.float32: 1e-3, torch.float64: 1e-3}
_MAX_DIFFERENCE_OF_OTHER_DTYPES = 0.2


def layers_with_attention(model: PreTrainedModel) -> frozenset[int] | None:
    """Returns the layers that have attention; None if the model has never been steered."""
    if (layers := REACHED.get(model)) is None:
        return None
    return frozenset(layer for layer in layers if layer >= 0)


# Before the model is switched


def check_reachable(model: PreTrainedModel) -> None:
    """Refuses models that cannot be steered, before they fail in a way that hides the cause.

    Raises:
        Unsteerable: the model has an encoder, or its weights are not all on one device.
    """
    name = type(model).__name__
    if getattr(model.config, "is_encoder_decoder", False):
        raise Unsteerable(
            f"{name} has an encoder, and the keys that its decoder attends to are not those of the "
            "prompt; steer a decoder-only model."
        )
    devices = {parameter.device for parameter in model.parameters()}
    if torch.device("meta") in devices:
        raise Unsteerable(
            f"{name} has weights that are not on a device (offloaded by accelerate, or on 'meta'); "
            "load the whole model on one device."
        )
    if len(devices) > 1:
        places = ", ".join(sorted(map(str, devices)))
        raise Unsteerable(
            f"The weights of {name} are on {places}, but steering needs all of them on one device;"
            " load the whole model on one device."
        )


def why_unreached(model: PreTrainedModel) -> str:
    """Returns why the attention of a model is not steered, as a relative clause ("whose ...")."""
    devices = sorted({str(parameter.device) for parameter in model.parameters()})
    if "meta" in devices:
        return "whose weights are partly offloaded, although steering needs them on one device"
    if len(devices) > 1:
        places = " and ".join(devices)
        return f"whose weights are on {places}, although steering needs them on one device"
    return "whose attention cannot be reached"


def unsteerable_error(model: PreTrainedModel, why: str) -> Unsteerable:
    """Makes the error about a model whose attention cannot be steered; `why` is a clause."""
    why = why.rstrip(".").removesuffix("; use prompt methods such as repetition")
    return Unsteerable(
        f"The attention of {type(model).__name__} cannot be steered ({why}); use a prompt method "
        "such as repetition."
    )


# A pass of two tokens, before and after the switch


def plain_logits(model: PreTrainedModel) -> Tensor:
    """Returns the logits of two tokens before the switch, float32 [1, token, vocabulary].

    Raises:
        Unsteerable: the model cannot be run on two tokens, or gives no logits.
    """
    try:
        return logits_of(model)
    except torch.OutOfMemoryError:
        raise
    except (ValueError, TypeError, LookupError, RuntimeError, AttributeError) as error:
        if isinstance(error, AttributeError) and "logits" in str(error):
            raise Unsteerable(
                f"{type(model).__name__} gives no logits (a base model without a head?); load it "
                "with AutoModelForCausalLM."
            ) from error
        raise unsteerable_error(model, _on_one_line(error)) from error


def logits_of(model: PreTrainedModel) -> Tensor:
    """Returns the logits of two tokens in an unsteered pass, float32 [1, token, vocabulary]."""
    return _forward(model, None)[0]


def probe(model: PreTrainedModel, plain: Tensor) -> None:
    """Checks a model after the switch: it must call our attention, and its logits must not change.

    Args:
        model: afterwards, `REACHED` has its layers and their numbers of heads.
        plain: the logits before the switch.

    Raises:
        Unsteerable: the model does not call our attention, or does not use softmax attention.
    """
    span = torch.tensor([[True, False]], device=model.device)
    state = PassState(BatchSteering(span, [UNSTEERED], trace=True))
    try:
        logits, cache = _forward(model, state, use_cache=True)
        if not state.entered:
            raise Unsteerable(NEVER_REACHED)
    except (ModelError, ValueError, TypeError, KeyError, RuntimeError, AttributeError) as error:
        why = _on_one_line(error) if state.entered else NEVER_REACHED
        raise unsteerable_error(model, why) from error
    difference = float((logits - plain).abs().max() / plain.abs().max().clamp(min=1e-6))
    max_difference = _MAX_DIFFERENCE.get(model.dtype, _MAX_DIFFERENCE_OF_OTHER_DTYPES)
    if not model.training and difference > max_difference:
        raise unsteerable_error(
            model,
            "it computes something other than softmax attention: with ours, its logits change by"
            f" {difference:.0%}",
        )
    if hasattr(cache, "get_seq_length") and (count := cached_tokens(cache)) != 2:
        raise unsteerable_error(
            model,
            f"its cache counts {count} tokens after 2, so positions in it are unknown",
        )
    # a model that runs its layers several times has made several passes
    heads: dict[int, int] = {}
    for masses in state.passes:
        heads |= {layer: mass.shape[1] for layer, mass in masses.steered.items()}
    REACHED[model] = heads


@torch.inference_mode()
def _forward(
    model: PreTrainedModel, state: PassState | None, use_cache: bool = False
) -> tuple[Tensor, object]:
    """Forwards two tokens; returns their logits and the cache."""
    token = PASS.set(Pass(state))  # so that it does not count as a pass of an open block
    try:
        output = model(input_ids=torch.tensor([[0, 1]], device=model.device), use_cache=use_cache)
        return output.logits.float(), cache_of(output)
    finally:
        PASS.reset(token)


def _on_one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


# After each pass


def check_reached(model: PreTrainedModel, state: PassState, implementation: str | None) -> None:
    """Refuses a pass that was not steered in some layer.

    Args:
        model: the model that made the pass.
        state: the state of the pass, which has ended.
        implementation: the name of the model's attention implementation while it is steered.

    Raises:
        Unsteerable: names the layers, or the implementation that replaced ours.
    """
    config = model.config.get_text_config()
    count = getattr(config, "num_hidden_layers", None)
    missed = sorted(set(REACHED.get(model, ())) - state.entered)
    missed = [layer for layer in missed if count is None or layer < count]
    if state.entered and not missed:
        return
    name = type(model).__name__
    current = config._attn_implementation
    if current != implementation:
        raise Unsteerable(
            f"{name} was set to the attention implementation {current!r} inside a block of "
            "holdfast.steering, so this pass is not steered; set it before the block, which can "
            "steer any implementation."
        )
    where = f"layer{'s'[: len(missed) != 1]} {', '.join(map(str, missed))}"
    raise Unsteerable(
        f"Something has replaced the attention of {name} in {where}, so this pass is not steered "
        "there; restore the model's own attention."
    )
