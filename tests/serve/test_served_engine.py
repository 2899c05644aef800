"""The engine of a server: requests share one batch, and each ends on its own."""

import asyncio
import threading
import time
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

import pytest
import torch
from method_examples import Broken
from tiny import LONG, chat, make_requests, model

from holdfast import Boost, Guidance, Request, Sampling, SplitSoftmax
from holdfast.errors import Busy, Draining, ModelError, PromptError, UsageError
from holdfast.generation import transformers_runner
from holdfast.generation.decoder import Decoder
from holdfast.models.requests import Reply
from holdfast.models.session import LocalSession
from holdfast.serve.served_engine import ServedEngine

METHODS = ((), (SplitSoftmax(0.3),), (Boost(2.0),), (Guidance(1.5),))
ENDLESS = Sampling(2.0, 1.0, 400)


def mixed_requests(count):
    """Requests that differ in length, method and seed."""
    requests = enumerate(make_requests(count))
    return [replace(r, methods=METHODS[n % 4], trace=n % 4 == 1) for n, r in requests]


@pytest.fixture
def slow(monkeypatch):
    """Makes steps take long enough for the tests to act between them."""
    step = Decoder.decode

    def wait(self):
        time.sleep(0.01)
        return step(self)

    monkeypatch.setattr(Decoder, "decode", wait)


def endless(count):
    """A model without stop tokens, and requests to it."""
    requests = [replace(request, sampling=ENDLESS) for request in make_requests(count)]
    return replace(model(), stop_ids=frozenset()), requests


@asynccontextmanager
async def running_engine(tiny, **options):
    engine = ServedEngine(tiny, **options)
    try:
        yield engine
    finally:
        engine.close()


def within(work):
    """Runs a coroutine for at most a minute."""
    return asyncio.run(asyncio.wait_for(work, 60))


async def ask(engine, request, top_logprobs=None):
    """The chat, the tokens and the reply of a request."""
    with engine.admit(1):
        (chat,) = await engine.render([request], top_logprobs)
        events = [event async for event in engine.stream(chat)]
        assert isinstance(events[-1], Reply)
        return chat, events[:-1], events[-1]


async def first_token(stream):
    return await anext(stream)


async def until(holds):
    while not holds():
        await asyncio.sleep(0.01)


# Requests that share a batch


def test_mixed_requests_get_the_replies_that_each_gets_alone():
    tiny = model(dtype="float64")
    requests = mixed_requests(15)
    expected = [tiny.session().generate_batch([request])[0] for request in requests]

    async def work():
        async with running_engine(tiny) as engine:
            replies = (ask(engine, request, n % 3 or None) for n, request in enumerate(requests))
            answers = await asyncio.gather(*replies)
            assert engine.open == 0 and engine.ready
        return answers

    answers = within(work())
    for n, (request, alone, answer) in enumerate(zip(requests, expected, answers, strict=True)):
        chat, tokens, reply = answer
        assert all(len(token.top) == n % 3 for token in tokens)
        assert all((token.logprob is None) == (n % 3 == 0) for token in tokens)
        assert reply.token_ids == alone.token_ids == tuple(token.token_id for token in tokens)
        assert (reply.text, reply.stop_reason) == (alone.text, alone.stop_reason)
        assert chat.prompt_ids == alone.prompt_ids
        assert {token.cached for token in tokens} <= {reply.cached}
        assert [token.mass is not None for token in tokens] == [request.trace] * len(tokens)
        if request.trace:
            steps = alone.trace.mass.movedim(-1, 0)[: len(tokens)]
            heads = torch.stack([token.heads for token in tokens])
            torch.testing.assert_close(heads, steps, rtol=0, atol=1e-6)
            assert [token.mass for token in tokens] == pytest.approx(steps.mean((1, 2)).tolist())


def test_the_span_is_reported_as_token_ranges():
    tiny = model()
    talk = chat("be nice", "the garden is green and the river runs")
    request = Request(talk, emphasis=["garden is", "river"], sampling=LONG)

    async def work():
        async with running_engine(tiny) as engine:
            return (await engine.render([request]))[0]

    rendered = within(work())
    parts = [rendered.prompt_ids[first:last] for first, last in rendered.span_ranges]
    words = [tiny.tokenizer.decode(part).strip() for part in parts]
    assert words == ["garden is", "river"]


def test_an_invalid_request_is_refused_at_once_and_others_continue():
    tiny, good = model(), make_requests(1)[0]
    long = Request(chat("talk about cheese", "hello " * 600), sampling=LONG)
    invalid = Request(chat("be nice", "hello"), (SplitSoftmax(0.5, heads=[(9, 9)]),), LONG)

    async def work():
        async with running_engine(tiny) as engine:
            reply = asyncio.create_task(ask(engine, good))
            with pytest.raises(PromptError, match="leaves no room"):
                await ask(engine, long)
            with pytest.raises(UsageError, match="head 9 in layer 9"):
                await ask(engine, invalid)
            with pytest.raises(ValueError, match="bug in"):
                await ask(engine, replace(good, methods=(Broken(),)))
            _, _, done = await reply
            assert engine.open == 0
            return done

    assert within(work()).token_ids == tiny.generate_batch([good])[0].token_ids


