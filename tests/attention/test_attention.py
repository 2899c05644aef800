"""One steered layer against the papers' formulas in float64, with every kind of mask and score."""

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
from tiny import DEVICE
from torch.utils._python_dispatch import TorchDispatchMode

from holdfast import Boost, Pasta, SplitSoftmax, Spotlight
from holdfast.attention import BatchSteering, fused_kernels, holdfast_attention, steer_pass
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


# The formulas


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


# Features that the fused kernels lack


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


# Memory


class LargestTensor(TorchDispatchMode):
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
    largest = LargestTensor()
    steering = BatchSteering(span, [compile_methods([SPLIT])], trace=True)
    with steer_pass(steering), torch.inference_mode(), largest:
        holdfast_attention(Layer(), q, k, v, None, scaling=0.25, **kwargs)
    assert largest.numbers <= 2**23 < 2 * length**2


# The kernels of a GPU


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
