"""The scope of a `holdfast.steering` block: the passes it covers and those it refuses."""

import asyncio
import contextlib
import contextvars
import copy
import gc
import importlib
import multiprocessing
import re
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import accelerate
import pytest
import torch
import transformers
from cache_kinds import RECURRENT
from fast_set import only_fast
from test_attention import hugging_face, prompts
from tiny import DEVICE, GPTJ, SHAPE, chat, model, tokenizer
from transformers import AutoConfig, AutoModel, DynamicCache

import holdfast
from holdfast import Boost, Pasta, SplitSoftmax
from holdfast.attention import BatchSteering, holdfast_attention, steer_pass
from holdfast.errors import PromptError, Unsteerable, UsageError
from holdfast.methods import compile_methods

ROUNDING = 2e-5  # logits of three layers of large random weights
MOVED = 1e-2  # steering moves them by more than this
SPLIT, BOOST = SplitSoftmax(0.3), Boost(5)
GREEDY = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False}


@pytest.fixture(autouse=True)
def _inference():
    with torch.inference_mode():
        yield


def logits(hf_model, ids, **options):
    with torch.inference_mode():
        return hf_model(ids, use_cache=False, **options).logits


def apart(output, expected):
    return float((output - expected).abs().max())


def in_a_thread(function, *arguments):
    """Runs a function in a new thread; returns its result or raises its error."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *arguments).result(60)


def both_ways(kind="llama", attention="sdpa", **options):
    """A model, a prompt with its span, and its logits without and with steering."""
    hf_model, (ids, _, span) = hugging_face(kind, attention, **options), prompts()
    plain = logits(hf_model, ids)
    with holdfast.steering(hf_model, span, [SPLIT]):
        steered = logits(hf_model, ids)
    assert apart(plain, steered) > MOVED
    return hf_model, ids, span, plain, steered


def refuses(error, message, hf_model, span, methods):
    """Asserts that a block is refused on entering."""
    with pytest.raises(error, match=message) as excinfo, holdfast.steering(hf_model, span, methods):
        raise AssertionError("entered")
    assert "\n" not in str(excinfo.value)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_a_bound_function_is_steered_and_traced_in_any_thread(attention):
    hf_model, (ids, mask, span) = hugging_face(attention=attention), prompts()
    options = {"attention_mask": mask, **GREEDY}
    with holdfast.steering(hf_model, span, [SPLIT], trace=True) as block:
        expected = hf_model.generate(ids, **options)
    with holdfast.steering(hf_model, span, [SPLIT]) as once:
        hf_model(ids, attention_mask=mask)
    assert "2 rows, 1 pass>" in repr(once)
    replies = []
    with holdfast.steering(hf_model, span, [SPLIT], trace=True) as bound_block:
        generate = bound_block.bind(lambda: replies.append(hf_model.generate(ids, **options)))
        thread = threading.Thread(target=generate)
        thread.start()
        thread.join()
    assert torch.equal(replies[0], expected) and not torch.equal(
        expected, hf_model.generate(ids, **options)
    )
    assert [trace.mass.shape for trace in bound_block.traces] == [(3, 4, 6)] * 2
    assert "2 rows, 6 passes" in repr(bound_block)
    for record, bound_record in zip(block.traces, bound_block.traces, strict=True):
        assert torch.equal(record.mass, bound_record.mass)
    with pytest.raises(UsageError, match=r"LlamaForCausalLM.*was left"):
        generate()


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_a_pass_in_an_unbound_thread_is_refused(attention):
    hf_model, ids, span, plain, steered = both_ways(attention=attention)

    @torch.inference_mode()
    def run_inside(hf_model, ids):
        return hf_model.model(ids)

    with holdfast.steering(hf_model, span, [SPLIT]):
        for call in (logits, hf_model.generate, run_inside):
            arguments = (ids,) if call == hf_model.generate else (hf_model, ids)
            with pytest.raises(UsageError, match=r"split-softmax.*LlamaForCausalLM.*steered\.bind"):
                in_a_thread(call, *arguments)
        assert torch.equal(logits(hf_model, ids), steered)
    assert torch.equal(in_a_thread(logits, hf_model, ids), plain)


def test_threads_of_a_pool_share_a_block_and_mixed_traces_are_refused():
    hf_model, ids, span, _, steered = both_ways()
    turn = threading.Barrier(3)

    def by_turns():
        results = []
        for _ in range(4):
            turn.wait(60)
            results.append(logits(hf_model, ids))
        return results

    with (
        holdfast.steering(hf_model, span, [SPLIT], trace=True) as block,
        ThreadPoolExecutor(3) as pool,
    ):
        jobs = [pool.submit(block.bind(by_turns)) for _ in range(3)]
        results = [result for job in jobs for result in job.result(60)]
    assert all(torch.equal(result, steered) for result in results)
    with pytest.raises(UsageError, match=r"3 threads took turns"):
        _ = block.traces


def test_a_second_block_on_one_model_is_refused():
    hf_model, ids, span, plain, steered = both_ways()

    message = r"split-softmax:exponent=0\.3\) is already open.*boost:factor=5.*joined by \+"
    second = UsageError, message, hf_model, span, [BOOST]
    with holdfast.steering(hf_model, span, [SPLIT]):
        refuses(*second)
        in_a_thread(refuses, *second)
        assert torch.equal(logits(hf_model, ids), steered)
    assert (
        torch.equal(logits(hf_model, ids), plain) and hf_model.config._attn_implementation == "sdpa"
    )
    for methods in ([SPLIT, BOOST], [[SPLIT], [BOOST]]):  # as the message suggests
        with holdfast.steering(hf_model, span, methods):
            assert apart(logits(hf_model, ids)[1], steered[1]) > MOVED


def test_unsteered_keeps_a_thread_plain_while_another_steers():
    hf_model, ids, span, plain, steered = both_ways()

    def run_plain():
        with holdfast.unsteered(hf_model):
            return logits(hf_model, ids)

    with holdfast.steering(hf_model, span, [SPLIT]) as handle:
        assert torch.equal(in_a_thread(run_plain), plain)
        assert torch.equal(run_plain(), plain)
        assert torch.equal(in_a_thread(handle.bind(logits), hf_model, ids), steered)
        assert torch.equal(in_a_thread(handle.bind(run_plain)), plain)
    with holdfast.unsteered(hf_model), holdfast.steering(hf_model, span, [SPLIT]):
        assert torch.equal(logits(hf_model, ids), steered)


@pytest.mark.parametrize(("attention", "static"), [("eager", 1), ("eager", 0), ("sdpa", 0)])
@pytest.mark.parametrize("keeps_plain", [False, True])
def test_a_generation_that_began_before_the_block_is_refused(attention, static, keeps_plain):
    hf_model, (ids, _, span) = hugging_face(attention=attention), prompts()
    options = {**GREEDY, "output_logits": True, "return_dict_in_generate": True}
    options |= {"disable_compile": True} | ({"cache_implementation": "static"} if static else {})
    plain = torch.stack(hf_model.generate(ids, **options).logits)
    started, go_on, passes = threading.Event(), threading.Event(), []

    def wait(*_):
        passes.append(1)
        if len(passes) == 2:
            started.set()
            assert go_on.wait(60)

    def generate():
        with holdfast.unsteered(hf_model) if keeps_plain else contextlib.nullcontext():
            return torch.stack(hf_model.generate(ids, **options).logits)

    hook = hf_model.model.layers[1].register_forward_pre_hook(wait)
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(generate)
        assert started.wait(60)
        hook.remove()
        with holdfast.steering(hf_model, span, [SPLIT]):
            logits(hf_model, ids)
            go_on.set()
            if keeps_plain:
                # masks that `generate` prepares for a static cache round differently
                assert apart(job.result(60), plain) <= (ROUNDING if static else 0)
            else:
                with pytest.raises(UsageError, match=r"steered\.bind"):
                    job.result(60)
    assert hf_model.config._attn_implementation == attention


def test_leaving_while_another_thread_generates_in_the_block_warns():
    hf_model, ids, span, _, steered = both_ways(attention="eager")
    started, go_on = threading.Event(), threading.Event()

    def wait(*_):
        started.set()
        assert go_on.wait(60)

    with ThreadPoolExecutor(1) as pool:
        for run, passes in ((logits, 1), (hf_model.generate, 2)):
            hook = hf_model.model.layers[1].register_forward_pre_hook(wait)
            with (
                pytest.warns(UserWarning, match="another thread"),
                holdfast.steering(hf_model, span, [SPLIT]) as handle,
            ):
                arguments = (hf_model, ids) if passes == 1 else (ids,)
                job = pool.submit(handle.bind(run), *arguments)
                assert started.wait(60)
            hook.remove()
            go_on.set()
            if passes == 1:
                assert torch.equal(job.result(60), steered)
            else:
                with pytest.raises(UsageError, match=r"split-softmax.*no steering"):
                    job.result(60)
            started.clear(), go_on.clear()
            assert hf_model.config._attn_implementation == "eager"
            assert "forward" not in vars(hf_model)


def test_another_model_inside_the_block_is_never_steered():
    hf_model, ids, span, _, steered = both_ways()
    judge = model(seed=1)
    messages, options = chat("be kind", "the river runs"), ["slowly", "past"]
    plain = logits(judge.hf_model, ids)
    score, reply = judge.score(messages, options), judge.generate(messages, seed=3)
    outputs = []
    with holdfast.steering(hf_model, span, [SPLIT]):
        assert torch.equal(logits(judge.hf_model, ids), plain)
        assert judge.score(messages, options) == score and judge.generate(messages, seed=3) == reply
        hook = hf_model.model.layers[1].register_forward_hook(
            lambda *_: outputs.append(logits(judge.hf_model, ids))
        )
        # the judge ran in the middle of this pass
        assert torch.equal(logits(hf_model, ids), steered)
        hook.remove()
    assert torch.equal(outputs[0], plain)


def test_blocks_on_two_models_each_steer_their_own():
    hf_model, ids, span, _, steered = both_ways()
    inner, inner_span = hugging_face(seed=1, attention="eager"), span.roll(3, 1)
    with holdfast.steering(inner, inner_span, [BOOST]):
        expected = logits(inner, ids)
    with (
        holdfast.steering(hf_model, span, [SPLIT]) as handle,
        holdfast.steering(inner, inner_span, [BOOST]),
    ):
        assert torch.equal(logits(hf_model, ids), steered)
        assert torch.equal(logits(inner, ids), expected)
        assert torch.equal(in_a_thread(handle.bind(logits), hf_model, ids), steered)


@pytest.mark.slow
def test_generate_and_score_of_a_holdfast_model_are_refused_in_a_block_on_it():
    local, messages = model(), chat("always talk about cheese", "the old town")
    chats = holdfast.encode_chats([messages], local.tokenizer)
    alone = local.generate(messages, [SPLIT], seed=1)
    with holdfast.steering(local.hf_model, chats.span_mask, [SPLIT]):
        for call, *args in ((local.generate,), (local.score, ["a"]), (local.generate, [BOOST])):
            with pytest.raises(UsageError, match=r"methods=\[\.\.\.\].*hf_model\.generate"):
                call(messages, *args)
        local.hf_model.generate(**chats.inputs, **GREEDY)
        in_thread = in_a_thread(lambda: local.generate(messages, [SPLIT], seed=1))
        assert in_thread == alone
    assert local.generate(messages, [SPLIT], seed=1) == alone


def test_copying_pickling_and_spawning_in_the_block_are_refused():
    for kind, attention, options in (("llama", "eager", {}), ("gptj", "eager", GPTJ)):
        hf_model, ids, span, plain, _ = both_ways(kind, attention, **options)
        with holdfast.steering(hf_model, span, [SPLIT]):
            logits(hf_model, ids)
            process = multiprocessing.get_context("spawn").Process(target=print, args=(hf_model,))
            copies = (copy.deepcopy, hf_model), (copy.deepcopy, hf_model.base_model)
            for call, *arguments in ((process.start,), *copies):
                with pytest.raises(UsageError, match="copied or pickled"):
                    call(*arguments)
        double = copy.deepcopy(hf_model)
        assert torch.equal(logits(double, ids), plain)
        assert double.config._attn_implementation == attention


def steps(hf_model, ids, span, count=4):
    """Generates token by token in its own block."""
    with holdfast.steering(hf_model, span, [SPLIT]) as handle:
        cache, forward = DynamicCache(config=hf_model.config), handle.bind(hf_model)
        for _ in range(count):
            with torch.inference_mode():
                step_logits = forward(ids, past_key_values=cache, use_cache=True).logits[:, -1]
            ids = step_logits.argmax(-1, keepdim=True)
            yield step_logits


def test_a_generators_block_is_open_between_its_steps():
    hf_model, ids, span, plain, steered = both_ways()
    expected = list(steps(hf_model, ids, span))
    outputs = []
    for step in steps(hf_model, ids, span):
        outputs.append(step)
        assert torch.equal(logits(hf_model, ids), steered)
        with holdfast.unsteered(hf_model):
            assert torch.equal(logits(hf_model, ids), plain)
    assert all(torch.equal(*pair) for pair in zip(outputs, expected, strict=True))
    assert torch.equal(logits(hf_model, ids), plain)


def test_a_generator_whose_steps_have_separate_contexts_runs_bound_functions():
    hf_model, ids, span, plain, _ = both_ways()
    expected, outputs, running = list(steps(hf_model, ids, span)), [], steps(hf_model, ids, span)
    for _ in expected:
        outputs.append(contextvars.copy_context().run(next, running))
        with pytest.raises(UsageError, match=r"steered\.bind"):
            logits(hf_model, ids)
    contextvars.copy_context().run(list, running)
    threads = steps(hf_model, ids, span)
    outputs += [in_a_thread(next, threads) for _ in expected]
    assert all(torch.equal(*pair) for pair in zip(outputs, expected * 2, strict=True))
    threads.close()
    assert (
        torch.equal(logits(hf_model, ids), plain) and hf_model.config._attn_implementation == "sdpa"
    )


def test_an_abandoned_generator_leaves_its_block():
    hf_model, ids, span, plain, _ = both_ways()
    running = steps(hf_model, ids, span)
    next(running)
    del running
    gc.collect()
    assert torch.equal(logits(hf_model, ids), plain) and "forward" not in vars(hf_model)


def test_a_decorator_covers_what_runs_in_it():
    hf_model, ids, span, plain, steered = both_ways()
    decorated = holdfast.steering(hf_model, span, [SPLIT])(logits)
    assert torch.equal(decorated(hf_model, ids), steered)
    assert torch.equal(logits(hf_model, ids), plain)


def test_tasks_and_threads_that_copy_the_context_of_a_block_are_steered_and_others_refused():
    hf_model, ids, span, plain, steered = both_ways()

    async def forward():
        return logits(hf_model, ids)

    async def block(ready, leave):
        with holdfast.steering(hf_model, span, [SPLIT]):
            ready.set()
            await leave.wait()
            inside = [await asyncio.create_task(forward())]
            return [logits(hf_model, ids), *inside, await asyncio.to_thread(logits, hf_model, ids)]

    async def serve():
        ready, leave = asyncio.Event(), asyncio.Event()
        job = asyncio.create_task(block(ready, leave))
        await ready.wait()
        with pytest.raises(UsageError, match=r"thread or task.*steered\.bind"):
            await forward()
        with pytest.raises(UsageError, match="already open"):
            await block(ready, leave)
        with holdfast.unsteered(hf_model):
            assert torch.equal(await asyncio.create_task(forward()), plain)
        leave.set()
        return await job

    assert all(torch.equal(output, steered) for output in asyncio.run(serve()))
    assert torch.equal(logits(hf_model, ids), plain)


def test_an_interrupted_pass_leaves_nothing_behind():
    hf_model, ids, span, plain, steered = both_ways(attention="eager")

    def interrupt(*_):
        raise KeyboardInterrupt

    hook = hf_model.model.layers[1].register_forward_pre_hook(interrupt)
    with pytest.raises(KeyboardInterrupt), holdfast.steering(hf_model, span, [SPLIT]):
        with pytest.raises(KeyboardInterrupt):
            logits(hf_model, ids)
        with holdfast.unsteered(hf_model):
            hook.remove()
            assert torch.equal(logits(hf_model, ids), plain)  # as in a notebook's next cell
        assert torch.equal(logits(hf_model, ids), steered)
        hook = hf_model.model.layers[1].register_forward_pre_hook(interrupt)
        logits(hf_model, ids)
    with holdfast.steering(hf_model, span, [SPLIT]), pytest.raises(KeyboardInterrupt):
        logits(hf_model, ids)
    hook.remove()
    assert torch.equal(logits(hf_model, ids), plain)
    assert "forward" not in vars(hf_model) and hf_model.config._attn_implementation == "eager"


def test_a_block_without_any_pass_warns():
    hf_model, (ids, _, span) = hugging_face(), prompts()
    with (
        pytest.warns(UserWarning, match="No pass of LlamaForCausalLM"),
        holdfast.steering(hf_model, span, [SPLIT]),
    ):
        pass
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with holdfast.steering(hf_model, span, [SPLIT]):
            logits(hf_model, ids)
        with pytest.raises(RuntimeError, match="boom"), holdfast.steering(hf_model, span, [SPLIT]):
            raise RuntimeError("boom")


def test_a_prompt_longer_than_the_mask_is_refused():
    hf_model, (ids, _, span) = hugging_face(), prompts()
    longer = torch.cat([ids, ids[:, :5]], 1)
    with holdfast.steering(hf_model, span, [SPLIT]):
        for forward in (
            lambda: hf_model(longer),
            lambda: hf_model.generate(longer, **GREEDY),
            lambda: hf_model.generate(longer, use_cache=False, **GREEDY),
        ):
            with pytest.raises(UsageError, match=r"20 tokens.*25"):
                forward()
        cached = hf_model.generate(ids, **GREEDY)
        assert torch.equal(hf_model.generate(ids, use_cache=False, **GREEDY), cached)
    assert hf_model.config._attn_implementation == "sdpa"


def test_without_a_cache_a_given_reply_may_follow_the_prompt():
    hf_model, (ids, _, span) = hugging_face(), prompts()
    with holdfast.steering(hf_model, span, [Pasta(0.05)]):
        done = hf_model.generate(ids, output_logits=True, return_dict_in_generate=True, **GREEDY)
        whole = logits(hf_model, done.sequences)
    assert apart(torch.stack(done.logits, 1), whole[:, 19:25]) < ROUNDING


# Gemma 3 has sliding windows; GPT-J does not use the attention interface.
KINDS = [
    ("llama", "sdpa", {}),
    ("qwen3", "eager", {}),
    ("gemma3_text", "sdpa", {"sliding_window": 8}),
    ("gptj", "eager", GPTJ),
]


@pytest.mark.parametrize(("kind", "attention", "options"), KINDS, ids=[kind[0] for kind in KINDS])
def test_a_pass_that_reaches_no_steered_attention_is_refused(kind, attention, options):
    hf_model, ids, span, plain, steered = both_ways(kind, attention, **options)

    def by_name():
        hf_model.set_attn_implementation("sdpa")

    def by_config():
        hf_model.config._attn_implementation = "eager"

    def replace(*layers):
        for layer in layers:
            module = hf_model.base_model.get_submodule(names[layer])
            stand_in = torch.nn.Module()
            stand_in.forward = type(module).forward.__get__(unpatched[layer])
            hf_model.base_model.set_submodule(names[layer], stand_in)

    is_attention = re.compile(r"(layers|h)\.\d+\.(self_attn|attn)")
    names = [
        name for name, _ in hf_model.base_model.named_modules() if is_attention.fullmatch(name)
    ]
    modules = [hf_model.base_model.get_submodule(name) for name in names]
    unpatched = copy.deepcopy(hf_model).eval().base_model
    unpatched = [unpatched.get_submodule(name) for name in names]
    cases = {"layer 1, so": lambda: replace(1), "layers 0, 2, so": lambda: replace(0, 2)}
    if kind != "gptj":  # which does not use the attention interface
        cases |= {"implementation 'sdpa' inside": by_name, "implementation 'eager' ins": by_config}
    for message, change in cases.items():
        for run in (logits, lambda model, ids: model.generate(ids, **GREEDY)):
            with (
                holdfast.steering(hf_model, span, [SPLIT], trace=True) as block,
                pytest.raises(Unsteerable, match=rf"{type(hf_model).__name__}.*{message}"),
            ):
                assert torch.equal(logits(hf_model, ids), steered)
                change()
                run(hf_model, ids)
            for name, module in zip(names, modules, strict=True):
                hf_model.base_model.set_submodule(name, module)
            assert len(block.traces[0].mass[0, 0]) == 1
            assert hf_model.config._attn_implementation == attention
            assert torch.equal(logits(hf_model, ids), plain)


# Llama 4's base model is the model itself, so the hook that checks caches is on it.
ITSELF = {"intermediate_size_mlp": 96, "no_rope_layers": [1, 0, 1], "num_local_experts": 2}
CACHING = [*KINDS, ("llama4_text", "sdpa", ITSELF)]


@pytest.mark.parametrize("kind", only_fast([k[0] for k in CACHING], "llama", "gptj"))
def test_a_cache_that_was_filled_under_different_steering_is_refused(kind):
    _, attention, options = next(k for k in CACHING if k[0] == kind)
    hf_model, ids, span, _, _ = both_ways(kind, attention, **options)
    new = ids[:, :1]

    def filled_cache():
        cache = DynamicCache(config=hf_model.config)
        hf_model(ids, past_key_values=cache)
        return cache

    def step(cache):
        return hf_model(new, past_key_values=cache).logits

    longer = torch.nn.functional.pad(span, (0, 1))
    with holdfast.steering(hf_model, span, [SPLIT]) as handle:
        steered_cache, spare = filled_cache(), filled_cache()
        expected = step(filled_cache())
        with holdfast.unsteered(hf_model):
            plain_cache = filled_cache()
        message = r"computed under no steering.*under split-softmax:exponent=0\.3; start with a new"
        with pytest.raises(UsageError, match=message):
            step(plain_cache)
    copied_cache = copy.deepcopy(steered_cache)
    for methods, mask, current in (
        ([BOOST], longer, "boost:factor=5"),
        ([SPLIT, BOOST], longer, r"split-softmax:exponent=0\.3\+boost:factor=5"),
        ([], longer, "no steering"),
        ([SPLIT], longer.roll(1, 1), r"split-softmax:exponent=0\.3"),
    ):
        where = " on another span" if methods == [SPLIT] else ""
        with holdfast.steering(hf_model, mask, methods):
            message = (
                rf"under split-softmax:exponent=0\.3{where}, but this pass.*under {current}; start"
            )
            for cache in (steered_cache, copied_cache):
                with pytest.raises(UsageError, match=message):
                    step(cache)
    message = (
        r"split-softmax:exponent=0\.3, but this pass of \w+ runs under no steering; start with"
    )
    for run in (
        lambda cache: step(cache),
        lambda cache: hf_model.base_model(new, past_key_values=cache),
        lambda cache: hf_model.generate(torch.cat([ids, new], 1), past_key_values=cache, **GREEDY),
    ):
        for cache in (steered_cache, copied_cache):
            with pytest.raises(UsageError, match=message):
                run(cache)
    with holdfast.steering(hf_model, longer, [SPLIT]):  # the same steering continues
        assert apart(step(spare), expected) < ROUNDING
    assert hf_model.base_model._forward_pre_hooks
    del steered_cache, copied_cache, spare, cache, handle
    gc.collect()
    assert not hf_model.base_model._forward_pre_hooks
    with holdfast.steering(hf_model, longer, []):  # reading the mass steers nothing
        assert torch.equal(step(plain_cache), step(plain_cache)) is False
    step(plain_cache)


def test_a_cache_that_was_emptied_is_fresh():
    hf_model, (ids, mask, span) = hugging_face(), prompts()
    static = {"cache_implementation": "static", "disable_compile": True, **GREEDY}
    plain = hf_model.generate(ids, attention_mask=mask, **static)
    replies = []
    for methods in ([SPLIT], [BOOST]):
        with holdfast.steering(hf_model, span, methods):
            replies.append(hf_model.generate(ids, attention_mask=mask, **static))
            assert torch.equal(hf_model.generate(ids, attention_mask=mask, **GREEDY), replies[-1])
    assert torch.equal(hf_model.generate(ids, attention_mask=mask, **static), plain)
    assert not torch.equal(replies[0], replies[1])


def test_a_mask_that_does_not_cover_the_cached_keys_is_refused():
    hf_model, (ids, _, span) = hugging_face(), prompts()
    cache = DynamicCache(config=hf_model.config)
    with holdfast.steering(hf_model, span, []):
        hf_model(ids[:, :20], past_key_values=cache)
    with (
        holdfast.steering(hf_model, span[:, :10], []),
        pytest.raises(UsageError, match=r"10 tokens.* 21, 20 "),
    ):
        hf_model(ids[:, :1], past_key_values=cache)


def test_a_span_on_padding_is_refused():
    hf_model, (ids, mask, span) = hugging_face(), prompts()
    for options in ({}, {"cache_implementation": "static", "disable_compile": True}):
        with holdfast.steering(hf_model, span.roll(-5, 1), [SPLIT]):
            with pytest.raises(UsageError) as excinfo:
                hf_model.generate(ids, attention_mask=mask, **GREEDY, **options)
            assert excinfo.value.value == (0, 1), "the row and its token"
            with pytest.raises(UsageError) as excinfo:
                hf_model(ids, attention_mask=mask)
            assert excinfo.value.value == (0, 1), "the row and its token"


def test_adapters_that_put_tokens_before_the_prompt_are_refused_and_lora_is_not():
    peft = importlib.import_module("peft")
    ids, _, span = prompts()
    for config in (peft.PromptTuningConfig, peft.PrefixTuningConfig):
        base = hugging_face()
        adapted = peft.get_peft_model(base, config(task_type="CAUSAL_LM", num_virtual_tokens=5))
        message = "_TUNING puts its own tokens before the prompt"
        refuses(Unsteerable, message, adapted, span, [SPLIT])
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


def by_the_formula(monkeypatch, file, span, exponent=0.3):
    """Steers a modeling file's self-attention by Li et al.'s formula on its attention matrix."""
    module = importlib.import_module(file)
    eager = module.eager_attention_forward

    def literal(layer, query, key, value, *args, **kwargs):
        output, weights = eager(layer, query, key, value, *args, **kwargs)
        if getattr(layer, "is_cross_attention", "Cross" in type(layer).__name__):
            return output, weights
        weights, in_span = weights.double(), span[:, None, None]
        pi, rest_mass = (
            (weights * in_span).sum(-1, keepdim=True),
            (weights * ~in_span).sum(-1, keepdim=True),
        )
        steered = torch.where(
            in_span, weights * pi ** (exponent - 1), weights * (1 - pi**exponent) / rest_mass
        )
        weights = torch.where((pi > 0) & (rest_mass > 0), steered, weights)
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
        refuses(UsageError, message, hf_model, span, [method])
    assert hf_model.config._attn_implementation == "sdpa"


def test_a_model_whose_cache_does_not_count_its_tokens_is_refused_on_entering():
    layers = {"layer_types": ["linear_attention", "full_attention", "linear_attention"]}
    hf_model, (_, _, span) = hugging_face("minimax", **layers), prompts()
    refuses(Unsteerable, r"MiniMaxForCausalLM.*counts 0 tokens after 2", hf_model, span, [SPLIT])
    with pytest.raises(Unsteerable, match="MiniMaxForCausalLM"):
        model.__wrapped__("minimax", **layers).check([SPLIT])


@pytest.mark.parametrize("exponent", [0.0, 0.3])
@pytest.mark.parametrize("start", [0, 3])
def test_gradients_are_those_of_the_formula(exponent, start):
    with torch.inference_mode(False):
        torch.manual_seed(0)
        draws = [torch.randn(2, 4, 9, 16, dtype=torch.double) for _ in range(3)]
        span = torch.zeros(2, 9, dtype=torch.bool)
        mask = torch.ones(9, 9, dtype=torch.bool).tril().expand(2, 1, 9, 9).clone()
        span[:, start : start + 3] = True
        mask[1, :, :, :2] = False  # left-padded: the first queries of row 1 see nothing

        def formula(query, key, value):
            scores = (query @ key.mT * 0.25).masked_fill(~mask, -1e30)
            weights = scores.softmax(-1) * mask
            in_span = span[:, None, None]
            pi = (weights * in_span).sum(-1, keepdim=True)
            rest_mass = (weights * ~in_span).sum(-1, keepdim=True)
            in_both = (pi > 0) & (rest_mass > 0)
            pi, rest_mass = torch.where(in_both, pi, 0.5), torch.where(in_both, rest_mass, 0.5)
            steered = torch.where(
                in_span, weights / pi * pi**exponent, weights / rest_mass * (1 - pi**exponent)
            )
            return torch.where(in_both, steered, weights) @ value

        class Layer(torch.nn.Module):
            layer_idx, is_causal, num_key_value_groups = 0, True, 1

        gradients = []
        for steer in (False, True):
            inputs = [states.clone().requires_grad_() for states in draws]
            if steer:
                with steer_pass(
                    BatchSteering(span, [compile_methods([SplitSoftmax(exponent)])] * 2)
                ):
                    output = holdfast_attention(Layer(), *inputs, mask, scaling=0.25)[0].transpose(
                        1, 2
                    )
            else:
                output = formula(*inputs)
            (output * torch.arange(16.0)).sum().backward()
            gradients.append([states.grad for states in inputs])
    for gradient, expected in zip(gradients[1], gradients[0], strict=True):
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


@pytest.mark.parametrize(
    ("kind", "options"), [("llama", {}), ("gemma2", {"sliding_window": 64}), ("gptj", GPTJ)]
)
@pytest.mark.parametrize(
    "method", [SPLIT, None, Pasta(0.05, {(0, 1), (2, 3)})], ids=["split", "none", "heads"]
)
def test_the_trace_of_a_right_padded_row_is_of_its_last_token(kind, options, method):
    hf_model, (ids, _, span) = hugging_face(kind, "eager", **options), prompts()
    methods = [] if method is None else [method]
    mask = torch.ones_like(ids)
    mask[0, 14:] = 0
    with holdfast.steering(hf_model, span, methods, trace=True) as padded:
        logits(hf_model, ids, attention_mask=mask)
    for row, length in ((0, 14), (1, 20)):
        with holdfast.steering(
            hf_model, span[row : row + 1, :length], methods, trace=True
        ) as alone:
            logits(hf_model, ids[row : row + 1, :length])
        assert apart(padded.traces[row].mass, alone.traces[0].mass) < ROUNDING


def test_a_layer_that_attends_twice_with_the_same_scores_has_one_mass():
    hf_model, (ids, _, span) = hugging_face("diffllama"), prompts()
    with holdfast.steering(hf_model, span, [SPLIT], trace=True) as block:
        hf_model.generate(ids, **GREEDY)
    assert [trace.mass.shape for trace in block.traces] == [(3, 4, 6)] * 2


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


SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
T5 = {"vocab_size": 99, "d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
WRONG = {
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


@pytest.mark.parametrize("kind", WRONG)
def test_a_model_that_cannot_be_steered_is_refused_in_a_sentence(kind):
    make, message = WRONG[kind]
    refuses(Unsteerable, message, make(), prompts()[2], [SPLIT])


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
        refuses(UsageError, message, local, span, spec)


def test_a_batch_of_chats_is_padded_on_the_left_with_its_span():
    local = model()
    messages = [chat("always talk about cheese", "hello " * count) for count in (1, 9)]
    chats = holdfast.encode_chats(messages, local.tokenizer)
    assert chats.attention_mask[0, 0] == 0 and chats.attention_mask[:, -1].all()
    assert chats.span_mask.dtype == torch.bool
    with holdfast.steering(local, chats.span_mask, [SPLIT]):
        batched = local.hf_model.generate(**chats.inputs, **GREEDY)[:, chats.input_ids.shape[1] :]
    for row, talk in enumerate(messages):
        alone = local.generate(talk, [SPLIT], holdfast.Sampling(temperature=0, max_new_tokens=6))
        assert batched[row, : len(alone.token_ids)].tolist() == list(alone.token_ids)
    words = holdfast.encode_chats(messages, local.tokenizer, emphasis=[("cheese",), ()])
    marked = [
        tokenizer().decode(ids[span])
        for ids, span in zip(words.input_ids, words.span_mask, strict=True)
    ]
    assert "cheese" in marked[0] and "always" not in marked[0] and "always" in marked[1]
    with pytest.raises(UsageError, match="0 chats"):
        holdfast.encode_chats([], local.tokenizer)
    with pytest.raises(UsageError) as excinfo:
        holdfast.encode_chats(messages, local.tokenizer, emphasis=[()])
    assert (excinfo.value.option, excinfo.value.value, excinfo.value.allowed) == ("emphasis", 1, 2)
    with pytest.raises((UsageError, PromptError), match="not a list of messages"):
        holdfast.encode_chats(["hello"], local.tokenizer)
