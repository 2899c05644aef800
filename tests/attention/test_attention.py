"""Steered attention: against the float64 oracles, on every kind of mask and cache."""

import pytest
import torch
from attention_by_papers import (
    BFLOAT16,
    BOOST,
    EVERYWHERE,
    FLOAT32,
    KEEP,
    MIXED,
    SPLIT,
    SPOT,
    Layer,
    attend_by_papers,
    max_difference,
)
from open_models import ROUNDING, hugging_face, prompts
from tiny import DEVICE, GPTJ
from torch.utils._python_dispatch import TorchDispatchMode

import holdfast
from holdfast import Boost, Pasta, Repetition, SplitSoftmax, Spotlight
from holdfast.attention import (
    BatchSteering,
    fused_kernels,
    holdfast_attention,
    install,
    layers,
    steer_pass,
)
from holdfast.errors import Unsteerable, UsageError
from holdfast.methods import compile_methods


def random_qkv(queries, keys, groups, dtype, seed=0):
    torch.manual_seed(seed)
    q, k = torch.randn(3, 4, queries, 16) * 1.5, torch.randn(3, groups, keys, 16) * 1.5
    v = torch.randn(3, groups, keys, 16).clamp(-3, 3)
    return [states.to(DEVICE, dtype) for states in (q, k, v)]


def causal(queries, keys):
    return torch.ones(3, 1, queries, keys, dtype=torch.bool, device=DEVICE).tril(keys - queries)


def spans(kind, keys):
    """The span of each of three rows."""
    columns = {
        "first": [range(5)] * 3,
        "even": [range(3, 8)] * 3,
        "ragged": [range(2, 7), range(5, 9), [1, 6, 7]],
        "some empty": [[], range(4, 9), []],
        "whole": [range(keys)] * 3,
    }[kind]
    span = torch.zeros(3, keys, dtype=torch.bool, device=DEVICE)
    for row, inside in enumerate(columns):
        span[row, list(inside)] = True
    return span


