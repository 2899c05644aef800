"""Tiny models with every kind of cache: windows, chunks, shared layers and recurrent states.

`WINDOWED` and `RECURRENT` have the options of each architecture's configuration, beyond
`tiny.SHAPE`. Windows and chunks hold 16 tokens, fewer than the 30 or so of a first turn.
"""

from tiny import model

_EAGER_EXPERTS = {"experts_implementation": "eager"}  # the other one does not support float64
TWO_EXPERTS = {**_EAGER_EXPERTS, "num_local_experts": 2, "num_experts_per_tok": 1}
_ALTERNATING_LAYERS = {
    "num_hidden_layers": 4,
    "layer_types": ("sliding_attention", "full_attention") * 2,
}
_SHARED_LAYERS = {
    **_ALTERNATING_LAYERS,
    "num_kv_shared_layers": 2,
    "hidden_size_per_layer_input": 8,
    "vocab_size_per_layer_input": 400,
}

WINDOWED = {
    "mistral": {"sliding_window": 16},
    "phi3": {"sliding_window": 16},
    "qwen3": {"sliding_window": 16, "use_sliding_window": True, "max_window_layers": 1},
    "smollm3": {
        "sliding_window": 16,
        "use_sliding_window": True,
        "no_rope_layers": (1, 0, 1),
    },
    "gemma2": {"sliding_window": 16},
    "gemma3_text": {"sliding_window": 16},
    "cohere2": {"sliding_window": 16, **_ALTERNATING_LAYERS},
    "olmo3": {"sliding_window": 16},
    "gpt_oss": {"sliding_window": 16, **TWO_EXPERTS},
    "llama4_text": {
        "attention_chunk_size": 16,
        "intermediate_size_mlp": 96,
        "no_rope_layers": (1, 0, 1),
        **TWO_EXPERTS,
    },
    "gemma3n_text": {
        "sliding_window": 16,
        "laurel_rank": 8,
        "activation_sparsity_pattern": (0.0,) * 4,
        **_SHARED_LAYERS,
    },
    "gemma4_text": {"sliding_window": 16, **_SHARED_LAYERS},
}

_MAMBA_2 = {
    "mamba_n_heads": 8,
    "mamba_d_head": 12,
    "mamba_d_state": 8,
    "mamba_n_groups": 1,
    "mamba_chunk_size": 16,
}
# states of a convolution, a recurrence or both; attention in other layers, the same or none
RECURRENT = {
    "qwen3_next": {
        "layer_types": ("linear_attention", "full_attention", "linear_attention"),
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 24,
        "shared_expert_intermediate_size": 24,
        **_EAGER_EXPERTS,
    },
    "lfm2": {"layer_types": ("conv", "full_attention", "conv"), "block_auto_adjust_ff_dim": False},
    "bamba": {"attn_layer_indices": (1,), **_MAMBA_2},
    "falcon_h1": {"mamba_d_ssm": 96, **_MAMBA_2},
    "jamba": {
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
        "mamba_d_state": 8,
        "num_experts": 2,
        "num_experts_per_tok": 1,
        **_EAGER_EXPERTS,
    },
    "mamba2": {"num_heads": 8, "head_dim": 12, "state_size": 8, "n_groups": 1, "chunk_size": 16},
    "mamba": {"state_size": 8},
}
# one of each family: windows, shared layers, sinks, chunks, and states of each sort
FAMILIES = {
    "mistral",
    "gemma3_text",
    "gemma4_text",
    "gpt_oss",
    "llama4_text",
    "qwen3_next",
    "lfm2",
    "jamba",
    "mamba2",
}


def model_in_float64(kind):
    """A model of this kind in float64, so that a row draws the same tokens alone and in a batch."""
    return model(kind, dtype="float64", **(WINDOWED | RECURRENT)[kind])
