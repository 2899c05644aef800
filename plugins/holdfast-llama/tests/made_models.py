"""Small models with windows, sinks and latent attention, made here for both engines."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from transformers import PreTrainedModel

WINDOW = 24  # tokens; the chats are longer
COMMON = {
    "vocab_size": 2048,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "max_position_embeddings": 512,
    "initializer_range": 0.3,
    "bos_token_id": 1,
    "eos_token_id": 5,
    "pad_token_id": 0,
}


class MadeModel(NamedTuple):
    """A small model with random weights, and what its GGUF file has.

    Attributes:
        architecture: its name in llama.cpp.
        header: the keys of the file, without the architecture's name before them.
        tensors: by their names in the file.
    """

    architecture: str
    header: dict[str, Any]
    model: PreTrainedModel
    tensors: dict[str, torch.Tensor]


def header(config, **fields):
    """The header of a file: the keys that all these models have, and some of its own."""
    return {
        "block_count": config.num_hidden_layers,
        "context_length": 512,
        "embedding_length": 64,
        "feed_forward_length": 128,
        "attention.head_count": 4,
        "attention.layer_norm_rms_epsilon": config.rms_norm_eps,
        "vocab_size": 2048,
        **fields,
    }


def gemma3() -> MadeModel:
    """Sliding windows in five layers of six, norms of queries and keys."""
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    config = Gemma3TextConfig(
        **COMMON, num_hidden_layers=6, num_key_value_heads=2, head_dim=16, sliding_window=WINDOW,
        query_pre_attn_scalar=16,
    )  # fmt: skip
    names = {
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "self_attn.q_norm": "attn_q_norm",
        "self_attn.k_norm": "attn_k_norm",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "post_attention_norm",
        "pre_feedforward_layernorm": "ffn_norm",
        "post_feedforward_layernorm": "post_ffw_norm",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
    }
    header_fields = {
        "attention.head_count_kv": 2,
        "attention.key_length": 16,
        "attention.value_length": 16,
        "attention.sliding_window": WINDOW,
        "rope.dimension_count": 16,
        "rope.freq_base": 1e6,
        "rope.freq_base_swa": 1e4,
    }
    model = Gemma3ForCausalLM(config)
    tensors = renamed(model, names)
    for name in tensors:
        if "norm" in name:  # transformers adds 1 when it computes
            tensors[name] = tensors[name] + 1
    return MadeModel("gemma3", header(config, **header_fields), model, tensors)


def gpt_oss() -> MadeModel:
    """Attention sinks, windows in every other layer, experts."""
    from transformers import GptOssConfig, GptOssForCausalLM

    config = GptOssConfig(
        **COMMON, num_hidden_layers=4, num_key_value_heads=2, head_dim=16, sliding_window=WINDOW,
        num_local_experts=4, num_experts_per_tok=2, rope_parameters={"rope_type": "default",
        "rope_theta": 150000.0},
    )  # fmt: skip
    names = {
        "self_attn.q_proj": "attn_q",
        "self_attn.k_proj": "attn_k",
        "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output",
        "self_attn": "attn",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "post_attention_norm",
        "mlp.router": "ffn_gate_inp",
        "mlp.experts": "experts",
    }
    header_fields = {
        "attention.head_count_kv": 2,
        "attention.key_length": 16,
        "attention.value_length": 16,
        "attention.sliding_window": WINDOW,
        "rope.dimension_count": 16,
        "rope.freq_base": 150000.0,
        "expert_count": 4,
        "expert_used_count": 2,
        "expert_feed_forward_length": 128,
    }
    model = GptOssForCausalLM(config)
    with torch.no_grad():
        for block in model.model.layers:
            block.self_attn.sinks.normal_()
    tensors = {}
    for name, weights in renamed(model, names).items():
        tensors |= split_experts(name, weights)
    return MadeModel("gpt-oss", header(config, **header_fields), model, tensors)


def split_experts(name, weights):
    """The tensors of a GGUF file that one of GPT-OSS's tensors becomes.

    transformers interleaves the gates and the ups of all experts, and has no suffix for weights.
    """
    block, _, part = name.rpartition(".")
    layer = block.removesuffix(".experts")
    if part == "sinks":
        return {f"{block}_sinks.weight": weights}
    if part == "gate_up_proj":
        gates_and_ups = weights.transpose(1, 2)
        return {
            f"{layer}.ffn_gate_exps.weight": gates_and_ups[:, ::2],
            f"{layer}.ffn_up_exps.weight": gates_and_ups[:, 1::2],
        }
    if part == "gate_up_proj_bias":
        return {
            f"{layer}.ffn_gate_exps.bias": weights[:, ::2],
            f"{layer}.ffn_up_exps.bias": weights[:, 1::2],
        }
    if part == "down_proj":
        return {f"{layer}.ffn_down_exps.weight": weights.transpose(1, 2)}
    if part == "down_proj_bias":
        return {f"{layer}.ffn_down_exps.bias": weights}
    return {name: weights}


def deepseek() -> MadeModel:
    """Latent attention: one key-value head that all heads share, values narrower than keys."""
    from transformers import DeepseekV3Config, DeepseekV3ForCausalLM

    config = DeepseekV3Config(
        **COMMON, num_hidden_layers=3, num_key_value_heads=4, first_k_dense_replace=3,
        q_lora_rank=32, kv_lora_rank=32, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=12,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
    )  # fmt: skip
    names = {
        "self_attn.q_a_proj": "attn_q_a",
        "self_attn.q_b_proj": "attn_q_b",
        "self_attn.q_a_layernorm": "attn_q_a_norm",
        "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa",
        "self_attn.kv_a_layernorm": "attn_kv_a_norm",
        "self_attn.kv_b_proj": "kv_b",
        "self_attn.o_proj": "attn_output",
        "input_layernorm": "attn_norm",
        "post_attention_layernorm": "ffn_norm",
        "mlp.gate_proj": "ffn_gate",
        "mlp.up_proj": "ffn_up",
        "mlp.down_proj": "ffn_down",
    }
    header_fields = {
        "attention.head_count_kv": 1,
        "attention.key_length": 32 + 8,
        "attention.value_length": 32,
        "attention.key_length_mla": 16 + 8,
        "attention.value_length_mla": 12,
        "attention.q_lora_rank": 32,
        "attention.kv_lora_rank": 32,
        "rope.dimension_count": 8,
        "rope.freq_base": 10000.0,
        "leading_dense_block_count": 3,
        "expert_feed_forward_length": 128,
        "expert_shared_count": 0,
    }
    model = DeepseekV3ForCausalLM(config)
    tensors = renamed(model, names)
    for layer in range(config.num_hidden_layers):  # keys and values have a tensor each
        keys_and_values = tensors.pop(f"blk.{layer}.kv_b.weight").view(4, 16 + 12, 32)
        tensors[f"blk.{layer}.attn_k_b.weight"] = keys_and_values[:, :16].transpose(1, 2)
        tensors[f"blk.{layer}.attn_v_b.weight"] = keys_and_values[:, 16:]
    return MadeModel("deepseek2", header(config, **header_fields), model, tensors)


def renamed(model, names):
    """The weights of a model by their names in llama.cpp.

    Args:
        names: llama.cpp's name of each module in a layer, by its name in transformers.
    """
    beside_layers = {
        "model.embed_tokens": "token_embd",
        "model.norm": "output_norm",
        "lm_head": "output",
    }
    tensors = {}
    is_tied = model.config.tie_word_embeddings
    for name, weights in model.state_dict().items():
        module, _, end = name.rpartition(".")
        if is_tied and module == "lm_head":  # the file has it once
            continue
        if module in beside_layers:
            tensors[f"{beside_layers[module]}.{end}"] = weights
        else:
            _, _, layer, module_in_layer = module.split(".", 3)
            tensors[f"blk.{layer}.{names[module_in_layer]}.{end}"] = weights
    return tensors