@pytest.mark.parametrize(
    "methods",
    [*EVERYWHERE, *MIXED],
    ids=lambda rows: "/".join("+".join(m.name for m in row) or "none" for row in rows),
)
@pytest.mark.parametrize("kind", ["first", "even", "ragged", "some empty", "whole"])
@pytest.mark.parametrize("shape", ["step", "prefill", "more"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_outputs_and_masses_match_the_papers(methods, kind, shape, dtype):
    assert_matches_papers(methods, kind, shape, dtype)


def assert_matches_papers(methods, kind, shape, dtype):
    """Under every mask and with every length of the prompt, traced or not."""
    queries, keys = {"step": (1, 14), "prefill": (14, 14), "more": (3, 14)}[shape]
    rounding = FLOAT32 if dtype == torch.float32 else BFLOAT16
    for masked in ("not", "left", "nothing seen"):
        if masked == "not" and shape == "more":
            continue  # transformers passes a mask here
        q, k, v = random_qkv(queries, keys, 2, dtype)
        visible = causal(queries, keys).clone()
        if masked != "not":
            visible[1, :, :, :2] = False
            visible[0, :, :, :10] &= masked == "left"
        for prompt in ((14, 14, 14), (11, 13, 12)):
            in_prompt = torch.arange(keys) < torch.tensor(prompt)[:, None]
            span = spans(kind, keys) & in_prompt.to(DEVICE)
            expected, mass = attend_by_papers(q, k, v, visible, span, methods, prompt, 0.25)
            for trace in (False, True):
                rows = list(map(compile_methods, methods))
                steering = BatchSteering(span, rows, trace=trace, prompt_columns=prompt)
                inputs = q, k, v, None if masked == "not" else visible
                with steer_pass(steering) as state, torch.inference_mode():
                    out, _ = holdfast_attention(Layer(), *inputs, scaling=0.25)
                # the output of a query that sees nothing is undefined on a GPU
                out = out * visible.any(-1)[:, 0, :, None, None]
                assert max_difference(out, expected) < rounding
            if dtype == torch.float32:
                assert max_difference(state.masses[0], mass[..., -1]) < FLOAT32


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("queries", [1, 14])
def test_grouped_and_multi_query_attention_match_the_papers(groups, queries):
    q, k, v = random_qkv(queries, 14, groups, torch.float32)
    methods, span = [(SPLIT,), (KEEP,), ()], spans("even", 14)
    steering = BatchSteering(span, list(map(compile_methods, methods)), prompt_columns=[12] * 3)
    with steer_pass(steering), torch.inference_mode():
        out, _ = holdfast_attention(Layer(groups), q, k, v, None, scaling=0.25)
    expected, _ = attend_by_papers(q, k, v, causal(queries, 14), span, methods, [12] * 3, 0.25)
    assert max_difference(out, expected) < FLOAT32


def assert_explicit_attention_matches(qkv, visible, mask=None, **options):
    """Attention with features that the fused kernels lack equals the papers' formulas."""
    methods, span, prompt = [(SPLIT,), (BOOST, KEEP), (SPOT,)], spans("even", 14), [12] * 3
    rows = list(map(compile_methods, methods))
    with steer_pass(BatchSteering(span, rows, trace=True, prompt_columns=prompt)) as state:
        out, _ = holdfast_attention(Layer(), *qkv, mask, scaling=0.25, **options)
    inputs = [states.detach() for states in qkv]
    features = options.get("s_aux"), options.get("softcap")
    expected, mass = attend_by_papers(*inputs, visible, span, methods, prompt, 0.25, *features)
    assert max_difference(out, expected) < FLOAT32
    assert max_difference(state.masses[0], mass[..., -1]) < FLOAT32
    return out


SINKS = torch.tensor([0.5, -1.0, 2.0, 6.0], device=DEVICE)


@pytest.mark.parametrize("queries", [1, 14])
@pytest.mark.parametrize(
    "options",
    [{"softcap": 2.0}, {"s_aux": SINKS}, {"softcap": 2.0, "s_aux": SINKS}],
    ids=["soft cap", "sinks", "both"],
)
def test_soft_caps_and_sinks_match_the_papers(queries, options):
    qkv = random_qkv(queries, 14, 2, torch.float32)
    assert_explicit_attention_matches(qkv, causal(queries, 14), **options)


@pytest.mark.parametrize("queries", [1, 14])
def test_values_narrower_than_the_keys_match_the_papers(queries):
    q, k, v = random_qkv(queries, 14, 2, torch.float32)
    assert_explicit_attention_matches((q, k, v[..., :6]), causal(queries, 14))


@pytest.mark.parametrize("queries", [1, 14])
def test_float64_matches_the_papers(queries):
    assert_explicit_attention_matches(
        random_qkv(queries, 14, 2, torch.float64), causal(queries, 14)
    )


@pytest.mark.parametrize("queries", [1, 14])
def test_a_mask_for_each_head_matches_the_papers(queries):
    qkv = random_qkv(queries, 14, 2, torch.float32)
    by_head = (torch.rand(3, 4, queries, 14) < 0.8).to(DEVICE)
    visible = causal(queries, 14).expand(3, 4, -1, -1) & by_head
    assert_explicit_attention_matches(qkv, visible, visible)


@pytest.mark.parametrize("queries", [1, 14])
def test_an_additive_mask_that_hides_the_span_from_a_row_matches_the_papers(queries):
    least = torch.finfo(torch.float32).min
    mask = torch.zeros(3, 1, queries, 14, device=DEVICE)
    mask = mask.masked_fill(~causal(queries, 14), least)
    mask[2, ..., 3:8] = least
    assert_explicit_attention_matches(random_qkv(queries, 14, 2, torch.float32), mask == 0, mask)


@pytest.mark.parametrize("queries", [1, 14])
def test_gradients_reach_the_queries(queries):
    q, k, v = random_qkv(queries, 14, 2, torch.float32)
    q.requires_grad_()
    assert_explicit_attention_matches((q, k, v), causal(queries, 14)).sum().backward()
    assert q.grad.isfinite().all() and q.grad.abs().sum() > 0


@pytest.mark.parametrize("queries", [1, 14])
@pytest.mark.parametrize("toward", [-1, 1])
def test_masses_within_1e_minus_30_of_0_and_1_give_finite_outputs(queries, toward):
    """For scores 70 below or above the others, float32 can hold only the log-odds."""
    q, k = torch.ones(3, 4, queries, 16), torch.randn(3, 2, 14, 16) * 1e-3
    q, k, v = (states.to(DEVICE) for states in (q, k, torch.randn(3, 2, 14, 16)))
    k[:, :, 3:8] += toward * 70 / 4
    methods = [(SplitSoftmax(0.01),), (Boost(1e20),), (Pasta(1e-20, None, "scale"),)]
    steering = BatchSteering(spans("even", 14), list(map(compile_methods, methods)), trace=True)
    with steer_pass(steering) as state, torch.inference_mode():
        out, _ = holdfast_attention(Layer(), q, k, v, None, scaling=0.25)
    assert out.isfinite().all()
    if toward < 0:  # the mass is 1e-30; near 1 the oracle itself would divide by 0
        visible = causal(queries, 14)
        expected, mass = attend_by_papers(
            q, k, v, visible, spans("even", 14), methods, [14] * 3, 0.25
        )
        # scores of 70 have a rounding of 4e-6, times 20 in the exponent
        assert max_difference(out, expected) < 10 * FLOAT32
        assert max_difference(state.masses[0], mass[..., -1]) < 10 * FLOAT32
    else:
        assert (state.masses[0] > 1 - FLOAT32).all()


@pytest.mark.parametrize("queries", [1, 14])
@pytest.mark.parametrize(
    "method", [SplitSoftmax(1), Pasta(1), Boost(1), Spotlight(0)], ids=lambda method: method.name
)
def test_neutral_settings_give_unsteered_attention(method, queries):
    q, k, v = random_qkv(queries, 14, 2, torch.float32)
    with torch.inference_mode():
        with steer_pass(None):
            plain, _ = holdfast_attention(Layer(), q, k, v, None, scaling=0.25)
        with steer_pass(BatchSteering(spans("even", 14), [compile_methods((method,))] * 3)):
            out, _ = holdfast_attention(Layer(), q, k, v, None, scaling=0.25)
        traced = BatchSteering(spans("even", 14), [compile_methods(())] * 3, trace=True)
        with steer_pass(traced):
            with_mass, _ = holdfast_attention(Layer(), q, k, v, None, scaling=0.25)
    assert (out - plain).abs().max() < 2e-6
    if DEVICE.type == "cpu":  # on a GPU, steered steps have a kernel of their own
        assert torch.equal(with_mass, plain)  # though the mass was read


class Largest(TorchDispatchMode):
    """Records the size of the largest tensor that any operation creates."""

    numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(tensor, torch.Tensor):
                self.numbers = max(self.numbers, tensor.numel())
        return result


@pytest.mark.slow
@pytest.mark.parametrize("softcap", [None, 5.0])
def test_long_prompts_never_hold_scores_of_all_queries_and_keys(softcap):
    length = 32768 if softcap is None else 6144
    q = torch.randn(1, 4, length, 8, device=DEVICE)
    k, v = torch.randn(2, 1, 2, length, 8, device=DEVICE)
    span = torch.zeros(1, length, dtype=torch.bool, device=DEVICE)
    span[0, 5:200], span[0, 90] = True, False
    kwargs = {} if softcap is None else {"softcap": softcap}
    largest = Largest()
    steering = BatchSteering(span, [compile_methods([SPLIT])], trace=True)
    with steer_pass(steering), torch.inference_mode(), largest:
        holdfast_attention(Layer(), q, k, v, None, scaling=0.25, **kwargs)
    assert largest.numbers <= 2**23 < 2 * length**2


ALL = torch.ones(2, 20, dtype=torch.bool, device=DEVICE)
# the shape of DeepSeek's latent attention
DEEPSEEK = {"q_lora_rank": 16, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4}
DEEPSEEK |= {"v_head_dim": 8, "n_group": 1, "topk_group": 1, "n_routed_experts": 4, "head_dim": 4}
DEEPSEEK |= {"num_experts_per_tok": 2, "moe_intermediate_size": 16, "num_key_value_heads": 4}
WINDOWS = {"sliding_window": 8}
TWO_EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1}
# each with its implementation of attention and its options
ZOO = [
    ("llama", "sdpa", {}),
    ("llama", "eager", {}),
    ("llama", "sdpa", {"num_key_value_heads": 1}),
    ("gemma2", "eager", WINDOWS),
    ("gemma3_text", "sdpa", WINDOWS),
    ("gpt_oss", "eager", TWO_EXPERTS),
    ("gptj", "eager", GPTJ),
    ("deepseek_v3", "sdpa", {**DEEPSEEK, "first_k_dense_replace": 1}),
]
BOTH = [Pasta(0.05, {(0, 1), (2, 3)}), BOOST]


@pytest.mark.parametrize("zoo", ZOO, ids=lambda zoo: f"{zoo[0]}-{zoo[1]}{len(zoo[2])}")
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


@pytest.mark.parametrize(
    ("span", "methods", "message"),
    [
        (ALL & False, [SPLIT], r"\[2, 20\].*empty in row 0:.*add a system message"),
        (ALL[0], [SPLIT], r"\[batch, token\].*\[20\]"),
        (torch.ones(2, 20), [SPLIT], "torch.float32"),
        (ALL, [Repetition(0.5)], "repetition:probability=0.5"),
        (ALL, [[SPLIT]], "1 lists.*2 rows"),
        (ALL, [SplitSoftmax(0.5, {(0, 9)})], "head 9.*4 heads"),
        (ALL, [SplitSoftmax(0.5, {(7, 0)})], "layer 7.*3 layers"),
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


@pytest.mark.parametrize(
    ("kind", "options"), [("gemma2", WINDOWS), ("gpt_oss", TWO_EXPERTS), ("llama", {})]
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


class CudaKernels:
    """Checks what the kernels of a GPU are given, and computes on the CPU."""

    def __init__(self):
        self.called = []
        self.on_cpu = fused_kernels._ATEN._scaled_dot_product_flash_attention_for_cpu

    def _attended(self, name, query, key, value, bias, causal, scale):
        self.called.append(name)
        assert query.shape[3] % 8 == 0 and not (causal and query.shape[2] != key.shape[2])
        return self.on_cpu(query, key, value, 0.0, causal, attn_mask=bias, scale=scale)

    def _scaled_dot_product_flash_attention(
        self, query, key, value, dropout, causal, debug, *, scale
    ):
        assert query.dtype in (torch.float16, torch.bfloat16)
        return *self._attended("flash", query, key, value, None, causal, scale), None, None

    def _scaled_dot_product_efficient_attention(
        self, query, key, value, bias, compute_lse, dropout, causal, *, scale
    ):
        assert compute_lse and query.shape[1] == key.shape[1] and query.dtype != torch.float64
        if bias is not None:
            assert bias.isfinite().all() and bias.dtype == query.dtype
            assert bias.shape == (*query.shape[:3], key.shape[2]) and bias.stride(2) % 16 == 0
        output, lse = self._attended("efficient", query, key, value, bias, causal, scale)
        padded = torch.nn.functional.pad(lse, (0, -lse.shape[2] % 32), value=torch.inf)
        return output, padded, None, None


@pytest.mark.skipif(DEVICE.type != "cpu", reason="here the kernels themselves are tested")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", ["step", "prefill", "more"])
def test_gpu_kernels_get_valid_arguments_and_their_outputs_are_used(monkeypatch, dtype, shape):
    on_gpu, flash = CudaKernels(), dtype == torch.bfloat16 and shape != "more"
    monkeypatch.setattr(fused_kernels, "_ATEN", on_gpu)
    monkeypatch.setattr(fused_kernels, "_on_cpu", lambda query: False)
    for methods, kind in ((EVERYWHERE[0], "even"), (MIXED[1], "ragged")):
        assert_matches_papers(methods, kind, shape, dtype)
    assert {"efficient"} | ({"flash"} if flash else set()) == set(on_gpu.called)
