"""The scheduler: requests are submitted, share steps, and end independently."""

from dataclasses import replace

import pytest
from method_examples import Broken
from tiny import LONG, chat, make_requests, model, scheduler_of

from holdfast import Guidance, Request
from holdfast.errors import ModelError
from holdfast.models.rendering import render_one


def token_requests_of(tiny, requests):
    """The requests as the scheduler reads them."""
    return [render_one(request, tiny.tokenizer).token_request for request in requests]


def finish(scheduler):
    """Steps until no request is left; returns them in the order in which they ended."""
    ended = []
    while len(scheduler):
        ended += scheduler.step()
    return ended


def test_a_request_has_its_tokens_as_soon_as_they_are_drawn():
    tiny = model()
    requests = make_requests(3)
    expected = [reply.token_ids for reply in tiny.generate_batch(requests)]
    scheduler = scheduler_of(tiny)
    handles = [scheduler.submit(item) for item in token_requests_of(tiny, requests)]
    for count in range(1, 4):
        scheduler.step()
        assert not handles[1].done and handles[1].token_ids == list(expected[1][:count])
    finish(scheduler)
    assert [tuple(handle.token_ids) for handle in handles] == expected
    assert len(scheduler) == 0 and scheduler.step() == []


def test_a_request_that_is_too_long_ends_without_affecting_others():
    tiny = model()
    requests = make_requests(2)
    expected = [reply.token_ids for reply in tiny.generate_batch(requests)]
    requests.insert(1, Request(chat("talk about cheese", "hello " * 600), sampling=LONG))
    scheduler = scheduler_of(tiny)
    handles = [scheduler.submit(item) for item in token_requests_of(tiny, requests)]
    finish(scheduler)
    assert handles[1].stop_reason == "context" and handles[1].token_ids == []
    assert [tuple(handles[n].token_ids) for n in (0, 2)] == expected


@pytest.mark.parametrize("how", ("raises", "no number"))
@pytest.mark.parametrize("beside", ((), (Guidance(1.5),)), ids=("one stream", "two"))
def test_a_failing_method_ends_only_its_request_and_the_error_names_the_request(how, beside):
    tiny = model()
    requests = make_requests(4)
    expected = [reply.token_ids for reply in tiny.generate_batch(requests)]
    requests[2] = replace(requests[2], methods=(Broken(how), *beside))
    scheduler = scheduler_of(tiny)
    named_requests = [replace(request, name=f"Request {n}") for n, request in enumerate(requests)]
    handles = [scheduler.submit(item) for item in token_requests_of(tiny, named_requests)]
    finish(scheduler)
    kind, message = (
        (ValueError, "a bug") if how == "raises" else (ModelError, "Request 2: .*finite")
    )
    with pytest.raises(kind, match=message) as error:
        handles[2].require_reply()
    assert how == "no number" or error.value.__notes__ == ["Request 2"]
    other_ids = [tuple(handles[n].token_ids) for n in (0, 1, 3)]
    assert other_ids == [expected[n] for n in (0, 1, 3)]


@pytest.mark.parametrize("methods", ((), (Guidance(1.5),)), ids=("plain", "guided"))
def test_a_cancelled_request_frees_its_slots_at_once_and_changes_no_other(methods):
    tiny = model()
    requests = make_requests(5, methods)
    expected = [reply.token_ids for reply in tiny.generate_batch(requests)]
    scheduler = scheduler_of(replace(tiny, batch_size=8 if methods else 4))
    handles = [scheduler.submit(item) for item in token_requests_of(tiny, requests)]
    scheduler.step()
    scheduler.step()
    before = len(scheduler.decoder)
    scheduler.cancel(handles[1])  # running
    scheduler.cancel(handles[4])  # waiting
    assert len(scheduler.decoder) == before - (2 if methods else 1)
    finish(scheduler)
    for n in (1, 4):
        assert handles[n].done and handles[n].cancelled
        with pytest.raises(ModelError, match="cancelled"):
            handles[n].require_reply()
    other_ids = [tuple(handles[n].token_ids) for n in (0, 2, 3)]
    assert other_ids == [expected[n] for n in (0, 2, 3)]


def dialog(tiny, limit, count):
    """Runs dialogs of as many turns; returns the replies and the number of forwarded tokens."""
    session = replace(tiny, prefix_memory=limit).session()
    talks = [chat("talk about cheese", "hello " * (n + 1)) for n in range(count)]
    texts, forwarded = [], 0
    for turn in range(count):
        for n, talk in enumerate(talks):
            request = Request(talk, (), LONG, seed=10 * n + turn, thread=n, keep=True)
            reply = session.generate_batch([request])[0]
            talks[n] += chat("", "", reply.text, "so?")[1:]
            texts.append(reply.token_ids)
            forwarded += reply.forwarded
            assert session.threads.size <= (limit if limit is not None else 1e12)
    return texts, forwarded


@pytest.mark.parametrize(
    ("count", "limits"),
    [(2, (60_000,)), pytest.param(3, (0, 40_000), marks=pytest.mark.slow)],
)
def test_memory_for_threads_is_bounded_and_evicted_prefixes_are_recomputed(count, limits):
    tiny = model(dtype="float64")
    everything, least = dialog(tiny, None, count)
    for limit in limits:
        texts, forwarded = dialog(tiny, limit, count)
        assert texts == everything and forwarded > least
