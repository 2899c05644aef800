"""`holdfast.steering` around models of transformers: passes, refusals, and the model afterwards."""

import pytest
import torch
from attention_by_papers import BOOST, KEEP, SPLIT
from open_models import ROUNDING, hugging_face, prompts
from tiny import DEVICE, GPTJ

import holdfast
from holdfast import Pasta, Repetition, SplitSoftmax
from holdfast.attention import BatchSteering, install, layers, steer_pass
from holdfast.errors import Unsteerable, UsageError
from holdfast.methods import compile_methods

WINDOWED = {"sliding_window": 8}
TWO_EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1}


# Passes

# the shape of DeepSeek's latent attention
DEEPSEEK = {
    **{"q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4},
    **{"v_head_dim": 8, "n_group": 1, "topk_group": 1, "n_routed_experts": 4, "head_dim": 4},
    **{"num_experts_per_tok": 2, "moe_intermediate_size": 16, "num_key_value_heads": 4},
}

# each with its implementation of attention and its options
MODELS = [
    ("llama", "sdpa", {}),
    ("llama", "eager", {}),
    ("llama", "sdpa", {"num_key_value_heads": 1}),
    ("gemma2", "eager", WINDOWED),
    ("gemma3_text", "sdpa", WINDOWED),
    ("gpt_oss", "eager", TWO_EXPERTS),
    ("gptj", "eager", GPTJ),
    ("deepseek_v3", "sdpa", {**DEEPSEEK, "first_k_dense_replace": 1}),
]
BOTH = [Pasta(0.05, {(0, 1), (2, 3)}), BOOST]


@pytest.mark.parametrize("zoo", MODELS, ids=lambda zoo: f"{zoo[0]}-{zoo[1]}{len(zoo[2])}")
@pytest.mark.parametrize("methods", [[SPLIT], [KEEP], BOTH], ids=["split", "pasta", "both"])
@torch.inference_mode()
def test_generating_step_by_step_equals_the_full_forward_and_padding_changes_nothing(zoo, methods):
    kind, attention, options = zoo
    model, (ids, mask, span) = hugging_face(kind, attention, **options), prompts()
    plain = model(ids, attention_mask=mask).logits
    greedy = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False}
    greedy |= {"output_logits": True, "return_dict_in_generate": True}
    with holdfast.steering(model, span, methods, trace=True) as block:
        done = model.generate(ids, attention_mask=mask, **greedy)
    steps = torch.stack(done.logits, 1)
    assert [trace.mass.shape for trace in block.traces] == [(3, 4, 6)] * 2
    with holdfast.steering(model, span, methods) as untraced:
        full_mask = torch.cat([mask, mask.new_ones(2, 6)], 1)
        positions = (full_mask.cumsum(-1) - 1).clamp(min=0)
        inputs = {"attention_mask": full_mask, "position_ids": positions, "use_cache": False}
        full = model(done.sequences, **inputs).logits
        assert not untraced.traces
        if kind in ("llama", "gemma3_text"):
            static = {"cache_implementation": "static", "disable_compile": True, **greedy}
            static_output = model.generate(ids, attention_mask=mask, **static)
            assert (torch.stack(static_output.logits, 1) - steps).abs().max() < ROUNDING
    with holdfast.steering(model, span[:1, 4:], methods):
        alone = model(done.sequences[:1, 4:], use_cache=False).logits
    assert (steps - full[:, 19:25]).abs().max() < ROUNDING
    assert (alone[:, -7:] - full[:1, -7:]).abs().max() < ROUNDING
    assert (full[:, 19] - plain[:, -1]).abs().max() > 1e-3
    assert torch.equal(model(ids, attention_mask=mask).logits, plain)


@torch.inference_mode()
def test_rows_have_their_own_methods_and_replies_of_one_prompt_share_them():
    model, (ids, _, span) = hugging_face(), prompts()
    row_methods = [[SPLIT], [KEEP, BOOST]]
    with holdfast.steering(model, span, row_methods):
        batched = model(ids).logits
    for row in (0, 1):
        with holdfast.steering(model, span[row : row + 1], row_methods[row]):
            alone = model(ids[row : row + 1]).logits
        assert (alone - batched[row : row + 1]).abs().max() < ROUNDING
    search = {"num_beams": 3, "num_return_sequences": 2, "max_new_tokens": 5, "do_sample": False}
    with holdfast.steering(model, span, row_methods):
        beams = model.generate(ids, **search)
    for row in (0, 1):
        with holdfast.steering(model, span[row : row + 1], row_methods[row]):
            alone = model.generate(ids[row : row + 1], **search)
        assert torch.equal(alone, beams[2 * row : 2 * row + 2, : alone.shape[1]])


