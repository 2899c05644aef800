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
from fast_set import only_fast
from test_attention import hugging_face, prompts
from test_modern import STATES
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


def logits(made, ids, **options):
    with torch.inference_mode():
        return made(ids, use_cache=False, **options).logits


def apart(one, other):
    return float((one - other).abs().max())


def in_a_thread(function, *arguments):
    """Runs a function in a new thread; returns its result or raises its error."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *arguments).result(60)


def both_ways(kind="llama", attention="sdpa", **options):
    """A model, a prompt with its span, and its logits without and with steering."""
    made, (ids, _, span) = hugging_face(kind, attention, **options), prompts()
    plain = logits(made, ids)
    with holdfast.steering(made, span, [SPLIT]):
        moved = logits(made, ids)
    assert apart(plain, moved) > MOVED
    return made, ids, span, plain, moved


def refuses(error, says, made, span, methods):
    """Asserts that a block is refused on entering."""
    with pytest.raises(error, match=says) as refusal, holdfast.steering(made, span, methods):
        raise AssertionError("entered")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_a_bound_function_is_steered_and_traced_in_any_thread(attention):
    made, (ids, mask, span) = hugging_face(attention=attention), prompts()
    given = {"attention_mask": mask, **GREEDY}
    with holdfast.steering(made, span, [SPLIT], trace=True) as here:
        wanted = made.generate(ids, **given)
    with holdfast.steering(made, span, [SPLIT]) as once:
        made(ids, attention_mask=mask)
    assert "2 rows, 1 pass>" in repr(once)
    replies = []
    with holdfast.steering(made, span, [SPLIT], trace=True) as there:
        generate = there.bind(lambda: replies.append(made.generate(ids, **given)))
        thread = threading.Thread(target=generate)
        thread.start()
        thread.join()
    assert torch.equal(replies[0], wanted) and not torch.equal(wanted, made.generate(ids, **given))
    assert [trace.mass.shape for trace in there.traces] == [(3, 4, 6)] * 2
    assert "2 rows, 6 passes" in repr(there)
    for one, other in zip(here.traces, there.traces, strict=True):
        assert torch.equal(one.mass, other.mass)
    with pytest.raises(UsageError, match=r"LlamaForCausalLM.*was left"):
        generate()


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_a_pass_in_an_unbound_thread_is_refused(attention):
    made, ids, span, plain, moved = both_ways(attention=attention)

    @torch.inference_mode()
    def run_inside(made, ids):
        return made.model(ids)

    with holdfast.steering(made, span, [SPLIT]):
        for refused in (logits, made.generate, run_inside):
            arguments = (ids,) if refused == made.generate else (made, ids)
            with pytest.raises(UsageError, match=r"split-softmax.*LlamaForCausalLM.*steered\.bind"):
                in_a_thread(refused, *arguments)
        assert torch.equal(logits(made, ids), moved)
    assert torch.equal(in_a_thread(logits, made, ids), plain)


def test_threads_of_a_pool_share_a_block_and_mixed_traces_are_refused():
    made, ids, span, _, moved = both_ways()
    turn = threading.Barrier(3)

    def by_turns():
        results = []
        for _ in range(4):
            turn.wait(60)
            results.append(logits(made, ids))
        return results

    with holdfast.steering(made, span, [SPLIT], trace=True) as seen, ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(seen.bind(by_turns)) for _ in range(3)]
        results = [result for job in jobs for result in job.result(60)]
    assert all(torch.equal(result, moved) for result in results)
    with pytest.raises(UsageError, match=r"3 threads took turns"):
        _ = seen.traces


def test_a_second_block_on_one_model_is_refused():
    made, ids, span, plain, moved = both_ways()

    says = r"split-softmax:exponent=0\.3\) is already open.*boost:factor=5.*joined by \+"
    second = UsageError, says, made, span, [BOOST]
    with holdfast.steering(made, span, [SPLIT]):
        refuses(*second)
        in_a_thread(refuses, *second)
        assert torch.equal(logits(made, ids), moved)
    assert torch.equal(logits(made, ids), plain) and made.config._attn_implementation == "sdpa"
    for methods in ([SPLIT, BOOST], [[SPLIT], [BOOST]]):  # as the message suggests
        with holdfast.steering(made, span, methods):
            assert apart(logits(made, ids)[1], moved[1]) > MOVED


def test_unsteered_keeps_a_thread_plain_while_another_steers():
    made, ids, span, plain, moved = both_ways()

    def plainly():
        with holdfast.unsteered(made):
            return logits(made, ids)

    with holdfast.steering(made, span, [SPLIT]) as handle:
        assert torch.equal(in_a_thread(plainly), plain)
        assert torch.equal(plainly(), plain)
        assert torch.equal(in_a_thread(handle.bind(logits), made, ids), moved)
        assert torch.equal(in_a_thread(handle.bind(plainly)), plain)
    with holdfast.unsteered(made), holdfast.steering(made, span, [SPLIT]):
        assert torch.equal(logits(made, ids), moved)


@pytest.mark.parametrize(("attention", "static"), [("eager", 1), ("eager", 0), ("sdpa", 0)])
@pytest.mark.parametrize("keeps_plain", [False, True])
def test_a_generation_that_began_before_the_block_is_refused(attention, static, keeps_plain):
    made, (ids, _, span) = hugging_face(attention=attention), prompts()
    given = {**GREEDY, "output_logits": True, "return_dict_in_generate": True}
    given |= {"disable_compile": True} | ({"cache_implementation": "static"} if static else {})
    plain = torch.stack(made.generate(ids, **given).logits)
    began, go_on, passes = threading.Event(), threading.Event(), []

    def wait(*_):
        passes.append(1)
        if len(passes) == 2:
            began.set()
            assert go_on.wait(60)

    def generate():
        with holdfast.unsteered(made) if keeps_plain else contextlib.nullcontext():
            return torch.stack(made.generate(ids, **given).logits)

    hook = made.model.layers[1].register_forward_pre_hook(wait)
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(generate)
        assert began.wait(60)
        hook.remove()
        with holdfast.steering(made, span, [SPLIT]):
            logits(made, ids)
            go_on.set()
            if keeps_plain:
                # masks that `generate` prepares for a static cache round differently
                assert apart(job.result(60), plain) <= (ROUNDING if static else 0)
            else:
                with pytest.raises(UsageError, match=r"steered\.bind"):
                    job.result(60)
    assert made.config._attn_implementation == attention


def test_leaving_while_another_thread_generates_in_the_block_warns():
    made, ids, span, _, moved = both_ways(attention="eager")
    began, go_on = threading.Event(), threading.Event()

    def wait(*_):
        began.set()
        assert go_on.wait(60)

    with ThreadPoolExecutor(1) as pool:
        for run, passes in ((logits, 1), (made.generate, 2)):
            hook = made.model.layers[1].register_forward_pre_hook(wait)
            with (
                pytest.warns(UserWarning, match="another thread"),
                holdfast.steering(made, span, [SPLIT]) as handle,
            ):
                arguments = (made, ids) if passes == 1 else (ids,)
                job = pool.submit(handle.bind(run), *arguments)
                assert began.wait(60)
            hook.remove()
            go_on.set()
            if passes == 1:
                assert torch.equal(job.result(60), moved)
            else:
                with pytest.raises(UsageError, match=r"split-softmax.*no steering"):
                    job.result(60)
            began.clear(), go_on.clear()
            assert made.config._attn_implementation == "eager" and "forward" not in vars(made)


def test_another_model_inside_the_block_is_never_steered():
    made, ids, span, _, moved = both_ways()
    judge = model(seed=1)
    messages, options = chat("be kind", "the river runs"), ["slowly", "past"]
    plain = logits(judge.hf_model, ids)
    score, reply = judge.score(messages, options), judge.generate(messages, seed=3)
    seen = []
    with holdfast.steering(made, span, [SPLIT]):
        assert torch.equal(logits(judge.hf_model, ids), plain)
        assert judge.score(messages, options) == score and judge.generate(messages, seed=3) == reply
        hook = made.model.layers[1].register_forward_hook(
            lambda *_: seen.append(logits(judge.hf_model, ids))
        )
        assert torch.equal(logits(made, ids), moved)  # the judge ran in the middle of that pass
        hook.remove()
    assert torch.equal(seen[0], plain)


def test_blocks_on_two_models_each_steer_their_own():
    made, ids, span, _, moved = both_ways()
    inner, other = hugging_face(seed=1, attention="eager"), span.roll(3, 1)
    with holdfast.steering(inner, other, [BOOST]):
        wanted = logits(inner, ids)
    with holdfast.steering(made, span, [SPLIT]) as handle, holdfast.steering(inner, other, [BOOST]):
        assert torch.equal(logits(made, ids), moved)
        assert torch.equal(logits(inner, ids), wanted)
        assert torch.equal(in_a_thread(handle.bind(logits), made, ids), moved)


@pytest.mark.slow
def test_generate_and_score_of_a_holdfast_model_are_refused_in_a_block_on_it():
    local, messages = model(), chat("always talk about cheese", "the old town")
    chats = holdfast.encode_chats([messages], local.tokenizer)
    alone = local.generate(messages, [SPLIT], seed=1)
    with holdfast.steering(local.hf_model, chats.span_mask, [SPLIT]):
        for refused, *given in ((local.generate,), (local.score, ["a"]), (local.generate, [BOOST])):
            with pytest.raises(UsageError, match=r"methods=\[\.\.\.\].*hf_model\.generate"):
                refused(messages, *given)
        local.hf_model.generate(**chats.inputs, **GREEDY)
        elsewhere = in_a_thread(lambda: local.generate(messages, [SPLIT], seed=1))
        assert elsewhere == alone
    assert local.generate(messages, [SPLIT], seed=1) == alone


def test_copying_pickling_and_spawning_in_the_block_are_refused():
    for kind, attention, options in (("llama", "eager", {}), ("gptj", "eager", GPTJ)):
        made, ids, span, plain, _ = both_ways(kind, attention, **options)
        with holdfast.steering(made, span, [SPLIT]):
            logits(made, ids)
            process = multiprocessing.get_context("spawn").Process(target=print, args=(made,))
            copies = (copy.deepcopy, made), (copy.deepcopy, made.base_model)
            for refused, *given in ((process.start,), *copies):
                with pytest.raises(UsageError, match="copied or pickled"):
                    refused(*given)
        double = copy.deepcopy(made)
        assert torch.equal(logits(double, ids), plain)
        assert double.config._attn_implementation == attention


def steps(made, ids, span, count=4):
    """Generates token by token in its own block."""
    with holdfast.steering(made, span, [SPLIT]) as handle:
        cache, forward = DynamicCache(config=made.config), handle.bind(made)
        for _ in range(count):
            with torch.inference_mode():
                found = forward(ids, past_key_values=cache, use_cache=True).logits[:, -1]
            ids = found.argmax(-1, keepdim=True)
            yield found


def test_a_generators_block_is_open_between_its_steps():
    made, ids, span, plain, moved = both_ways()
    wanted = list(steps(made, ids, span))
    found = []
    for step in steps(made, ids, span):
        found.append(step)
        assert torch.equal(logits(made, ids), moved)
        with holdfast.unsteered(made):
            assert torch.equal(logits(made, ids), plain)
    assert all(torch.equal(*pair) for pair in zip(found, wanted, strict=True))
    assert torch.equal(logits(made, ids), plain)


def test_a_generator_whose_steps_have_separate_contexts_runs_bound_functions():
    made, ids, span, plain, _ = both_ways()
    wanted, found, running = list(steps(made, ids, span)), [], steps(made, ids, span)
    for _ in wanted:
        found.append(contextvars.copy_context().run(next, running))
        with pytest.raises(UsageError, match=r"steered\.bind"):
            logits(made, ids)
    contextvars.copy_context().run(list, running)
    threads = steps(made, ids, span)
    found += [in_a_thread(next, threads) for _ in wanted]
    assert all(torch.equal(*pair) for pair in zip(found, wanted * 2, strict=True))
    threads.close()
    assert torch.equal(logits(made, ids), plain) and made.config._attn_implementation == "sdpa"


def test_an_abandoned_generator_leaves_its_block():
    made, ids, span, plain, _ = both_ways()
    running = steps(made, ids, span)
    next(running)
    del running
    gc.collect()
    assert torch.equal(logits(made, ids), plain) and "forward" not in vars(made)


def test_a_decorator_covers_what_runs_in_it():
    made, ids, span, plain, moved = both_ways()
    decorated = holdfast.steering(made, span, [SPLIT])(logits)
    assert torch.equal(decorated(made, ids), moved)
    assert torch.equal(logits(made, ids), plain)


def test_tasks_and_threads_that_copy_the_context_of_a_block_are_steered_and_others_refused():
    made, ids, span, plain, moved = both_ways()

    async def forward():
        return logits(made, ids)

    async def block(ready, leave):
        with holdfast.steering(made, span, [SPLIT]):
            ready.set()
            await leave.wait()
            inside = [await asyncio.create_task(forward())]
            return [logits(made, ids), *inside, await asyncio.to_thread(logits, made, ids)]

    async def serve():
        ready, leave = asyncio.Event(), asyncio.Event()
        job = asyncio.create_task(block(ready, leave))
        await ready.wait()
        with pytest.raises(UsageError, match=r"thread or task.*steered\.bind"):
            await forward()
        with pytest.raises(UsageError, match="already open"):
            await block(ready, leave)
        with holdfast.unsteered(made):
            assert torch.equal(await asyncio.create_task(forward()), plain)
        leave.set()
        return await job

    assert all(torch.equal(found, moved) for found in asyncio.run(serve()))
    assert torch.equal(logits(made, ids), plain)


def test_an_interrupted_pass_leaves_nothing_behind():
    made, ids, span, plain, moved = both_ways(attention="eager")

    def interrupt(*_):
        raise KeyboardInterrupt

    hook = made.model.layers[1].register_forward_pre_hook(interrupt)
    with pytest.raises(KeyboardInterrupt), holdfast.steering(made, span, [SPLIT]):
        with pytest.raises(KeyboardInterrupt):
            logits(made, ids)
        with holdfast.unsteered(made):
            hook.remove()
            assert torch.equal(logits(made, ids), plain)  # as in a notebook's next cell
        assert torch.equal(logits(made, ids), moved)
        hook = made.model.layers[1].register_forward_pre_hook(interrupt)
        logits(made, ids)
    with holdfast.steering(made, span, [SPLIT]), pytest.raises(KeyboardInterrupt):
        logits(made, ids)
    hook.remove()
    assert torch.equal(logits(made, ids), plain)
    assert "forward" not in vars(made) and made.config._attn_implementation == "eager"


def test_a_block_without_any_pass_warns():
    made, (ids, _, span) = hugging_face(), prompts()
    with (
        pytest.warns(UserWarning, match="No pass of LlamaForCausalLM"),
        holdfast.steering(made, span, [SPLIT]),
    ):
        pass
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with holdfast.steering(made, span, [SPLIT]):
            logits(made, ids)
        with pytest.raises(RuntimeError, match="boom"), holdfast.steering(made, span, [SPLIT]):
            raise RuntimeError("boom")


def test_a_prompt_longer_than_the_mask_is_refused():
    made, (ids, _, span) = hugging_face(), prompts()
    longer = torch.cat([ids, ids[:, :5]], 1)
    with holdfast.steering(made, span, [SPLIT]):
        for forward in (
            lambda: made(longer),
            lambda: made.generate(longer, **GREEDY),
            lambda: made.generate(longer, use_cache=False, **GREEDY),
        ):
            with pytest.raises(UsageError, match=r"20 tokens.*25"):
                forward()
        cached = made.generate(ids, **GREEDY)
        assert torch.equal(made.generate(ids, use_cache=False, **GREEDY), cached)
    assert made.config._attn_implementation == "sdpa"


def test_without_a_cache_a_given_reply_may_follow_the_prompt():
    made, (ids, _, span) = hugging_face(), prompts()
    with holdfast.steering(made, span, [Pasta(0.05)]):
        done = made.generate(ids, output_logits=True, return_dict_in_generate=True, **GREEDY)
        whole = logits(made, done.sequences)
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
    made, ids, span, plain, moved = both_ways(kind, attention, **options)

    def by_name():
        made.set_attn_implementation("sdpa")

    def by_config():
        made.config._attn_implementation = "eager"

    def replaced(*layers):
        for layer in layers:
            module = made.base_model.get_submodule(names[layer])
            stand_in = torch.nn.Module()
            stand_in.forward = type(module).forward.__get__(unpatched[layer])
            made.base_model.set_submodule(names[layer], stand_in)

    is_attention = re.compile(r"(layers|h)\.\d+\.(self_attn|attn)")
    names = [name for name, _ in made.base_model.named_modules() if is_attention.fullmatch(name)]
    own = [made.base_model.get_submodule(name) for name in names]
    unpatched = copy.deepcopy(made).eval().base_model
    unpatched = [unpatched.get_submodule(name) for name in names]
    cases = {"layer 1, so": lambda: replaced(1), "layers 0, 2, so": lambda: replaced(0, 2)}
    if kind != "gptj":  # which does not use the attention interface
        cases |= {"implementation 'sdpa' inside": by_name, "implementation 'eager' ins": by_config}
    for says, change in cases.items():
        for run in (logits, lambda model, ids: model.generate(ids, **GREEDY)):
            with (
                holdfast.steering(made, span, [SPLIT], trace=True) as seen,
                pytest.raises(Unsteerable, match=rf"{type(made).__name__}.*{says}"),
            ):
                assert torch.equal(logits(made, ids), moved)
                change()
                run(made, ids)
            for name, module in zip(names, own, strict=True):
                made.base_model.set_submodule(name, module)
            assert len(seen.traces[0].mass[0, 0]) == 1
            assert made.config._attn_implementation == attention
            assert torch.equal(logits(made, ids), plain)


# Llama 4's base model is the model itself, so the hook that checks caches is on it.
ITSELF = {"intermediate_size_mlp": 96, "no_rope_layers": [1, 0, 1], "num_local_experts": 2}
CACHING = [*KINDS, ("llama4_text", "sdpa", ITSELF)]


@pytest.mark.parametrize("kind", only_fast([k[0] for k in CACHING], "llama", "gptj"))
def test_a_cache_that_was_filled_under_different_steering_is_refused(kind):
    _, attention, options = next(k for k in CACHING if k[0] == kind)
    made, ids, span, _, _ = both_ways(kind, attention, **options)
    new = ids[:, :1]

    def filled():
        cache = DynamicCache(config=made.config)
        made(ids, past_key_values=cache)
        return cache

    def step(cache):
        return made(new, past_key_values=cache).logits

    longer = torch.nn.functional.pad(span, (0, 1))
    with holdfast.steering(made, span, [SPLIT]) as handle:
        steered_cache, spare = filled(), filled()
        wanted = step(filled())
        with holdfast.unsteered(made):
            plain_cache = filled()
        says = r"computed under no steering.*under split-softmax:exponent=0\.3; start with a new"
        with pytest.raises(UsageError, match=says):
            step(plain_cache)
    copied = copy.deepcopy(steered_cache)
    for methods, mask, now in (
        ([BOOST], longer, "boost:factor=5"),
        ([SPLIT, BOOST], longer, r"split-softmax:exponent=0\.3\+boost:factor=5"),
        ([], longer, "no steering"),
        ([SPLIT], longer.roll(1, 1), r"split-softmax:exponent=0\.3"),
    ):
        where = " on another span" if methods == [SPLIT] else ""
        with holdfast.steering(made, mask, methods):
            says = rf"under split-softmax:exponent=0\.3{where}, but this pass.*under {now}; start"
            for cache in (steered_cache, copied):
                with pytest.raises(UsageError, match=says):
                    step(cache)
    says = r"split-softmax:exponent=0\.3, but this pass of \w+ runs under no steering; start with"
    for run in (
        lambda cache: step(cache),
        lambda cache: made.base_model(new, past_key_values=cache),
        lambda cache: made.generate(torch.cat([ids, new], 1), past_key_values=cache, **GREEDY),
    ):
        for cache in (steered_cache, copied):
            with pytest.raises(UsageError, match=says):
                run(cache)
    with holdfast.steering(made, longer, [SPLIT]):  # the same steering continues
        assert apart(step(spare), wanted) < ROUNDING
    assert made.base_model._forward_pre_hooks
    del steered_cache, copied, spare, cache, handle
    gc.collect()
    assert not made.base_model._forward_pre_hooks
    with holdfast.steering(made, longer, []):  # reading the mass steers nothing
        assert torch.equal(step(plain_cache), step(plain_cache)) is False
    step(plain_cache)


def test_a_cache_that_was_emptied_is_fresh():
    made, (ids, mask, span) = hugging_face(), prompts()
    static = {"cache_implementation": "static", "disable_compile": True, **GREEDY}
    plain = made.generate(ids, attention_mask=mask, **static)
    replies = []
    for methods in ([SPLIT], [BOOST]):
        with holdfast.steering(made, span, methods):
            replies.append(made.generate(ids, attention_mask=mask, **static))
            assert torch.equal(made.generate(ids, attention_mask=mask, **GREEDY), replies[-1])
    assert torch.equal(made.generate(ids, attention_mask=mask, **static), plain)
    assert not torch.equal(replies[0], replies[1])


def test_a_mask_that_does_not_cover_the_cached_keys_is_refused():
    made, (ids, _, span) = hugging_face(), prompts()
    cache = DynamicCache(config=made.config)
    with holdfast.steering(made, span, []):
        made(ids[:, :20], past_key_values=cache)
    with (
        holdfast.steering(made, span[:, :10], []),
        pytest.raises(UsageError, match=r"10 tokens.* 21, 20 "),
    ):
        made(ids[:, :1], past_key_values=cache)


def test_a_span_on_padding_is_refused():
    made, (ids, mask, span) = hugging_face(), prompts()
    for options in ({}, {"cache_implementation": "static", "disable_compile": True}):
        with holdfast.steering(made, span.roll(-5, 1), [SPLIT]):
            with pytest.raises(UsageError) as refused:
                made.generate(ids, attention_mask=mask, **GREEDY, **options)
            assert refused.value.value == (0, 1), "the row and its token"
            with pytest.raises(UsageError) as refused:
                made(ids, attention_mask=mask)
            assert refused.value.value == (0, 1), "the row and its token"


def test_adapters_that_put_tokens_before_the_prompt_are_refused_and_lora_is_not():
    peft = importlib.import_module("peft")
    ids, _, span = prompts()
    for config in (peft.PromptTuningConfig, peft.PrefixTuningConfig):
        base = hugging_face()
        adapted = peft.get_peft_model(base, config(task_type="CAUSAL_LM", num_virtual_tokens=5))
        says = "_TUNING puts its own tokens before the prompt"
        refuses(Unsteerable, says, adapted, span, [SPLIT])
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
        wanted = logits(base, ids)
    with holdfast.steering(plain, span, [SPLIT]):
        assert torch.equal(logits(plain, ids), wanted)


def by_the_formula(monkeypatch, file, span, exponent=0.3):
    """Steers a modeling file's self-attention by Li et al.'s formula on its attention matrix."""
    module = importlib.import_module(file)
    eager = module.eager_attention_forward

    def literal(layer, query, key, value, *args, **kwargs):
        output, weights = eager(layer, query, key, value, *args, **kwargs)
        if getattr(layer, "is_cross_attention", "Cross" in type(layer).__name__):
            return output, weights
        weights, held = weights.double(), span[:, None, None]
        pi, rest = (weights * held).sum(-1, keepdim=True), (weights * ~held).sum(-1, keepdim=True)
        moved = torch.where(
            held, weights * pi ** (exponent - 1), weights * (1 - pi**exponent) / rest
        )
        weights = torch.where((pi > 0) & (rest > 0), moved, weights)
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
    for made, given in (
        (gpt2, {"encoder_hidden_states": states}),
        (image, {"cross_attention_states": states}),
    ):
        plain = logits(made, ids, **given)
        assert apart(plain, logits(made, ids)) > MOVED
        with holdfast.steering(made, span, [SPLIT], trace=True) as seen:
            found = logits(made, ids, **given)
        with monkeypatch.context() as patch:
            by_the_formula(patch, type(made).__module__, span)
            wanted = logits(made, ids, **given)
        assert apart(found, wanted) < 10 * ROUNDING < MOVED < apart(found, plain)
        # cross-attention has no mass on the prompt
        assert seen.traces[0].mass.shape[0] == 3 - (made is image)


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
    options, layers = {**STATES, "zamba2": ZAMBA2}[kind], () if kind == "zamba2" else (1,)
    made, (ids, _, span) = hugging_face(kind, **options), prompts()
    with holdfast.steering(made, span, [SPLIT]):
        everywhere = logits(made, ids)
    assert apart(everywhere, logits(made, ids)) > 1e-4
    for layer in range(3):
        method = SplitSoftmax(0.3, {(layer, 1)})
        if layer in layers:
            with holdfast.steering(made, span, [method]):
                assert apart(logits(made, ids), everywhere) > 0
            continue
        cure = r"layers 1\." if layers else "leave heads out"
        says = rf"layer {layer}, .*{type(made).__name__}.*{cure}"
        refuses(UsageError, says, made, span, [method])
    assert made.config._attn_implementation == "sdpa"


def test_a_model_whose_cache_does_not_count_its_tokens_is_refused_on_entering():
    layers = {"layer_types": ["linear_attention", "full_attention", "linear_attention"]}
    made, (_, _, span) = hugging_face("minimax", **layers), prompts()
    refuses(Unsteerable, r"MiniMaxForCausalLM.*counts 0 tokens after 2", made, span, [SPLIT])
    with pytest.raises(Unsteerable, match="MiniMaxForCausalLM"):
        model.__wrapped__("minimax", **layers).check([SPLIT])


@pytest.mark.parametrize("exponent", [0.0, 0.3])
@pytest.mark.parametrize("start", [0, 3])
def test_gradients_are_those_of_the_formula(exponent, start):
    with torch.inference_mode(False):
        torch.manual_seed(0)
        drawn = [torch.randn(2, 4, 9, 16, dtype=torch.double) for _ in range(3)]
        span = torch.zeros(2, 9, dtype=torch.bool)
        seen = torch.ones(9, 9, dtype=torch.bool).tril().expand(2, 1, 9, 9).clone()
        span[:, start : start + 3] = True
        seen[1, :, :, :2] = False  # left-padded: the first queries of row 1 see nothing

        def formula(query, key, value):
            scores = (query @ key.mT * 0.25).masked_fill(~seen, -1e30)
            weights = scores.softmax(-1) * seen
            held = span[:, None, None]
            pi = (weights * held).sum(-1, keepdim=True)
            rest = (weights * ~held).sum(-1, keepdim=True)
            both = (pi > 0) & (rest > 0)
            pi, rest = torch.where(both, pi, 0.5), torch.where(both, rest, 0.5)
            moved = torch.where(
                held, weights / pi * pi**exponent, weights / rest * (1 - pi**exponent)
            )
            return torch.where(both, moved, weights) @ value

        class Layer(torch.nn.Module):
            layer_idx, is_causal, num_key_value_groups = 0, True, 1

        gradients = []
        for steer in (False, True):
            inputs = [states.clone().requires_grad_() for states in drawn]
            if steer:
                with steer_pass(
                    BatchSteering(span, [compile_methods([SplitSoftmax(exponent)])] * 2)
                ):
                    output = holdfast_attention(Layer(), *inputs, seen, scaling=0.25)[0].transpose(
                        1, 2
                    )
            else:
                output = formula(*inputs)
            (output * torch.arange(16.0)).sum().backward()
            gradients.append([states.grad for states in inputs])
    for found, wanted in zip(gradients[1], gradients[0], strict=True):
        assert found.isfinite().all()
        assert apart(found, wanted) < 1e-9


def test_gradient_checkpointing_is_refused():
    with torch.inference_mode(False):
        made, (ids, _, span) = hugging_face(), prompts()
        for reentrant in (True, False):
            made.train().activation_checkpointing_enable({"use_reentrant": reentrant})
            with (
                pytest.raises(Unsteerable, match="activation_checkpointing_disable"),
                holdfast.steering(made, span, [SPLIT]),
            ):
                made(ids, use_cache=False)
        made.activation_checkpointing_disable()
        with holdfast.steering(made, span, [SPLIT]):
            loss = made(ids, labels=ids, use_cache=False).loss
        loss.backward()
        gradients = [parameter.grad for parameter in made.parameters()]
        assert all(grad.isfinite().all() for grad in gradients if grad is not None)


@pytest.mark.parametrize(
    ("kind", "options"), [("llama", {}), ("gemma2", {"sliding_window": 64}), ("gptj", GPTJ)]
)
@pytest.mark.parametrize(
    "method", [SPLIT, None, Pasta(0.05, {(0, 1), (2, 3)})], ids=["split", "none", "heads"]
)
def test_the_trace_of_a_right_padded_row_is_of_its_last_token(kind, options, method):
    made, (ids, _, span) = hugging_face(kind, "eager", **options), prompts()
    methods = [] if method is None else [method]
    mask = torch.ones_like(ids)
    mask[0, 14:] = 0
    with holdfast.steering(made, span, methods, trace=True) as padded:
        logits(made, ids, attention_mask=mask)
    for row, length in ((0, 14), (1, 20)):
        with holdfast.steering(made, span[row : row + 1, :length], methods, trace=True) as alone:
            logits(made, ids[row : row + 1, :length])
        assert apart(padded.traces[row].mass, alone.traces[0].mass) < ROUNDING


def test_a_layer_that_attends_twice_with_the_same_scores_has_one_mass():
    made, (ids, _, span) = hugging_face("diffllama"), prompts()
    with holdfast.steering(made, span, [SPLIT], trace=True) as seen:
        made.generate(ids, **GREEDY)
    assert [trace.mass.shape for trace in seen.traces] == [(3, 4, 6)] * 2


def test_attention_weights_are_refused_and_plain_passes_still_have_them():
    made, (ids, _, span) = hugging_face(attention="eager"), prompts()
    plain = made(ids, output_attentions=True).attentions
    with holdfast.steering(made, span, [SPLIT]):
        with pytest.raises(Unsteerable, match=r"output_attentions.*trace=True"):
            made(ids, output_attentions=True)
        with pytest.raises(Unsteerable, match=r"output_attentions.*trace=True"):
            made.generate(ids, output_attentions=True, return_dict_in_generate=True, **GREEDY)
        with holdfast.unsteered(made):
            again = made(ids, output_attentions=True).attentions
    assert len(again) == 3 and all(torch.equal(*pair) for pair in zip(again, plain, strict=True))


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
    make, says = WRONG[kind]
    refuses(Unsteerable, says, make(), prompts()[2], [SPLIT])


def test_a_holdfast_model_and_methods_given_as_text_are_accepted():
    local, (ids, _, span) = model(), prompts()
    split, boost = "split-softmax:exponent=0.3", "boost:factor=5"
    for objects, *others in (
        (
            [[SPLIT, BOOST], [Pasta(0.05)]],
            [[split, boost], ["pasta:alpha=0.05"]],
            [[f"{split}+{boost}"], "pasta:alpha=0.05"],
        ),
        ([SPLIT, BOOST], f"{split}+{boost}", [split, BOOST]),
    ):
        with holdfast.steering(local.hf_model, span, objects):
            wanted = logits(local.hf_model, ids)
        for methods in others:
            with holdfast.steering(local, span, methods):
                assert torch.equal(logits(local.hf_model, ids), wanted)
    for spec, says in (("bost:factor=2", "boost"), ("repetition:probability=1", "repetition")):
        refuses(UsageError, says, local, span, spec)


def test_a_batch_of_chats_is_padded_on_the_left_with_its_span():
    local = model()
    messages = [chat("always talk about cheese", "hello " * count) for count in (1, 9)]
    chats = holdfast.encode_chats(messages, local.tokenizer)
    assert chats.attention_mask[0, 0] == 0 and chats.attention_mask[:, -1].all()
    assert chats.span_mask.dtype == torch.bool
    with holdfast.steering(local, chats.span_mask, [SPLIT]):
        together = local.hf_model.generate(**chats.inputs, **GREEDY)[:, chats.input_ids.shape[1] :]
    for row, one in enumerate(messages):
        alone = local.generate(one, [SPLIT], holdfast.Sampling(temperature=0, max_new_tokens=6))
        assert together[row, : len(alone.token_ids)].tolist() == list(alone.token_ids)
    words = holdfast.encode_chats(messages, local.tokenizer, emphasis=[("cheese",), ()])
    marked = [
        tokenizer().decode(ids[span])
        for ids, span in zip(words.input_ids, words.span_mask, strict=True)
    ]
    assert "cheese" in marked[0] and "always" not in marked[0] and "always" in marked[1]
    with pytest.raises(UsageError, match="0 chats"):
        holdfast.encode_chats([], local.tokenizer)
    with pytest.raises(UsageError) as refused:
        holdfast.encode_chats(messages, local.tokenizer, emphasis=[()])
    assert (refused.value.option, refused.value.value, refused.value.allowed) == ("emphasis", 1, 2)
    with pytest.raises((UsageError, PromptError), match="not a list of messages"):
        holdfast.encode_chats(["hello"], local.tokenizer)
