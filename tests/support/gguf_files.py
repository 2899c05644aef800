"""The tiny Llama as a GGUF file, and its loading."""

import json
from pathlib import Path

import pytest
import torch
from tiny import SPECIAL, TEMPLATE, model, tokenizer

import holdfast

gguf = pytest.importorskip("gguf")
SHAPE = {"hidden_size": 64, "head_dim": 16}  # row lengths in Q8_0 are multiples of 32
LAYER_NAMES = {f"self_attn.{end}_proj": f"attn_{end}" for end in "qkv"}
LAYER_NAMES |= {f"mlp.{name}_proj": f"ffn_{name}" for name in ("gate", "up", "down")}
LAYER_NAMES |= {"self_attn.o_proj": "attn_output", "input_layernorm": "attn_norm"}
LAYER_NAMES["post_attention_layernorm"] = "ffn_norm"
NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def write_gguf(path: Path, *, kind="F32", template: str | None = TEMPLATE, factors=None, **header):
    """Writes the tiny Llama as a GGUF file.

    Args:
        kind: how its matrices are quantised.
        factors: of its rotary frequencies.
        header: overrides keys of its metadata; "a__b" stands for "a.b".
    """
    hf_model = model(**SHAPE).hf_model
    config = hf_model.config
    writer = gguf.GGUFWriter(path, "llama")
    for name, value in (
        ("block_count", config.num_hidden_layers),
        ("context_length", config.max_position_embeddings),
        ("embedding_length", config.hidden_size),
        ("feed_forward_length", config.intermediate_size),
        ("attention.head_count", config.num_attention_heads),
        ("attention.head_count_kv", config.num_key_value_heads),
        ("rope.dimension_count", config.head_dim),
        ("vocab_size", config.vocab_size),
    ):
        writer.add_uint32(f"llama.{name}", value)
    writer.add_float32("llama.rope.freq_base", config.rope_parameters["rope_theta"])
    writer.add_float32("llama.attention.layer_norm_rms_epsilon", config.rms_norm_eps)
    _write_tokenizer(writer, template)
    for name, value in header.items():
        add = writer.add_string if isinstance(value, str) else writer.add_uint32
        add(name.replace("__", "."), value)
    for name, weights in hf_model.state_dict().items():
        name, weights = _named_tensor(name, weights.detach(), config)
        quantised = kind if weights.ndim > 1 else "F32"
        type_ = gguf.GGMLQuantizationType[quantised]
        packed = gguf.quantize(weights.float().contiguous().cpu().numpy(), type_)
        writer.add_tensor(name, packed, raw_dtype=type_)
    if factors is not None:
        writer.add_tensor("rope_freqs.weight", factors.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _write_tokenizer(writer, template: str | None) -> None:
    saved = json.loads(tokenizer().backend_tokenizer.to_str())["model"]
    vocabulary = sorted(saved["vocab"], key=saved["vocab"].get)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(vocabulary)
    writer.add_token_types([3 if token in SPECIAL else 1 for token in vocabulary])
    writer.add_token_merges([" ".join(merge) for merge in saved["merges"]])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(5)
    writer.add_add_bos_token(False)
    if template is not None:
        writer.add_chat_template(template)


def _named_tensor(name: str, weights: torch.Tensor, config) -> tuple[str, torch.Tensor]:
    """A tensor as llama.cpp's converter names and orders it: rotated pairs lie side by side."""
    module, _, end = name.rpartition(".")
    if module in NAMES:
        return f"{NAMES[module]}.{end}", weights
    _, _, layer, part = module.split(".", 3)
    heads = {"self_attn.q_proj": config.num_attention_heads}
    heads["self_attn.k_proj"] = config.num_key_value_heads
    if part in heads:
        halves = weights.view(heads[part], 2, -1, weights.shape[1])
        weights = halves.transpose(1, 2).reshape(weights.shape)
    return f"blk.{layer}.{LAYER_NAMES[part]}.{end}", weights


def load_gguf(path: Path, **options):
    with pytest.warns(UserWarning, match="once dequantised"):
        return holdfast.load(path, **options)
