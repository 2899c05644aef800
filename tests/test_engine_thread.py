"""The engine thread: requests from event loops share one batch, and each ends on its own."""

import asyncio
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch
from test_scheduler import LONG, Broken, asked
from tiny import chat, model

from holdfast import Boost, Guidance, Request, Sampling, SplitSoftmax
from holdfast.engine.decoder import Decoder
from holdfast.errors import Busy, Draining, ModelError, PromptError, UsageError
from holdfast.serve.engine_thread import EngineThread

METHODS = ((), (SplitSoftmax(0.3),), (Boost(2.0),), (Guidance(1.5),))
ENDLESS = Sampling(2.0, 1.0, 400)


def mixed(count):
    """Requests that differ in length, method and seed."""
    requests = enumerate(asked(count))
    return [replace(r, methods=METHODS[n % 4], trace=n % 4 == 1) for n, r in requests]


@pytest.fixture
def slow(monkeypatch):
    """Makes steps take long enough for the tests to act between them."""
    step = Decoder.step

    def waits(self):
        time.sleep(0.01)
        return step(self)

    monkeypatch.setattr(Decoder, "step", waits)


def endless(count):
    """A model without stop tokens, and requests to it."""
    requests = [replace(request, sampling=ENDLESS) for request in asked(count)]
    return replace(model(), stop_ids=frozenset()), requests


@contextmanager
def running(tiny, **options):
    engine = EngineThread(tiny, **options)
    engine.start()
    try:
        yield engine
    finally:
        engine.close()
        assert not engine._thread.is_alive()


def within(engine, work):
    """Runs the coroutine `work(engine)` for at most a minute."""
    return asyncio.run(asyncio.wait_for(work(engine), 60))


async def collect(generation):
    return [token async for token in generation]


def test_mixed_requests_get_the_replies_that_each_gets_alone():
    tiny = model(dtype="float64")
    requests = mixed(15)
    expected = [tiny.session().generate_batch([request])[0] for request in requests]

    async def work(engine):
        submitted = (engine.submit(each, n % 3 or None) for n, each in enumerate(requests))
        generations = await asyncio.gather(*submitted)
        tokens = await asyncio.gather(*map(collect, generations))
        return generations, tokens, [await each.reply() for each in generations]

    with running(tiny) as engine:
        generations, tokens, replies = within(engine, work)
        assert engine.open == 0 and engine.ready
    for n, told in enumerate(tokens):
        assert all(len(token.top) == n % 3 for token in told)
        assert all((token.logprob is None) == (n % 3 == 0) for token in told)
    each = zip(requests, expected, generations, tokens, replies, strict=True)
    for request, alone, generation, told, reply in each:
        assert reply.token_ids == alone.token_ids == tuple(token.token_id for token in told)
        assert (reply.text, reply.stop_reason) == (alone.text, alone.stop_reason)
        assert generation.prompt_ids == alone.prompt_ids
        assert [token.mass is not None for token in told] == [request.trace] * len(told)
        if request.trace:
            steps = alone.trace.mass.movedim(-1, 0)[: len(told)]
            heads = torch.stack([token.heads for token in told])
            torch.testing.assert_close(heads, steps, rtol=0, atol=1e-6)
            assert [token.mass for token in told] == pytest.approx(steps.mean((1, 2)).tolist())


def test_the_span_is_reported_as_token_ranges():
    tiny = model()
    talk = chat("be nice", "the garden is green and the river runs")
    request = Request(talk, emphasis=["garden is", "river"], sampling=LONG)

    async def work(engine):
        return await engine.submit(request)

    with running(tiny) as engine:
        generation = within(engine, work)
    parts = [generation.prompt_ids[first:last] for first, last in generation.span_ranges]
    words = [tiny.tokenizer.decode(part).strip() for part in parts]
    assert words == ["garden is", "river"]


def test_an_invalid_request_is_refused_at_once_and_others_continue():
    tiny, good = model(), asked(1)[0]
    long = Request(chat("talk about cheese", "hello " * 600), sampling=LONG)
    lost = Request(chat("be nice", "hello"), (SplitSoftmax(0.5, heads=[(9, 9)]),), LONG)

    async def work(engine):
        generation = await engine.submit(good)
        with pytest.raises(PromptError, match="leaves no room"):
            await engine.submit(long)
        with pytest.raises(UsageError, match="head 9 in layer 9"):
            await engine.submit(lost)
        broken = await engine.submit(replace(good, methods=(Broken(),)))
        with pytest.raises(ValueError, match="a bug in a method"):
            await broken.reply()
        with pytest.raises(ValueError, match="a bug in a method"):
            await collect(broken)
        return await generation.reply()

    with running(tiny) as engine:
        assert within(engine, work).token_ids == tiny.generate_batch([good])[0].token_ids
        assert engine.open == 0


