"""Steering inside compiled passes: `torch.compile(model)`, and `generate` with a static cache.

A backend that counts its graphs stands in for Inductor where only the graph matters.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from test_attention import hugging_face, prompts
from tiny import model
from transformers import CompileConfig, DynamicCache

import holdfast
from holdfast import Boost, Pasta, SplitSoftmax, Spotlight
from holdfast.attention import SteeringSpec, steered
from holdfast.errors import ModelError, UsageError

ROUNDING = 2e-5  # logits of three layers of large random weights
MOVED = 1e-2  # what steering moves those by is far more
METHODS = [
    [SplitSoftmax(0.3)],
    [Boost(5)],
    [Pasta(0.05)],
    [Pasta(0.05), Spotlight(0.4)],  # of no table
    [SplitSoftmax(0.3, {(0, 1), (2, 3)})],
]


@pytest.fixture(autouse=True)
def _inference():
    torch._dynamo.reset()
    with torch.inference_mode():
        yield
    torch._dynamo.reset()


class Counting:
    """A backend that runs graphs as they are, and counts them."""

    def __init__(self):
        self.graphs = 0

    def __deepcopy__(self, memo):
        return self  # `generate` copies its configuration

    def __call__(self, graph, inputs):
        self.graphs += 1
        return graph.forward


def apart(one, other):
    return float((one - other).abs().max())


def eagerly(made, ids, mask, span, methods):
    with holdfast.steering(made, span, methods):
        return made(ids, attention_mask=mask, use_cache=False).logits


@pytest.mark.parametrize("adopted", [False, True])
def test_a_compiled_model_is_steered_block_by_block_without_compiling_again(adopted):
    made = model.__wrapped__().hf_model if adopted else hugging_face()
    ids, mask, span = prompts()
    given, backend = {"attention_mask": mask, "use_cache": False}, Counting()
    plain = made(ids, **given).logits
    compiled = torch.compile(made, fullgraph=True, backend=backend)
    assert apart(compiled(ids, **given).logits, plain) < ROUNDING
    for methods in METHODS:
        for where in (span, span.roll(2, 1)):
            wanted = eagerly(made, ids, mask, where, methods)
            with holdfast.steering(compiled, where, methods, trace=True) as seen:
                found = compiled(ids, **given).logits
            assert apart(found, wanted) < ROUNDING < MOVED < apart(wanted, plain)
            assert [trace.mass.shape for trace in seen.traces] == [(3, 4, 1)] * 2
        if methods is METHODS[0]:
            graphs = backend.graphs
    assert backend.graphs == graphs, "nothing was compiled after the first block"
    assert apart(compiled(ids, **given).logits, plain) < ROUNDING
    with holdfast.steering(made, span, METHODS[0]):
        with holdfast.unsteered(made):
            assert apart(compiled(ids, **given).logits, plain) < ROUNDING
        assert apart(compiled(ids, **given).logits, plain) > MOVED
    assert not made._forward_hooks and not made.model._forward_hooks


KINDS = [
    ("llama", "sdpa", {}),
    ("llama", "eager", {}),
    ("gemma3_text", "sdpa", {"sliding_window": 8}),
    ("gemma2", "eager", {"sliding_window": 8}),
    ("gpt_oss", "eager", {"num_local_experts": 2, "num_experts_per_tok": 1}),
]


def static(backend=None):
    """Arguments of `generate` for a static cache; compiled if there is a backend."""
    given = {
        "max_new_tokens": 6,
        "min_new_tokens": 6,
        "do_sample": False,
        "output_logits": True,
        "return_dict_in_generate": True,
        "cache_implementation": "static",
    }
    if backend is None:
        return {**given, "disable_compile": True}
    config = CompileConfig(fullgraph=True, backend=backend, mode=None)
    config._compile_all_devices = True
    return {**given, "compile_config": config}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind[0]}-{kind[1]}")
def test_generate_with_a_static_cache_compiles_once_and_is_steered(kind):
    name, attention, options = kind
    made, (ids, mask, span) = hugging_face(name, attention, **options), prompts()
    backend = Counting()
    plain = torch.stack(made.generate(ids, attention_mask=mask, **static()).logits)
    for methods in METHODS:
        with holdfast.steering(made, span, methods, trace=True) as wanted_masses:
            wanted = made.generate(ids, attention_mask=mask, **static())
        with holdfast.steering(made, span, methods, trace=True) as masses:
            found = made.generate(ids, attention_mask=mask, **static(backend))
        logits = torch.stack(wanted.logits)
        assert apart(torch.stack(found.logits), logits) < ROUNDING
        assert apart(logits, plain) > MOVED
        for one, other in zip(masses.traces, wanted_masses.traces, strict=True):
            assert one.mass.shape == (3, 4, 6) and apart(one.mass, other.mass) < ROUNDING
        if methods is METHODS[0]:
            graphs = backend.graphs
    assert 0 < graphs == backend.graphs, "one compilation serves all tokens, calls and methods"
    found = made.generate(ids, attention_mask=mask, **static(backend))
    assert apart(torch.stack(found.logits), plain) < ROUNDING


def test_inductor_steers_too():
    made, (ids, mask, span) = hugging_face(num_hidden_layers=1), prompts()
    for methods in METHODS[:3]:
        with holdfast.steering(made, span, methods):
            wanted = made.generate(ids, attention_mask=mask, **static())
            found = made.generate(ids, attention_mask=mask, **static("inductor"))
        assert apart(torch.stack(found.logits), torch.stack(wanted.logits)) < ROUNDING


def test_a_model_compiled_in_place_or_by_its_forward_is_steered():
    for compile_it in (
        lambda made: made.compile(fullgraph=True, backend="eager"),
        lambda made: setattr(
            made, "forward", torch.compile(made.forward, fullgraph=True, backend="eager")
        ),
    ):
        made, (ids, mask, span) = hugging_face(), prompts()
        wanted = eagerly(made, ids, mask, span, METHODS[0])
        compile_it(made)
        assert apart(eagerly(made, ids, mask, span, METHODS[0]), wanted) < ROUNDING
        assert apart(made(ids, attention_mask=mask, use_cache=False).logits, wanted) > MOVED


def test_a_compiled_model_takes_steering_by_the_call():
    """As the decode loop of this package gives it."""
    made, (ids, _, span) = model.__wrapped__().hf_model, prompts()
    backend = Counting()
    compiled = torch.compile(made, fullgraph=True, backend=backend)
    plain = made(ids, use_cache=False).logits
    for methods in METHODS:
        wanted = eagerly(made, ids, None, span, methods)
        with steered(SteeringSpec(span, [tuple(methods)] * 2)):
            assert apart(compiled(ids, use_cache=False).logits, wanted) < ROUNDING
    assert apart(compiled(ids, use_cache=False).logits, plain) < ROUNDING
    assert backend.graphs == 1


def test_another_compiled_model_in_the_block_is_plain():
    made, judge = hugging_face(), model.__wrapped__(seed=1).hf_model
    ids, _, span = prompts()
    plain = judge(ids, use_cache=False).logits
    compiled = torch.compile(judge, fullgraph=True, backend="eager")
    with holdfast.steering(made, span, METHODS[0]):
        assert apart(compiled(ids, use_cache=False).logits, plain) < ROUNDING
        made(ids, use_cache=False)


def test_a_compiled_pass_of_another_thread_is_bound_or_refused():
    made, (ids, mask, span) = hugging_face(), prompts()
    compiled = torch.compile(made, fullgraph=True, backend="eager")
    wanted = eagerly(made, ids, mask, span, METHODS[0])

    def run():
        with torch.inference_mode():
            return compiled(ids, attention_mask=mask, use_cache=False).logits

    with holdfast.steering(made, span, METHODS[0]) as block, ThreadPoolExecutor(1) as pool:
        with pytest.raises(UsageError, match=r"LlamaForCausalLM.*steered\.bind"):
            pool.submit(run).result(120)
        assert apart(pool.submit(block.bind(run)).result(120), wanted) < ROUNDING


def test_what_a_compiled_pass_cannot_do_is_refused_in_a_sentence():
    made, (ids, mask, span) = hugging_face(), prompts()
    compiled = torch.compile(made, backend="eager")
    with (
        holdfast.steering(made, span, METHODS[0]),
        pytest.raises(ModelError, match="output_attentions"),
    ):
        compiled(ids, output_attentions=True, use_cache=False)
    with (
        holdfast.steering(made, span[:, :15] | span[:, 5:], METHODS[0]),
        pytest.raises(UsageError, match=r"15 tokens and the prompt 20"),
    ):
        compiled(ids)
    cache = DynamicCache(config=made.config)
    made(ids, past_key_values=cache)
    with (
        holdfast.steering(made, span, METHODS[0]),
        pytest.raises(UsageError, match="cached before the block"),
    ):
        compiled(ids[:, :1], past_key_values=cache)
    with (
        holdfast.steering(made, span.roll(-5, 1), METHODS[0]),
        pytest.raises(UsageError, match="padding"),
    ):
        compiled(ids, attention_mask=mask, use_cache=False)
    windowed = hugging_face("gemma3_text", sliding_window=8)
    with (
        holdfast.steering(windowed, span, METHODS[0]),
        pytest.raises(ModelError, match=r"windows of 8 tokens.*cache_implementation='static'"),
    ):
        torch.compile(windowed, backend="eager")(ids, use_cache=False)
    for left in (made, windowed):
        assert left.config._attn_implementation == "sdpa" and not left.model._forward_hooks
    assert (
        apart(compiled(ids, use_cache=False).logits, made(ids, use_cache=False).logits) < ROUNDING
    )
