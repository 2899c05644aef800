"""Reads from a loaded model of transformers its abilities and the tokens that end its replies.

For example:

    Qwen2.5 0.5B -> stop_ids: {151643, 151645}; reuses_cache: True
"""

from __future__ import annotations

import inspect

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from holdfast.attention import cache_of, layers_with_attention
from holdfast.generation.slot_layers import ATTENDING, SLOT_LAYERS
from holdfast.models.fingerprint import is_split


def stop_ids(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> frozenset[int]:
    """The tokens that end a reply, according to the tokenizer and the model's configurations."""
    ids = {tokenizer.eos_token_id}
    for config in (model.generation_config, model.config.get_text_config()):
        eos = getattr(config, "eos_token_id", None)
        ids.update(eos if isinstance(eos, (list, tuple)) else [eos])
    return frozenset(token for token in ids if token is not None)


def reuses_cache(model: PreTrainedModel) -> bool:
    """Whether sequences of any lengths can share a pass, and continue after computed tokens."""
    from transformers.cache_utils import DynamicCache

    if is_split(model):
        return False
    kinds = {type(layer) for layer in DynamicCache(config=model.config).layers}
    if not kinds or not kinds <= SLOT_LAYERS.keys():
        return False
    positions = "position_ids" in inspect.signature(model.forward).parameters
    if kinds & ATTENDING and not (positions and layers_with_attention(model) is not None):
        return False
    return _makes_plain_cache(model)


@torch.inference_mode()
def _makes_plain_cache(model: PreTrainedModel) -> bool:
    """Whether a model uses transformers' own cache, determined by forwarding one token."""
    from transformers.cache_utils import DynamicCache

    token = torch.zeros(1, 1, dtype=torch.long, device=model.device)
    try:
        output = model(input_ids=token, use_cache=True)
    except ValueError:  # transformers cannot count tokens if it recognises no attention layer
        return False
    cache = cache_of(output)
    if cache is None:  # a model without attention, before transformers 5.24
        cache = getattr(output, "__dict__", {}).get("cache_params")
    return type(cache) is DynamicCache
