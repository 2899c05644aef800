"""Tiny models of transformers that Holdfast did not load, and what they compute in a block."""

from typing import NamedTuple

import pytest
import torch
from tiny import DEVICE, SHAPE
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

import holdfast
from holdfast import Boost, SplitSoftmax

ROUNDING = 2e-5  # tolerance of logits: three layers of large random weights
MOVED = 1e-2  # steering moves them by more than this
SPLIT, BOOST = SplitSoftmax(0.3), Boost(5)
GREEDY = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False}


def hugging_face(kind="llama", attention="sdpa", seed=0, **options) -> PreTrainedModel:
    """A random model, with weights large enough that its logits depend on the whole prompt."""
    torch.manual_seed(seed)
    lists = {name: list(v) for name, v in options.items() if isinstance(v, tuple)}
    config = AutoConfig.for_model(kind, **{**SHAPE, **options, **lists})
    hf_model = AutoModelForCausalLM.from_config(config, attn_implementation=attention)
    hf_model.eval().to(DEVICE)
    for parameter in hf_model.parameters():
        if parameter.ndim > 1:
            parameter.data.mul_(4)
    return hf_model


class Prompts(NamedTuple):
    """Two prompts, of which the first is padded on the left by four tokens: [row, token]."""

    ids: torch.Tensor
    mask: torch.Tensor
    span: torch.Tensor


def prompts(length=20) -> Prompts:
    ids = torch.randint(6, 400, (2, length), generator=torch.Generator().manual_seed(5))
    mask, span = torch.ones_like(ids), torch.zeros_like(ids, dtype=torch.bool)
    mask[0, :4] = 0
    span[0, 6:9], span[1, 2:7] = True, True
    return Prompts(ids.to(DEVICE), mask.to(DEVICE), span.to(DEVICE))


def logits(hf_model, ids, **options):
    with torch.inference_mode():
        return hf_model(ids, use_cache=False, **options).logits


def apart(output, expected):
    """The largest difference."""
    return float((output - expected).abs().max())


class Example(NamedTuple):
    """A model, prompts without padding, and its logits without and with steering by `SPLIT`."""

    hf_model: PreTrainedModel
    ids: torch.Tensor
    span: torch.Tensor
    plain: torch.Tensor
    steered: torch.Tensor


def both_ways(kind="llama", attention="sdpa", **options) -> Example:
    hf_model, (ids, _, span) = hugging_face(kind, attention, **options), prompts()
    plain = logits(hf_model, ids)
    with holdfast.steering(hf_model, span, [SPLIT]):
        steered = logits(hf_model, ids)
    assert apart(plain, steered) > MOVED
    return Example(hf_model, ids, span, plain, steered)


def assert_refused(error, message, hf_model, span, methods):
    """A block is refused on entering, in one line."""
    with pytest.raises(error, match=message) as excinfo, holdfast.steering(hf_model, span, methods):
        raise AssertionError("entered")
    assert "\n" not in str(excinfo.value)