# Requests that leave


def test_leaving_a_stream_frees_its_row_for_a_request_that_waits(slow):
    tiny, requests = endless(3)
    tiny = replace(tiny, batch_size=2)

    async def work():
        async with running_engine(tiny) as engine:
            chats = await engine.render(requests)
            streams = [engine.stream(chat) for chat in chats]
            first, _ = await asyncio.gather(*map(first_token, streams[:2]))
            third = asyncio.create_task(first_token(streams[2]))
            scheduler = engine.session.stepped.scheduler
            await until(lambda: (engine.running, len(scheduler)) == (2, 3))  # the third waits
            await streams[0].aclose()
            await streams[0].aclose()
            third = await third  # takes the freed row
            for stream in streams[1:]:
                await stream.aclose()
            await until(lambda: engine.running == 0)
            assert len(scheduler.decoder) == 0
            return first, third

    first, third = within(work())
    brief = [replace(request, sampling=replace(ENDLESS, max_new_tokens=1)) for request in requests]
    expected = [reply.token_ids[0] for reply in tiny.generate_batch(brief)]
    assert [first.token_id, third.token_id] == [expected[0], expected[2]]


def test_cancelling_a_task_frees_its_row_at_any_moment(slow):
    tiny, requests = endless(6)

    async def work():
        async with running_engine(tiny) as engine:
            tasks = []
            for number, request in enumerate(requests):
                tasks.append(asyncio.create_task(ask(engine, request)))
                await asyncio.sleep(0.003 * number)  # while rendered, queued, or run
                tasks[-1].cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            await until(lambda: engine.running == 0 and engine.open == 0)
            _, _, reply = await ask(engine, make_requests(1)[0])
            assert not engine.session.stepped.open
            return ended, reply

    ended, reply = within(work())
    assert {type(error) for error in ended} == {asyncio.CancelledError}
    assert reply.token_ids == tiny.generate_batch(make_requests(1))[0].token_ids


# The event loop, and the work of a step


def test_the_event_loop_goes_on_while_a_step_is_made(monkeypatch):
    stepped_in, step = set(), Decoder.decode
    stepping, go_on = threading.Event(), threading.Event()

    def wait(self):
        stepped_in.add(threading.current_thread())
        stepping.set()
        assert go_on.wait(30)  # else the event loop was blocked
        return step(self)

    monkeypatch.setattr(Decoder, "decode", wait)
    tiny, (request,) = endless(1)
    request = replace(request, sampling=replace(ENDLESS, max_new_tokens=4))

    async def work():
        async with running_engine(tiny) as engine:
            asking = asyncio.create_task(ask(engine, request))
            await until(stepping.is_set)
            go_on.set()
            await asking

    within(work())
    assert len(stepped_in) == 1 and threading.main_thread() not in stepped_in


def test_a_long_prompt_is_rendered_while_other_rows_run(slow, monkeypatch):
    tiny, (request, long_request) = endless(2)
    render, rendering, go_on = LocalSession.render, threading.Event(), threading.Event()

    def render_slowly(self, request, top_logprobs=None):
        if request is long_request:
            rendering.set()
            assert go_on.wait(30)
        return render(self, request, top_logprobs)

    monkeypatch.setattr(LocalSession, "render", render_slowly)

    async def work():
        async with running_engine(tiny) as engine:
            (chat,) = await engine.render([request])
            late = asyncio.create_task(engine.render([long_request]))
            await until(rendering.is_set)
            async with aclosing(engine.stream(chat)) as stream:
                tokens = [await anext(stream) for _ in range(5)]
            go_on.set()
            await late
            return tokens

    assert len(within(work())) == 5


def test_no_step_counts_the_parameters_of_the_model(monkeypatch):
    calls = []
    monkeypatch.setattr(transformers_runner, "is_small", lambda model: calls.append(model))

    async def work():
        async with running_engine(model()) as engine:
            at_start = len(calls)
            await ask(engine, make_requests(1)[0])
            return at_start

    at_start = within(work())
    assert len(calls) == at_start


def test_an_idle_engine_sleeps():
    async def work():
        async with running_engine(model()) as engine:
            await ask(engine, make_requests(1)[0])
            before = time.process_time()
            await asyncio.sleep(0.5)
            return time.process_time() - before

    assert within(work()) < 0.1


# Steps that fail


