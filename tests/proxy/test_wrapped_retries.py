"""`check-and-retry` in `holdfast.wrap`: clients of OpenAI draw a reply again."""

import asyncio
import time

import httpx2
import openai
import pytest
from checked_replies import BROKEN, BUSY, CHAT, KEPT, REMINDED, WORSE, busy, refuse, stall
from fake_upstream import (
    SUITE,
    FakeUpstream,
    chunks,
    completion,
    in_turn,
    reply_events,
    reply_json,
)

import holdfast
from holdfast.drift.suite_file import parse_suite
from holdfast.proxy import retry_attempts, upstream_answer, wrapping
from holdfast.proxy.reply_scores import WhyUnscored
from holdfast.proxy.tally import Tally


@pytest.fixture(autouse=True)
def short_delays(monkeypatch):
    monkeypatch.setattr(retry_attempts, "_FIRST_DELAY", 0.001)


def test_a_wrapped_client_draws_again_and_sends_the_best_reply(suite):
    tally, replies = Tally(), []
    with FakeUpstream(in_turn(WORSE, BROKEN, refuse)) as upstream:
        client = openai.OpenAI(base_url=f"{upstream.url}/v1", api_key="k", max_retries=0)
        wrapped = holdfast.wrap(
            client, suite=suite, method="check-and-retry:n=2", tally=tally, on_reply=replies.append
        )
        reply = wrapped.chat.completions.create(model="m", messages=CHAT)
    assert reply.choices[0].message.content == "Fine, sir"
    assert [request.json["messages"][-1]["content"] for request in upstream.requests] == [
        "Hi.",
        "[Reminder: Sign as Tony. Reply in one sentence.]\n\nHi.",
        REMINDED[1]["content"],
    ]
    assert tally.counts().retries == 2 and len(replies) == 1


def test_a_wrapped_asynchronous_client_streams_the_checked_reply(suite):
    answers = in_turn(reply_events(*chunks("Fine, ", "sir")), reply_events(*chunks("Oh, ", "Tony")))

    async def run(url):
        client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0)
        wrapped = holdfast.wrap(client, suite=suite, method="check-and-retry")
        stream = await wrapped.chat.completions.create(model="m", messages=CHAT, stream=True)
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    with FakeUpstream(answers) as upstream:
        assert asyncio.run(run(upstream.url)) == "Oh, Tony"


# Busy and slow servers


def ask_wrapped(kind, url, suite, tally, **options):
    wrapped = holdfast.wrap(
        kind(base_url=f"{url}/v1", api_key="k", **options),
        suite=suite,
        method="check-and-retry:n=2",
        tally=tally,
    )
    reply = wrapped.chat.completions.create(model="m", messages=CHAT)
    reply = asyncio.run(reply) if kind is openai.AsyncOpenAI else reply
    return reply.choices[0].message.content


@pytest.mark.parametrize("kind", [openai.OpenAI, openai.AsyncOpenAI])
@pytest.mark.parametrize("failure", BUSY.values(), ids=BUSY.keys())
def test_a_wrapped_client_waits_for_a_busy_server_in_a_retry(suite, kind, failure):
    tally = Tally()
    with FakeUpstream(in_turn(BROKEN, failure, failure, KEPT)) as upstream:
        assert ask_wrapped(kind, upstream.url, suite, tally, max_retries=2) == "Fine, Tony"
    assert (tally.counts().retries, tally.counts().failed_retries) == (1, 0)
    assert [request.json["messages"] for request in upstream.requests] == [CHAT, *[REMINDED] * 3]


@pytest.mark.parametrize("kind", [openai.OpenAI, openai.AsyncOpenAI])
@pytest.mark.parametrize("max_retries", [0, 2])
def test_a_wrapped_client_gives_up_a_retry_after_its_own_number_of_retries(
    suite, kind, max_retries
):
    tally = Tally()
    with FakeUpstream(in_turn(BROKEN, *[busy()] * (1 + max_retries))) as upstream:
        text = ask_wrapped(kind, upstream.url, suite, tally, max_retries=max_retries)
    assert text == "Fine, sir" and len(upstream.requests) == 2 + max_retries
    assert (tally.counts().retries, tally.counts().failed_retries) == (1, 1)


def trickle(request, writer):
    writer.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
    for _ in range(200):
        writer.chunk(b": wait\n\n")
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("kind", [openai.OpenAI, openai.AsyncOpenAI])
@pytest.mark.parametrize("slow", [stall, trickle])
def test_a_retry_of_a_wrapped_client_that_stalls_costs_no_reply(suite, monkeypatch, kind, slow):
    monkeypatch.setattr(wrapping, "EXTRA_SECONDS", 0.3)
    tally = Tally()
    with FakeUpstream(in_turn(BROKEN, slow)) as upstream:
        started = time.monotonic()
        assert ask_wrapped(kind, upstream.url, suite, tally) == "Fine, sir"
        assert time.monotonic() - started < 5
    assert tally.counts().failed_retries == 1


# What costs no reply


@pytest.mark.parametrize("kind", [openai.OpenAI, openai.AsyncOpenAI])
def test_a_hook_of_the_client_that_raises_on_a_retry_costs_no_reply(kind):
    """Such a hook may call `raise_for_status`."""
    suite = parse_suite(SUITE, "bot.yaml", "bot", probed=False)
    is_async = kind is openai.AsyncOpenAI

    def check(response):
        response.raise_for_status()

    async def check_async(response):
        response.raise_for_status()

    hooks = {"response": [check_async if is_async else check]}
    inner = (httpx2.AsyncClient if is_async else httpx2.Client)(event_hooks=hooks)
    with FakeUpstream(in_turn(BROKEN, busy("500 Oops"))) as upstream:
        client = kind(base_url=upstream.url, api_key="k", max_retries=0, http_client=inner)
        wrapped = holdfast.wrap(client, suite=suite, method="check-and-retry")
        reply = wrapped.chat.completions.create(model="m", messages=CHAT)
        reply = asyncio.run(reply) if is_async else reply
    assert reply.choices[0].message.content == "Fine, sir" and len(upstream.requests) == 2


@pytest.mark.parametrize("kind", [openai.OpenAI, openai.AsyncOpenAI])
def test_a_wrapped_client_passes_on_what_is_too_long_to_hold(suite, monkeypatch, kind):
    monkeypatch.setattr(upstream_answer, "MAX_SCORED_REPLY_BYTES", 100)
    text, tally = f"{'Oh. ' * 50}Tony", Tally()
    with FakeUpstream(reply_json(completion(text))) as upstream:
        client = kind(base_url=f"{upstream.url}/v1", api_key="k", max_retries=0)
        wrapped = holdfast.wrap(client, suite=suite, method="check-and-retry", tally=tally)
        reply = wrapped.chat.completions.create(model="m", messages=CHAT)
        reply = asyncio.run(reply) if kind is openai.AsyncOpenAI else reply
    assert reply.choices[0].message.content == text and len(upstream.requests) == 1
    assert tally.counts().unscored == {WhyUnscored.TOO_LONG: 1}