# Refusals

EVERY_TOKEN = torch.ones(2, 20, dtype=torch.bool, device=DEVICE)


@pytest.mark.parametrize(
    ("span", "methods", "message"),
    [
        (EVERY_TOKEN & False, [SPLIT], r"\[2, 20\].*empty in row 0:.*add a system message"),
        (EVERY_TOKEN[0], [SPLIT], r"\[batch, token\].*\[20\]"),
        (torch.ones(2, 20), [SPLIT], "torch.float32"),
        (EVERY_TOKEN, [Repetition(0.5)], "repetition:probability=0.5"),
        (EVERY_TOKEN, [[SPLIT]], "1 lists.*2 rows"),
        (EVERY_TOKEN, [SplitSoftmax(0.5, {(0, 9)})], "head 9.*4 heads"),
        (EVERY_TOKEN, [SplitSoftmax(0.5, {(7, 0)})], "layer 7.*3 layers"),
    ],
)
def test_bad_input_is_refused_on_entering(span, methods, message):
    model = hugging_face()
    with pytest.raises(UsageError, match=message), holdfast.steering(model, span, methods):
        raise AssertionError("entered")
    assert model.config._attn_implementation == "sdpa"


@torch.inference_mode()
def test_a_mask_longer_than_the_prompt_or_of_another_batch_size_is_refused():
    model, (ids, _, span) = hugging_face(), prompts()
    with pytest.raises(UsageError, match=r"20 tokens.*15"), holdfast.steering(model, span, [SPLIT]):
        model(ids[:, :15])
    message = r"2 rows.*batch 3"
    with pytest.raises(UsageError, match=message), holdfast.steering(model, span, [SPLIT]):
        model(ids[:1].expand(3, -1))
    assert model.config._attn_implementation == "sdpa"


def test_dropout_is_refused_rather_than_ignored():
    model, (ids, _, span) = hugging_face(attention_dropout=0.1).train(), prompts()
    with pytest.raises(Unsteerable, match=r"0\.1.*eval"), holdfast.steering(model, span, [SPLIT]):
        model(ids)
    assert model.training


# The model outside a block


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_leaving_restores_the_model_after_an_exception_too(attention):
    model, (ids, _, span) = hugging_face(attention=attention), prompts()
    plain = model(ids).logits
    with pytest.raises(RuntimeError, match="boom"), holdfast.steering(model, span, [SPLIT]):
        model(ids)
        raise RuntimeError("boom")
    assert model.config._attn_implementation == attention
    assert torch.equal(model(ids).logits, plain)
    gptj = hugging_face("gptj", "eager", **GPTJ)
    with pytest.raises(RuntimeError, match="boom"), holdfast.steering(gptj, span, [SPLIT]):
        raise RuntimeError("boom")
    assert all("_attn" not in vars(module) for module in gptj.modules())


@pytest.mark.parametrize(
    ("kind", "options"), [("gemma2", WINDOWED), ("gpt_oss", TWO_EXPERTS), ("llama", {})]
)
@torch.inference_mode()
def test_an_adopted_model_runs_its_own_attention_when_unsteered(kind, options, monkeypatch):
    model, (ids, mask, span) = hugging_face(kind, "eager", **options), prompts()
    arguments = {"attention_mask": mask, "max_new_tokens": 4, "do_sample": False}
    static = {**arguments, "cache_implementation": "static", "disable_compile": True}

    def outputs():
        generated = [model.generate(ids, **options) for options in (arguments, static)]
        return [model(ids, attention_mask=mask).logits, *generated]

    expected = outputs()
    assert install(model)
    with steer_pass(BatchSteering(span, [compile_methods((SPLIT,))] * 2)):
        steered = model(ids, attention_mask=mask, use_cache=False).logits
    monkeypatch.setattr(layers, "attend_explicitly", None)  # not called
    assert all(torch.equal(*pair) for pair in zip(outputs(), expected, strict=True))
    assert (steered - expected[0]).abs().max() > 1e-3
    with steer_pass(None):
        assert torch.equal(model(ids, attention_mask=mask).logits, expected[0])
