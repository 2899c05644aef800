"""Tiny random models of every type that transformers has, for census.py.

A configuration is made small by the names that its options have; for example, Llama's
`num_hidden_layers` and GPT-2's `n_layer` both become 2.
"""

from __future__ import annotations

import inspect

import torch
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig, PreTrainedModel

MAX_PARAMETERS = 2e7  # a model with more does not count as tiny
# Values that make a model tiny, by all names that configurations have for them. One that has the
# name, but None as its value, keeps None, except for those in `SET_ALWAYS`.
SMALL_VALUES = {
    "vocab_size": 99,
    "hidden_size": 32,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "head_dim": 8,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "sliding_window": 8,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 64,
    "n_inner": 40,
    "rotary_dim": 4,
    "d_model": 32,
    "n_layers": 2,
    "n_heads": 4,
    "decoder_layers": 2,
    "decoder_attention_heads": 4,
    "decoder_ffn_dim": 40,
    "encoder_layers": 2,
    "encoder_attention_heads": 4,
    "encoder_ffn_dim": 40,
    "ffn_dim": 40,
    "num_layers": 2,
    "num_heads": 4,
    "embed_dim": 32,
    "word_embed_proj_dim": 32,
    "ffn_hidden_size": 40,
    "moe_intermediate_size": 24,
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "shared_expert_intermediate_size": 24,
    "moe_num_experts": 4,
    "moe_k": 2,
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8,
    "v_head_dim": 8,
    "index_topk": 4,
    "index_n_heads": 2,
    "index_head_dim": 16,
    "embedding_size": 32,
    "attention_types": [[["global", "local"], 1]],
    "window_size": 8,
    "query_pre_attn_scalar": 8,
    "vocab_size_per_layer_input": 99,
    "hidden_size_per_layer_input": 8,
    "laurel_rank": 8,
    "moe_topk": 2,
    "zero_expert_num": 1,
    "expert_ffn_hidden_size": 24,
    "state_size": 8,
    "mamba_d_state": 8,
    "mamba_n_heads": 8,
    "mamba_d_head": 8,
    "mamba_num_heads": 8,
    "mamba_head_dim": 8,
    "mamba_n_groups": 1,
    "n_groups": 1,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "max_sequence_length": 64,
    "max_seq_len": 64,
    "attn_layer_indices": [1],
    "attn_layer_period": 2,
    "attn_layer_offset": 1,
}
SET_ALWAYS = (
    "head_dim",
    "num_key_value_heads",
    "hidden_size",
    "num_attention_heads",
    "num_hidden_layers",
)
# layers of each kind that a default configuration of this size would not have
LAYERS_OF_EACH_KIND = {
    "bamba": {"attn_layer_indices": [1]},
    "granitemoehybrid": {"layer_types": ["linear_attention", "full_attention"]},
    "falcon_h1": {"mamba_d_ssm": 64},
}


def build(kind: str) -> PreTrainedModel:
    """A tiny random model of the type with its eager attention."""
    torch.manual_seed(0)
    config = small_config(kind)
    with torch.device("meta"):
        parameters = AutoModelForCausalLM.from_config(config).parameters()
        size = sum(parameter.numel() for parameter in parameters)
    if size > MAX_PARAMETERS:
        raise ValueError(
            f"{size / 1e6:.0f} M parameters: its configuration does not shrink by the usual names"
        )
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
    model.generation_config = GenerationConfig()  # of some, `generate` forces the last token
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, 0.15)
            elif "sink" in name:
                parameter.normal_()
    return model


def small_config(kind: str):
    """The configuration of a tiny model of the type."""
    config = AutoConfig.for_model(kind)
    text = config.get_text_config(decoder=True)
    small = type(text)(**{**_small_options(text), **LAYERS_OF_EACH_KIND.get(kind, {})})
    if small.get_text_config() is not config and type(small) is not type(config):
        name = next(name for name in config.sub_configs if getattr(config, name, None) is text)
        return type(config)(**{name: small})
    return small


def _small_options(text) -> dict:
    """The options that make a configuration tiny."""
    parameters = inspect.signature(type(text).__init__).parameters
    accepted = {*vars(text), *type(text).attribute_map, *parameters}
    options = {
        name: value
        for name, value in SMALL_VALUES.items()
        if name in accepted and (name in SET_ALWAYS or _has_value(text, name))
    }
    if "kv_lora_rank" in options:
        options |= {"num_key_value_heads": 4, "head_dim": 8}
    layer_types = getattr(text, "layer_types", None)
    if isinstance(layer_types, (list, tuple)) and "layer_types" in parameters:
        types = list(dict.fromkeys(layer_types))  # one layer of each type, but at least two
        num_layers = max(2, len(types))
        options["layer_types"] = (types * 2)[:num_layers]
        for name in ("num_hidden_layers", "num_layers", "n_layer"):
            if name in options:
                options[name] = num_layers
    if getattr(text, "is_decoder", True) is False:  # an encoder, unless it is told otherwise
        options["is_decoder"] = True
    return options


def _has_value(config, name: str) -> bool:
    """Whether a configuration has a value other than None for an option."""
    try:
        return getattr(config, name, 0) is not None
    except AttributeError:  # it differs between layers
        return False
