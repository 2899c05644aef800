"""The scope of a `holdfast.steering` block: which passes of which threads and tasks it covers."""

import asyncio
import contextlib
import contextvars
import copy
import gc
import multiprocessing
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
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
from tiny import GPTJ, chat, model
from transformers import DynamicCache

import holdfast
from holdfast.errors import UsageError

pytestmark = pytest.mark.usefixtures("inference")


def in_a_thread(function, *arguments):
    """Runs a function in a new thread; returns its result or raises its error."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *arguments).result(60)


# Threads


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


# Tasks


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


# Generators and decorators


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


# Several models, several blocks


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


def test_a_second_block_on_one_model_is_refused():
    hf_model, ids, span, plain, steered = both_ways()

    message = r"split-softmax:exponent=0\.3\) is already open.*boost:factor=5.*joined by \+"
    second = UsageError, message, hf_model, span, [BOOST]
    with holdfast.steering(hf_model, span, [SPLIT]):
        assert_refused(*second)
        in_a_thread(assert_refused, *second)
        assert torch.equal(logits(hf_model, ids), steered)
    assert (
        torch.equal(logits(hf_model, ids), plain) and hf_model.config._attn_implementation == "sdpa"
    )
    for methods in ([SPLIT, BOOST], [[SPLIT], [BOOST]]):  # as the message suggests
        with holdfast.steering(hf_model, span, methods):
            assert apart(logits(hf_model, ids)[1], steered[1]) > MOVED


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


# Leaving a block


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
