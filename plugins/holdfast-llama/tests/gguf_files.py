"""GGUF files of models made here, with the tokenizer of the default model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from safetensors.torch import load_file

import holdfast

FOLDER = Path(holdfast.__file__).parent / "assets" / "model"
# llama.cpp's names of the modules in a layer and beside the layers, by transformers'
_NAMES_IN_LAYER = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
_NAMES_BESIDE_LAYERS = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}


def write_default(path: Path, kind: str = "F32") -> Path:
    """Writes the default model with its matrices as `kind`."""
    config = json.loads((FOLDER / "config.json").read_text())
    header = {
        "block_count": config["num_hidden_layers"],
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "feed_forward_length": config["intermediate_size"],
        "attention.head_count": config["num_attention_heads"],
        "attention.head_count_kv": config["num_key_value_heads"],
        "attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        "rope.dimension_count": config["head_dim"],
        "rope.freq_base": config["rope_parameters"]["rope_theta"],
        "vocab_size": config["vocab_size"],
    }
    heads = {
        "self_attn.q_proj": config["num_attention_heads"],
        "self_attn.k_proj": config["num_key_value_heads"],
    }
    tensors = {}
    for name, weights in load_file(FOLDER / "model.safetensors").items():
        module, _, end = name.rpartition(".")
        if module in _NAMES_BESIDE_LAYERS:
            tensors[f"{_NAMES_BESIDE_LAYERS[module]}.{end}"] = weights
            continue
        _, _, layer, module_in_layer = module.split(".", 3)
        if module_in_layer in heads:  # rotated pairs are adjacent in llama.cpp
            halves = weights.view(heads[module_in_layer], 2, -1, weights.shape[1])
            weights = halves.transpose(1, 2).reshape(weights.shape)
        tensors[f"blk.{layer}.{_NAMES_IN_LAYER[module_in_layer]}.{end}"] = weights
    return write(path, "llama", header, tensors, kind)


def write(
    path: Path,
    architecture: str,
    header: Mapping[str, Any],
    tensors: Mapping[str, torch.Tensor],
    kind: str = "F32",
) -> Path:
    """Writes a GGUF file with these keys, prefixed with the architecture, and these tensors."""
    writer = gguf.GGUFWriter(path, architecture)
    for name, value in header.items():
        key = f"{architecture}.{name}"
        if isinstance(value, bool):
            writer.add_bool(key, value)
        elif isinstance(value, int):
            writer.add_uint32(key, value)
        elif isinstance(value, float):
            writer.add_float32(key, value)
        elif isinstance(value, str):
            writer.add_string(key, value)
        else:
            writer.add_array(key, value)
    _write_tokenizer(writer)
    for name, weights in tensors.items():
        type_ = gguf.GGMLQuantizationType[kind if weights.ndim == 2 else "F32"]
        values = weights.detach().float().contiguous().numpy()
        writer.add_tensor(name, gguf.quantize(values, type_), raw_dtype=type_)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _write_tokenizer(writer: gguf.GGUFWriter) -> None:
    tokenizer = json.loads((FOLDER / "tokenizer.json").read_text())
    vocabulary = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].get)
    special = {token["content"] for token in tokenizer["added_tokens"]}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")  # splits digits, then as GPT-2
    writer.add_token_list(vocabulary)
    writer.add_token_types([3 if token in special else 1 for token in vocabulary])
    writer.add_token_merges([" ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(5)
    writer.add_add_bos_token(False)
    writer.add_chat_template((FOLDER / "chat_template.jinja").read_text())


def bits(values: np.ndarray | torch.Tensor) -> bytes:
    """The bits of float32 values, in which -0 differs from 0."""
    return np.ascontiguousarray(np.asarray(values, np.float32)).tobytes()