def test_a_failed_step_ends_all_open_requests_and_the_engine_continues(slow, monkeypatch, caplog):
    step, pending_failure = Decoder.decode, [True]

    def fail(self):
        if pending_failure and len(self) == 2:
            pending_failure.pop()
            raise RuntimeError("device lost")
        return step(self)

    monkeypatch.setattr(Decoder, "decode", fail)
    tiny, requests = endless(2)

    async def work():
        async with running_engine(tiny) as engine:
            asking = (ask(engine, request) for request in requests)
            errors = await asyncio.gather(*asking, return_exceptions=True)
            assert [type(error) for error in errors] == [ModelError] * 2
            assert all("device lost" in str(error) for error in errors)
            assert engine.ready and engine.open == 0
            _, _, reply = await ask(engine, make_requests(1)[0])
            return reply

    assert within(work()).token_ids == tiny.generate_batch(make_requests(1))[0].token_ids
    assert "device lost" in caplog.text


def failing_steps(monkeypatch, failures):
    """Lets as many steps fail, with a list that holds the numbers of failures left."""
    step, remaining = Decoder.decode, list(failures)

    def fail(self):
        if remaining and remaining.pop(0):
            raise RuntimeError("device lost")
        return step(self)

    monkeypatch.setattr(Decoder, "decode", fail)
    return remaining


def test_an_engine_whose_steps_always_fail_stops_with_its_error(monkeypatch):
    failing_steps(monkeypatch, [True] * 100)
    request = make_requests(1)[0]

    async def work():
        async with running_engine(model()) as engine:
            for number in range(3):
                assert engine.ready, number
                with pytest.raises(ModelError, match="device lost"):
                    await ask(engine, request)
            assert not engine.ready and "device lost" in str(engine.error)
            with pytest.raises(ModelError, match="is not running"):
                await ask(engine, request)
            assert engine.open == 0

    within(work())


def test_only_failures_in_a_row_stop_the_engine(monkeypatch):
    remaining = failing_steps(monkeypatch, [True, True])
    request = make_requests(1)[0]

    async def work():
        async with running_engine(model()) as engine:
            for _ in range(2):
                for _ in range(2):
                    with pytest.raises(ModelError, match="device lost"):
                        await ask(engine, request)
                await ask(engine, request)
                remaining[:] = [True, True]
            assert engine.ready

    within(work())


# Full queues, and the end


def test_a_full_queue_is_busy_and_draining_finishes_open_requests(slow):
    tiny = replace(model(), batch_size=2)
    requests = make_requests(4)

    async def work():
        async with running_engine(tiny, queue=1) as engine:
            tasks = [asyncio.create_task(ask(engine, request)) for request in requests[:3]]
            await until(lambda: engine.open == 3)
            with pytest.raises(Busy, match="3 requests are open"):
                await ask(engine, requests[3])
            draining = asyncio.create_task(engine.drain())
            await asyncio.sleep(0)
            assert not engine.ready
            with pytest.raises(Draining):
                await ask(engine, requests[3])
            await draining
            assert all(task.done() for task in tasks)
            return [task.result()[2] for task in tasks]

    replies = within(work())
    expected = model().generate_batch(requests[:3])
    assert [reply.token_ids for reply in replies] == [reply.token_ids for reply in expected]


def test_a_request_that_is_rendered_while_the_engine_ends_is_refused(monkeypatch):
    tiny, request = model(), make_requests(1)[0]
    failing_steps(monkeypatch, [True] * 100)
    render = LocalSession.render
    rendering, go_on = threading.Event(), threading.Event()
    late = replace(request, seed=99)

    def render_slowly(self, request, top_logprobs=None):
        if request is late:
            rendering.set()
            assert go_on.wait(30)
        return render(self, request, top_logprobs)

    monkeypatch.setattr(LocalSession, "render", render_slowly)

    async def work():
        async with running_engine(tiny) as engine:
            chats = await engine.render([request] * 3)
            waiting = asyncio.create_task(ask(engine, late))
            await until(rendering.is_set)
            for chat in chats:
                with pytest.raises(ModelError, match="device lost"):
                    [event async for event in engine.stream(chat)]
            go_on.set()
            with pytest.raises(ModelError, match=r"is not running.*device lost"):
                await waiting
            assert engine.open == 0

    within(work())


def test_closing_ends_open_requests_with_an_error(slow):
    tiny, (request,) = endless(1)

    async def work():
        async with running_engine(tiny) as engine:
            (chat,) = await engine.render([request])
            stream = engine.stream(chat)
            await anext(stream)
            engine.close()
            with pytest.raises(ModelError, match="shut down"):
                while True:
                    await anext(stream)
            with pytest.raises(Draining):
                await ask(engine, request)

    within(work())


def test_an_engine_outlives_an_event_loop_that_ended_during_a_step(slow):
    tiny, (request,) = endless(1)
    engine = ServedEngine(tiny)

    async def leave():
        (chat,) = await engine.render([request])
        await anext(engine.stream(chat))

    asyncio.run(leave())
    try:
        _, _, reply = within(ask(engine, make_requests(1)[0]))
        assert engine.running == 0 and not engine.session.stepped.open
    finally:
        engine.close()
    assert reply.token_ids == tiny.generate_batch(make_requests(1))[0].token_ids
