"""Compiled models run uncompiled while steered: `torch.compile`, `generate` with static caches."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from test_attention import hugging_face, prompts
from tiny import model
from transformers import CompileConfig

import holdfast
from holdfast import Boost, Pasta, SplitSoftmax
from holdfast.errors import UsageError

ROUNDING = 2e-5  # logits of three layers of large random weights
MOVED = 1e-2  # steering moves them by far more
METHODS = [[SplitSoftmax(0.3)], [Boost(5)], [Pasta(0.05, {(0, 1), (2, 3)})]]


@pytest.fixture(autouse=True)
def _inference():
    torch._dynamo.reset()
    with torch.inference_mode():
        yield
    torch._dynamo.reset()


def apart(one, other):
    return float((one - other).abs().max())


def by_torch_compile(made):
    return torch.compile(made, backend="eager")


def in_place(made):
    made.compile(backend="eager")
    return made


def by_its_forward(made):
    made.forward = torch.compile(made.forward, backend="eager")
    return made


@pytest.mark.slow
@pytest.mark.parametrize("loaded_here", [False, True])
@pytest.mark.parametrize("compile_it", [by_torch_compile, in_place, by_its_forward])
def test_a_model_compiled_beforehand_is_steered_only_within_each_block(compile_it, loaded_here):
    made = model.__wrapped__().hf_model if loaded_here else hugging_face()
    ids, mask, span = prompts()
    given = {"attention_mask": mask, "use_cache": False}
    plain, wanted = made(ids, **given).logits, []
    for methods in METHODS:
        with holdfast.steering(made, span, methods):
            wanted.append(made(ids, **given).logits)
    compiled = compile_it(made)
    assert apart(compiled(ids, **given).logits, plain) < ROUNDING
    for methods, logits in zip(METHODS, wanted, strict=True):
        with holdfast.steering(compiled, span, methods, trace=True) as seen:
            assert apart(compiled(ids, **given).logits, logits) < ROUNDING
        assert apart(logits, plain) > MOVED
        assert [trace.mass.shape for trace in seen.traces] == [(3, 4, 1)] * 2
        assert apart(compiled(ids, **given).logits, plain) < ROUNDING


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["llama", "gemma3_text"])
def test_generate_with_a_static_cache_is_steered_even_if_it_would_compile(kind):
    options = {"sliding_window": 8} if kind == "gemma3_text" else {}
    made, (ids, mask, span) = hugging_face(kind, **options), prompts()
    compiling = CompileConfig(backend="eager", mode=None)
    compiling._compile_all_devices = True
    given = {"attention_mask": mask, "max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False}
    given |= {"output_logits": True, "return_dict_in_generate": True}
    given |= {"cache_implementation": "static"}

    def logits(**how):
        return torch.stack(made.generate(ids, **given, **how).logits)

    plain = logits(compile_config=compiling)
    with holdfast.steering(made, span, METHODS[0]):
        wanted = logits(disable_compile=True)
        assert apart(logits(compile_config=compiling), wanted) < ROUNDING
    assert apart(wanted, plain) > MOVED
    assert apart(logits(compile_config=compiling), plain) < ROUNDING


def test_a_compiled_pass_in_another_thread_is_refused_unless_bound():
    made, (ids, mask, span) = hugging_face(), prompts()
    compiled = torch.compile(made, backend="eager")

    def run():
        with torch.inference_mode():
            return compiled(ids, attention_mask=mask, use_cache=False).logits

    with holdfast.steering(made, span, METHODS[0]) as block, ThreadPoolExecutor(1) as pool:
        with pytest.raises(UsageError, match=r"LlamaForCausalLM.*steered\.bind"):
            pool.submit(run).result(120)
        assert apart(pool.submit(block.bind(run)).result(120), run()) < ROUNDING
