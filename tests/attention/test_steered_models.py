"""Steering blocks on every kind of model: adapters, cross-attention, layers without attention,
gradients; and models that cannot be steered.
"""

import copy
import importlib
import re

import accelerate
import pytest
import torch
import transformers
from attention_by_papers import Layer
from cache_kinds import RECURRENT
from open_models import (
    BOOST,
    GREEDY,
    MOVED,
    ROUNDING,
    SPLIT,
    apart,
    assert_refused,
    both_ways,
    hugging_face,
    logits,
    prompts,
)
from tiny import DEVICE, GPTJ, SHAPE, model
from transformers import AutoConfig, AutoModel

import holdfast
from holdfast import Pasta, SplitSoftmax
from holdfast.attention import BatchSteering, holdfast_attention, steer_pass
from holdfast.errors import Unsteerable, UsageError
from holdfast.methods import compile_methods

pytestmark = pytest.mark.usefixtures("inference")


def steered_weights(weights, in_span, exponent):
    """Attention weights [..., key] by Li et al. (2024), equation 6.

    Queries that see only keys of the span, or none of it, keep theirs.
    """
    pi = (weights * in_span).sum(-1, keepdim=True)
    rest_mass = (weights * ~in_span).sum(-1, keepdim=True)
    in_both = (pi > 0) & (rest_mass > 0)
    # where a query keeps its weights, so that no gradient is NaN
    pi, rest_mass = torch.where(in_both, pi, 0.5), torch.where(in_both, rest_mass, 0.5)
    steered = torch.where(
        in_span, weights / pi * pi**exponent, weights / rest_mass * (1 - pi**exponent)
    )
    return torch.where(in_both, steered, weights)


# Attention that a block does not reach

# Gemma 3 has sliding windows; GPT-J does not use the attention interface.
KINDS = {
    "llama": {},
    "qwen3": {"attention": "eager"},
    "gemma3_text": {"sliding_window": 8},
    "gptj": {"attention": "eager", **GPTJ},
}


def assert_unreached(example, change, message):
    """A pass after `change` is refused, and leaves the trace and the model as they were."""
    hf_model, ids, span, _, steered = example
    attention = hf_model.config._attn_implementation
    with (
        holdfast.steering(hf_model, span, [SPLIT], trace=True) as block,
        pytest.raises(Unsteerable, match=rf"{type(hf_model).__name__}.*{message}"),
    ):
        assert torch.equal(logits(hf_model, ids), steered)
        change()
    assert len(block.traces[0].mass[0, 0]) == 1
    assert hf_model.config._attn_implementation == attention


PASSES = {
    "forward": logits,
    "generate": lambda hf_model, ids: hf_model.generate(ids, **GREEDY),
}


@pytest.mark.parametrize("run", PASSES.values(), ids=PASSES)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "gptj"])
def test_a_pass_under_another_implementation_of_attention_is_refused(kind, run):
    example = both_ways(kind, **KINDS[kind])
    hf_model = example.hf_model

    def change_by_method():
        hf_model.set_attn_implementation("sdpa")
        run(hf_model, example.ids)

    def change_configuration():
        hf_model.config._attn_implementation = "eager"
        run(hf_model, example.ids)

    assert_unreached(example, change_by_method, "implementation 'sdpa' inside")
    assert_unreached(example, change_configuration, "implementation 'eager' ins")
    assert torch.equal(logits(hf_model, example.ids), example.plain)


def names_of_attention(hf_model):
    """The names of the base model's attention modules, one for each layer."""
    pattern = re.compile(r"(layers|h)\.\d+\.(self_attn|attn)")
    return [name for name, _ in hf_model.base_model.named_modules() if pattern.fullmatch(name)]