def test_cancelling_frees_the_row_and_cancelling_twice_is_harmless(slow):
    tiny, requests = endless(3)
    tiny = replace(tiny, batch_size=2)

    async def work(engine):
        generations = [await engine.submit(request) for request in requests]
        tokens = aiter(generations[0])
        first = await anext(tokens)
        waiting = engine._session._scheduler._waiting
        while (engine.running, len(waiting)) != (2, 1):  # the third is queued a step later
            await asyncio.sleep(0.01)
        generations[0].cancel()
        generations[0].cancel()
        assert [token async for token in tokens] == []
        with pytest.raises(ModelError, match="cancelled"):
            await generations[0].reply()
        third = await anext(aiter(generations[2]))  # takes the freed row
        for generation in generations[1:]:
            generation.cancel()
        while engine.open:
            await asyncio.sleep(0.01)
        return first, third

    with running(tiny) as engine:
        first, third = within(engine, work)
        assert engine.running == 0 and len(engine._session._scheduler._decoder) == 0
    brief = [replace(request, sampling=replace(ENDLESS, max_new_tokens=1)) for request in requests]
    expected = [reply.token_ids[0] for reply in tiny.generate_batch(brief)]
    assert [first.token_id, third.token_id] == [expected[0], expected[2]]


def test_a_full_queue_is_busy_and_draining_finishes_open_requests(slow):
    tiny = replace(model(), batch_size=2)
    requests = asked(4)

    async def work(engine):
        generations = [await engine.submit(request) for request in requests[:3]]
        with pytest.raises(Busy, match="3 requests are open"):
            await engine.submit(requests[3])
        draining = asyncio.create_task(engine.drain())
        await asyncio.sleep(0)
        assert not engine.ready
        with pytest.raises(Draining):
            await engine.submit(requests[3])
        await draining
        return [await generation.reply() for generation in generations]

    with running(tiny, queue=1) as engine:
        replies = within(engine, work)
    expected = model().generate_batch(requests[:3])
    assert [reply.token_ids for reply in replies] == [reply.token_ids for reply in expected]


def test_a_failed_step_ends_all_open_requests_and_the_engine_continues(slow, monkeypatch, caplog):
    step, broken = Decoder.step, [True]

    def fails(self):
        if broken and len(self) == 2:
            broken.pop()
            raise RuntimeError("the device is gone")
        return step(self)

    monkeypatch.setattr(Decoder, "step", fails)
    tiny, requests = endless(2)

    async def work(engine):
        generations = [await engine.submit(request) for request in requests]
        for generation in generations:
            with pytest.raises(ModelError, match="the device is gone"):
                await generation.reply()
        assert engine.ready and engine.open == 0
        again = await engine.submit(asked(1)[0])
        return await again.reply()

    with running(tiny) as engine:
        reply = within(engine, work)
    assert reply.token_ids == tiny.generate_batch(asked(1))[0].token_ids
    assert "A step of the engine has failed" in caplog.text


def test_an_engine_whose_steps_always_fail_stops_with_its_error(monkeypatch):
    def fails(self):
        raise RuntimeError("the device is gone")

    monkeypatch.setattr(Decoder, "step", fails)
    request = asked(1)[0]

    async def work(engine):
        for _ in range(3):
            generation = await engine.submit(request)
            with pytest.raises(ModelError, match="the device is gone"):
                await generation.reply()
        engine._thread.join(10)
        assert not engine.ready and "the device is gone" in str(engine.error)
        with pytest.raises(ModelError, match="does not run"):
            await engine.submit(request)

    with running(model()) as engine:
        within(engine, work)
        assert engine.open == 0


def test_a_request_that_is_rendered_while_the_engine_ends_is_refused(monkeypatch):
    tiny, request = model(), asked(1)[0]

    async def work(engine):
        render = engine._session.render

        def late(*given):
            engine._die(RuntimeError("the device is gone"))
            return render(*given)

        monkeypatch.setattr(engine._session, "render", late)
        with pytest.raises(ModelError, match="the device is gone"):
            await engine.submit(request)
        assert engine.open == 0

    with running(tiny) as engine:
        within(engine, work)


def test_closing_ends_open_requests_with_an_error(slow):
    tiny, (request,) = endless(1)

    async def work(engine):
        generation = await engine.submit(request)
        await anext(aiter(generation))
        await asyncio.to_thread(engine.close)
        with pytest.raises(ModelError, match="shut down"):
            await generation.reply()

    with running(tiny) as engine:
        within(engine, work)


def test_an_idle_engine_sleeps():
    with running(model()) as engine:
        within(engine, lambda engine: engine.submit(asked(1)[0]))
        while engine.open:
            time.sleep(0.01)
        before = time.process_time()
        time.sleep(0.5)
        assert time.process_time() - before < 0.1
