"""An engine as tasks use it: shared steps, cancelled requests, and callers without a loop."""

import asyncio
import contextlib
import gc
import signal

import pytest
from tiny import chat, model

from holdfast import Request, Sampling
from holdfast.errors import PromptError
from holdfast.models.event_loop import run_sync, task_group
from holdfast.models.stepped_model import SteppedModel

LONG = Sampling(2.0, 1.0, 30)  # hot, so that hardly any reply ends on its own


def make_requests(count):
    talks = [chat("talk about cheese", "hello " * (n + 1)) for n in range(count)]
    return [Request(talk, (), LONG, seed=n) for n, talk in enumerate(talks)]


def test_tasks_that_wait_at_the_same_time_share_every_step(monkeypatch):
    tiny, batch_sizes, step = model(), [], SteppedModel.step

    def watch(self):
        outcomes = step(self)
        batch_sizes.append(len(self.scheduler.running))
        return outcomes

    monkeypatch.setattr(SteppedModel, "step", watch)
    expected = [reply.token_ids for reply in tiny.generate_batch(make_requests(6))]
    batch_sizes.clear()

    async def ask_all():
        async with tiny.session() as engine, task_group() as group:
            tasks = [group.create_task(engine.generate(request)) for request in make_requests(6)]
        return [task.result().token_ids for task in tasks]

    assert asyncio.run(ask_all()) == expected
    # one step for all of them
    assert batch_sizes[0] == 6 and len(batch_sizes) <= 32


def test_a_cancelled_task_frees_its_row_and_changes_no_other():
    tiny = model()
    expected = [reply.token_ids for reply in tiny.generate_batch(make_requests(3))]

    async def cancel_one():
        async with tiny.session() as engine:
            tasks = [asyncio.create_task(engine.generate(request)) for request in make_requests(3)]
            while engine.running < 3:
                await asyncio.sleep(0)
            tasks[1].cancel()
            with pytest.raises(asyncio.CancelledError):
                await tasks[1]
            running = engine.running
            replies = [await tasks[n] for n in (0, 2)]
            return running, [reply.token_ids for reply in replies], engine.running

    assert asyncio.run(cancel_one()) == (2, [expected[0], expected[2]], 0)


def test_a_stream_that_is_left_early_frees_its_row():
    tiny = model()

    async def leave():
        async with tiny.session() as engine:
            stream = engine.stream(make_requests(1)[0])
            first = [(await anext(stream)).token_id for _ in range(3)]
            await stream.aclose()
            return first, engine.running

    tokens, running = asyncio.run(leave())
    assert tokens == list(tiny.generate_batch(make_requests(1))[0].token_ids[:3]) and running == 0


def test_a_refused_request_fails_alone():
    tiny = model()
    bare = Request(chat("", "hello"), "boost:factor=2,heads=99.0", LONG)

    async def ask_both():
        async with tiny.session() as engine:
            waiting = [engine.generate(bare), engine.generate(make_requests(1)[0])]
            return await asyncio.gather(*waiting, return_exceptions=True)

    error, reply = asyncio.run(ask_both())
    assert "99" in str(error)
    assert reply.token_ids == tiny.generate_batch(make_requests(1))[0].token_ids


def test_a_batch_can_be_asked_for_inside_a_running_loop_as_in_a_notebook():
    tiny = model()
    expected = tiny.generate_batch(make_requests(2))

    async def cell():
        return tiny.generate_batch(make_requests(2))

    assert [r.token_ids for r in asyncio.run(cell())] == [r.token_ids for r in expected]


def test_a_group_raises_the_first_error_itself():
    async def fails():
        raise PromptError("no prompt")

    async def work():
        async with task_group() as group:
            group.create_task(fails())
            group.create_task(asyncio.sleep(60))

    with pytest.raises(PromptError, match="no prompt"):
        run_sync(work())


def interrupted_work(ended, depth):
    """A coroutine function: task groups `depth` deep, with an interrupt in the innermost one."""

    async def work():
        try:
            async with task_group() as group:
                if depth:
                    group.create_task(interrupted_work(ended, depth - 1)())
                else:
                    group.create_task(interrupt())
                group.create_task(asyncio.sleep(60))
        finally:
            ended.append(depth)

    async def interrupt():
        raise KeyboardInterrupt

    return work


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("in_a_loop", [False, True])
def test_an_interrupt_in_a_task_is_raised_and_not_reported_as_lost(in_a_loop, depth, caplog):
    gc.collect()  # of what earlier tests left
    caplog.clear()
    ended = list[int]()
    work = interrupted_work(ended, depth)

    async def cell():
        with pytest.raises(KeyboardInterrupt):
            run_sync(work())

    if in_a_loop:
        asyncio.run(cell())
    else:
        with pytest.raises(KeyboardInterrupt):
            run_sync(work())
    assert ended == list(range(depth + 1))  # every task ends before the interrupt is raised
    gc.collect()  # asyncio reports a lost error when its task is deleted
    assert not caplog.records


def test_a_task_cancelled_before_it_starts_is_not_reported_as_never_awaited(recwarn):
    async def never_starts():
        await asyncio.sleep(0)

    async def work():
        asyncio.get_running_loop().create_task(never_starts()).cancel()
        await asyncio.sleep(0)

    run_sync(work())
    gc.collect()
    assert not recwarn.list


def test_an_interrupt_is_raised_whatever_else_ends_the_tasks():
    async def interrupt():
        raise SystemExit(3)

    async def fails_when_cancelled():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ValueError("while it ended") from None

    async def work():
        async with task_group() as group:
            group.create_task(fails_when_cancelled())
            await asyncio.sleep(0)
            group.create_task(interrupt())

    async def returns_all_the_same():
        with contextlib.suppress(asyncio.CancelledError):
            await work()
        return "a result"

    for run in (work, returns_all_the_same):
        with pytest.raises(SystemExit):
            run_sync(run())


def test_the_handler_of_a_signal_is_back_after_an_interrupt_in_a_task():
    def handler(number, frame):
        raise AssertionError("not sent")

    async def interrupt():
        raise SystemExit(3)

    async def work():
        async with task_group() as group:
            group.create_task(interrupt())

    before = signal.signal(signal.SIGTERM, handler)
    try:
        with pytest.raises(SystemExit):
            run_sync(work())
        assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)
