"""Compiled models run uncompiled while steered: `torch.compile`, `generate` with static caches."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from open_models import MOVED, ROUNDING, apart, hugging_face, prompts
from tiny import model
from transformers import CompileConfig

import holdfast
from holdfast import Boost, Pasta, SplitSoftmax
from holdfast.errors import UsageError

METHODS = [[SplitSoftmax(0.3)], [Boost(5)], [Pasta(0.05, {(0, 1), (2, 3)})]]


@pytest.fixture(autouse=True)
def _inference():
    torch._dynamo.reset()
    with torch.inference_mode():
        yield
    torch._dynamo.reset()


def by_torch_compile(hf_model):
    return torch.compile(hf_model, backend="eager")


def in_place(hf_model):
    hf_model.compile(backend="eager")
    return hf_model


def by_its_forward(hf_model):
    hf_model.forward = torch.compile(hf_model.forward, backend="eager")
    return hf_model


@pytest.mark.slow
@pytest.mark.parametrize("loaded_here", [False, True])
@pytest.mark.parametrize("compile_it", [by_torch_compile, in_place, by_its_forward])
def test_a_model_compiled_beforehand_is_steered_only_within_each_block(compile_it, loaded_here):
    hf_model = model.__wrapped__().hf_model if loaded_here else hugging_face()
    ids, mask, span = prompts()
    options = {"attention_mask": mask, "use_cache": False}
    plain, expected = hf_model(ids, **options).logits, []
    for methods in METHODS:
        with holdfast.steering(hf_model, span, methods):
            expected.append(hf_model(ids, **options).logits)
    compiled = compile_it(hf_model)
    assert apart(compiled(ids, **options).logits, plain) < ROUNDING
    for methods, logits in zip(METHODS, expected, strict=True):
        with holdfast.steering(compiled, span, methods, trace=True) as block:
            assert apart(compiled(ids, **options).logits, logits) < ROUNDING
        assert apart(logits, plain) > MOVED
        assert [trace.mass.shape for trace in block.traces] == [(3, 4, 1)] * 2
        assert apart(compiled(ids, **options).logits, plain) < ROUNDING


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["llama", "gemma3_text"])
def test_generate_with_a_static_cache_is_steered_even_if_it_would_compile(kind):
    options = {"sliding_window": 8} if kind == "gemma3_text" else {}
    hf_model, (ids, mask, span) = hugging_face(kind, **options), prompts()
    compiling = CompileConfig(backend="eager", mode=None)
    compiling._compile_all_devices = True
    inputs = {"attention_mask": mask, "max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False}
    inputs |= {"output_logits": True, "return_dict_in_generate": True}
    inputs |= {"cache_implementation": "static"}

    def logits(**how):
        return torch.stack(hf_model.generate(ids, **inputs, **how).logits)

    plain = logits(compile_config=compiling)
    with holdfast.steering(hf_model, span, METHODS[0]):
        expected = logits(disable_compile=True)
        assert apart(logits(compile_config=compiling), expected) < ROUNDING
    assert apart(expected, plain) > MOVED
    assert apart(logits(compile_config=compiling), plain) < ROUNDING


def test_a_compiled_pass_in_another_thread_is_refused_unless_bound():
    hf_model, (ids, mask, span) = hugging_face(), prompts()
    compiled = torch.compile(hf_model, backend="eager")

    def run():
        with torch.inference_mode():
            return compiled(ids, attention_mask=mask, use_cache=False).logits

    with holdfast.steering(hf_model, span, METHODS[0]) as block, ThreadPoolExecutor(1) as pool:
        with pytest.raises(UsageError, match=r"LlamaForCausalLM.*steered\.bind"):
            pool.submit(run).result(120)
        assert apart(pool.submit(block.bind(run)).result(120), run()) < ROUNDING
