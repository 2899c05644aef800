"""Tiny models with every kind of cache: windows, chunks, shared layers and recurrent states."""

from tiny import model

# the other implementation of experts does not support float64
EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1, "experts_implementation": "eager"}
TWO_KINDS = ("sliding_attention", "full_attention") * 2
SHARED = {"num_hidden_layers": 4, "num_kv_shared_layers": 2, "layer_types": TWO_KINDS}
SHARED |= {"hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 400}
SWITCHED = {"sliding_window": 16, "use_sliding_window": True}
CHUNKED = {"attention_chunk_size": 16, "intermediate_size_mlp": 96, "no_rope_layers": (1, 0, 1)}
SPARSE = {"laurel_rank": 8, "activation_sparsity_pattern": (0.0,) * 4}
# windows and chunks of 16 tokens; a first turn has about 30
KINDS = {
    "mistral": {"sliding_window": 16},
    "phi3": {"sliding_window": 16},
    "qwen3": {**SWITCHED, "max_window_layers": 1},
    "smollm3": {**SWITCHED, "no_rope_layers": (1, 0, 1)},
    "gemma2": {"sliding_window": 16},
    "gemma3_text": {"sliding_window": 16},
    "cohere2": {"sliding_window": 16, "layer_types": TWO_KINDS, "num_hidden_layers": 4},
    "olmo3": {"sliding_window": 16},
    "gpt_oss": {"sliding_window": 16, **EXPERTS},
    "llama4_text": {**CHUNKED, **EXPERTS},
    "gemma3n_text": {"sliding_window": 16, **SPARSE, **SHARED},
    "gemma4_text": {"sliding_window": 16, **SHARED},
}
MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 12, "mamba_d_state": 8, "mamba_n_groups": 1}
MAMBA["mamba_chunk_size"] = 16
ROUTED = {"num_experts_per_tok": 2, "experts_implementation": "eager", "num_experts": 4}
ROUTED |= {"moe_intermediate_size": 24, "shared_expert_intermediate_size": 24}
LINEAR = {"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 8}
LINEAR |= {"linear_value_head_dim": 8}
LINEAR["layer_types"] = ("linear_attention", "full_attention", "linear_attention")
JAMBA = {"attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 8, "num_experts": 2}
# states of a convolution, a recurrence or both; attention in other layers, the same or none
STATES = {
    "qwen3_next": {**LINEAR, **ROUTED},
    "lfm2": {"layer_types": ("conv", "full_attention", "conv"), "block_auto_adjust_ff_dim": False},
    "bamba": {"attn_layer_indices": (1,), **MAMBA},
    "falcon_h1": {"mamba_d_ssm": 96, **MAMBA},
    "jamba": {**JAMBA, "num_experts_per_tok": 1, "experts_implementation": "eager"},
    "mamba2": {"num_heads": 8, "head_dim": 12, "state_size": 8, "n_groups": 1, "chunk_size": 16},
    "mamba": {"state_size": 8},
}
# one of each family: windows, shared layers, sinks, chunks, and states of each sort
FAMILIES = {"mistral", "gemma3_text", "gemma4_text", "gpt_oss", "llama4_text"}
FAMILIES |= {"qwen3_next", "lfm2", "jamba", "mamba2"}


def double(kind):
    """A model in float64, so that a row draws the same tokens alone and in a batch."""
    return model(kind, dtype="float64", **(KINDS | STATES)[kind])