@pytest.mark.parametrize("run", PASSES.values(), ids=PASSES)
@pytest.mark.parametrize(
    ("replaced", "message"), [([1], "layer 1, so"), ([0, 2], "layers 0, 2, so")]
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_pass_past_replaced_attention_is_refused(kind, replaced, message, run):
    example = both_ways(kind, **KINDS[kind])
    base, unpatched = example.hf_model.base_model, copy.deepcopy(example.hf_model).eval().base_model
    names = [names_of_attention(example.hf_model)[layer] for layer in replaced]
    modules = {name: base.get_submodule(name) for name in names}

    def replace():
        for name, module in modules.items():
            stand_in = torch.nn.Module()
            stand_in.forward = type(module).forward.__get__(unpatched.get_submodule(name))
            base.set_submodule(name, stand_in)
        run(example.hf_model, example.ids)

    assert_unreached(example, replace, message)
    for name, module in modules.items():
        base.set_submodule(name, module)
    assert torch.equal(logits(example.hf_model, example.ids), example.plain)


def test_adapters_that_put_tokens_before_the_prompt_are_refused_and_lora_is_not():
    peft = importlib.import_module("peft")
    ids, _, span = prompts()
    for config in (peft.PromptTuningConfig, peft.PrefixTuningConfig):
        base = hugging_face()
        adapted = peft.get_peft_model(base, config(task_type="CAUSAL_LM", num_virtual_tokens=5))
        message = "_TUNING puts its own tokens before the prompt"
        assert_refused(Unsteerable, message, adapted, span, [SPLIT])
        with (
            holdfast.steering(base, span, [SPLIT]),
            pytest.raises(UsageError, match=r"20 tokens.*25|cache"),
        ):
            adapted(ids)
    base = hugging_face()
    plain = peft.get_peft_model(
        base, peft.LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"])
    ).eval()
    with holdfast.steering(base, span, [SPLIT]):
        expected = logits(base, ids)
    with holdfast.steering(plain, span, [SPLIT]):
        assert torch.equal(logits(plain, ids), expected)


# Layers of other kinds


def by_the_formula(monkeypatch, file, span, exponent=0.3):
    """Steers a modeling file's self-attention by the formula on its attention matrix."""
    module = importlib.import_module(file)
    eager = module.eager_attention_forward

    def literal(layer, query, key, value, *args, **kwargs):
        output, weights = eager(layer, query, key, value, *args, **kwargs)
        if getattr(layer, "is_cross_attention", "Cross" in type(layer).__name__):
            return output, weights
        weights = steered_weights(weights.double(), span[:, None, None], exponent)
        value = value.repeat_interleave(weights.shape[1] // value.shape[1], 1).double()
        return (weights @ value).to(output.dtype).transpose(1, 2).contiguous(), weights

    monkeypatch.setattr(module, "eager_attention_forward", literal)


def test_cross_attention_is_never_steered(monkeypatch):
    ids, _, span = prompts()
    gpt2 = hugging_face("gpt2", "eager", n_embd=48, n_layer=3, n_head=4, add_cross_attention=True)
    image = (
        transformers.MllamaForCausalLM._from_config(
            transformers.MllamaTextConfig(
                **SHAPE | {"head_dim": 12},  # hidden_size by heads, which its layers take
                cross_attention_layers=[1],
                rope_parameters={"rope_type": "default", "rope_theta": 1e4},
            ),
            attn_implementation="eager",
        )
        .to(DEVICE)
        .eval()
    )
    torch.manual_seed(2)
    states = torch.randn(2, 20, 48).to(DEVICE)
    with torch.no_grad():
        for parameter in image.parameters():
            parameter.mul_(4 if parameter.ndim > 1 else 1)
        image.model.layers[1].cross_attn_attn_gate.fill_(2.0)
    for hf_model, inputs in (
        (gpt2, {"encoder_hidden_states": states}),
        (image, {"cross_attention_states": states}),
    ):
        plain = logits(hf_model, ids, **inputs)
        assert apart(plain, logits(hf_model, ids)) > MOVED
        with holdfast.steering(hf_model, span, [SPLIT], trace=True) as block:
            steered = logits(hf_model, ids, **inputs)
        with monkeypatch.context() as patch:
            by_the_formula(patch, type(hf_model).__module__, span)
            expected = logits(hf_model, ids, **inputs)
        assert apart(steered, expected) < 10 * ROUNDING < MOVED < apart(steered, plain)
        # cross-attention has no mass on the prompt
        assert block.traces[0].mass.shape[0] == 3 - (hf_model is image)


ZAMBA2 = {
    "layers_block_type": ("mamba", "hybrid", "mamba"),
    "mamba_d_state": 8,
    "n_mamba_heads": 8,
    "mamba_headdim": 12,
    "mamba_ngroups": 1,
    "num_mem_blocks": 1,
}


@pytest.mark.parametrize("kind", ("jamba", "qwen3_next", "bamba", "lfm2", "zamba2"))
def test_heads_of_layers_without_attention_are_refused_by_name(kind):
    options, layers = {**RECURRENT, "zamba2": ZAMBA2}[kind], () if kind == "zamba2" else (1,)
    hf_model, (ids, _, span) = hugging_face(kind, **options), prompts()
    with holdfast.steering(hf_model, span, [SPLIT]):
        on_all_heads = logits(hf_model, ids)
    assert apart(on_all_heads, logits(hf_model, ids)) > 1e-4
    for layer in range(3):
        method = SplitSoftmax(0.3, {(layer, 1)})
        if layer in layers:
            with holdfast.steering(hf_model, span, [method]):
                assert apart(logits(hf_model, ids), on_all_heads) > 0
            continue
        cure = r"layers 1\." if layers else "leave heads out"
        message = rf"layer {layer}, .*{type(hf_model).__name__}.*{cure}"
        assert_refused(UsageError, message, hf_model, span, [method])
    assert hf_model.config._attn_implementation == "sdpa"


def test_a_layer_that_attends_twice_with_the_same_scores_has_one_mass():
    hf_model, (ids, _, span) = hugging_face("diffllama"), prompts()
    with holdfast.steering(hf_model, span, [SPLIT], trace=True) as block:
        hf_model.generate(ids, **GREEDY)
    assert [trace.mass.shape for trace in block.traces] == [(3, 4, 6)] * 2


# Gradients


@pytest.mark.parametrize("exponent", [0.0, 0.3])
@pytest.mark.parametrize("start", [0, 3])
@torch.inference_mode(False)
def test_gradients_are_those_of_the_formula(exponent, start):
    torch.manual_seed(0)
    draws = [torch.randn(2, 4, 9, 16, dtype=torch.double) for _ in range(3)]
    span = torch.zeros(2, 9, dtype=torch.bool)
    mask = torch.ones(9, 9, dtype=torch.bool).tril().expand(2, 1, 9, 9).clone()
    span[:, start : start + 3] = True
    mask[1, :, :, :2] = False  # left-padded: the first queries of row 1 see nothing

    def by_formula(query, key, value):
        scores = (query @ key.mT * 0.25).masked_fill(~mask, -1e30)
        weights = scores.softmax(-1) * mask
        return steered_weights(weights, span[:, None, None], exponent) @ value

    def by_holdfast(*inputs):
        methods = compile_methods([SplitSoftmax(exponent)])
        with steer_pass(BatchSteering(span, [methods] * 2)):
            output, _ = holdfast_attention(Layer(groups=4), *inputs, mask, scaling=0.25)
        return output.transpose(1, 2)

    def gradients(attend):
        inputs = [states.clone().requires_grad_() for states in draws]
        (attend(*inputs) * torch.arange(16.0)).sum().backward()
        return [states.grad for states in inputs]

    for gradient, expected in zip(gradients(by_holdfast), gradients(by_formula), strict=True):
        assert gradient.isfinite().all()
        assert apart(gradient, expected) < 1e-9


def test_gradient_checkpointing_is_refused():
    with torch.inference_mode(False):
        hf_model, (ids, _, span) = hugging_face(), prompts()
        for reentrant in (True, False):
            hf_model.train().activation_checkpointing_enable({"use_reentrant": reentrant})
            with (
                pytest.raises(Unsteerable, match="activation_checkpointing_disable"),
                holdfast.steering(hf_model, span, [SPLIT]),
            ):
                hf_model(ids, use_cache=False)
        hf_model.activation_checkpointing_disable()
        with holdfast.steering(hf_model, span, [SPLIT]):
            loss = hf_model(ids, labels=ids, use_cache=False).loss
        loss.backward()
        gradients = [parameter.grad for parameter in hf_model.parameters()]
        assert all(grad.isfinite().all() for grad in gradients if grad is not None)


# What a block takes, and what it refuses


def test_a_holdfast_model_and_methods_given_as_text_are_accepted():
    local, (ids, _, span) = model(), prompts()
    split, boost = "split-softmax:exponent=0.3", "boost:factor=5"
    for objects, *forms in (
        (
            [[SPLIT, BOOST], [Pasta(0.05)]],
            [[split, boost], ["pasta:alpha=0.05"]],
            [[f"{split}+{boost}"], "pasta:alpha=0.05"],
        ),
        ([SPLIT, BOOST], f"{split}+{boost}", [split, BOOST]),
    ):
        with holdfast.steering(local.hf_model, span, objects):
            expected = logits(local.hf_model, ids)
        for methods in forms:
            with holdfast.steering(local, span, methods):
                assert torch.equal(logits(local.hf_model, ids), expected)
    for spec, message in (("bost:factor=2", "boost"), ("repetition:probability=1", "repetition")):
        assert_refused(UsageError, message, local, span, spec)


SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
T5 = {"vocab_size": 99, "d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}

UNSTEERABLE = {
    "base": (lambda: hugging_face().model, r"LlamaModel gives no logits.*AutoModelForCausalLM"),
    "module": (lambda: torch.nn.Linear(2, 2), r"transformers.*not Linear"),
    "parallel": (lambda: torch.nn.DataParallel(hugging_face()), r"DataParallel.*model\.module"),
    "offloaded": (
        lambda: accelerate.cpu_offload(hugging_face(), torch.device("cpu")),
        r"LlamaForCausalLM.*offloaded by accelerate.*whole",
    ),
    "T5": (
        lambda: transformers.T5ForConditionalGeneration(
            AutoConfig.for_model("t5", decoder_start_token_id=0, **T5)
        ),
        r"T5\w+ has an encoder",
    ),
    "image": (
        lambda: AutoModel.from_config(AutoConfig.for_model("vit", intermediate_size=16, **SMALL)),
        r"ViTModel.*repetition",
    ),
}


@pytest.mark.parametrize("kind", UNSTEERABLE)
def test_a_model_that_cannot_be_steered_is_refused_in_a_sentence(kind):
    make, message = UNSTEERABLE[kind]
    assert_refused(Unsteerable, message, make(), prompts()[2], [SPLIT])


def test_a_model_whose_cache_does_not_count_its_tokens_is_refused_on_entering():
    layers = {"layer_types": ["linear_attention", "full_attention", "linear_attention"]}
    hf_model, (_, _, span) = hugging_face("minimax", **layers), prompts()
    assert_refused(
        Unsteerable, r"MiniMaxForCausalLM.*counts 0 tokens after 2", hf_model, span, [SPLIT]
    )
    with pytest.raises(Unsteerable, match="MiniMaxForCausalLM"):
        model.__wrapped__("minimax", **layers).check([SPLIT])


def test_attention_weights_are_refused_and_plain_passes_still_have_them():
    hf_model, (ids, _, span) = hugging_face(attention="eager"), prompts()
    plain = hf_model(ids, output_attentions=True).attentions
    with holdfast.steering(hf_model, span, [SPLIT]):
        with pytest.raises(Unsteerable, match=r"output_attentions.*trace=True"):
            hf_model(ids, output_attentions=True)
        with pytest.raises(Unsteerable, match=r"output_attentions.*trace=True"):
            hf_model.generate(ids, output_attentions=True, return_dict_in_generate=True, **GREEDY)
        with holdfast.unsteered(hf_model):
            after = hf_model(ids, output_attentions=True).attentions
    assert len(after) == 3 and all(torch.equal(*pair) for pair in zip(after, plain, strict=True))
