"""`check-and-retry` in `holdfast proxy` and `holdfast.wrap`: replies that are drawn again."""

import asyncio
import email.utils
import threading
import time

import httpx2
import openai
import pytest
import yaml
from fake_upstream import (
    SUITE,
    SYSTEM,
    FakeUpstream,
    chunks,
    client,
    completion,
    counts,
    in_turn,
    proxied,
    reply_events,
    reply_json,
    response,
    through,
    wait_until,
)

import holdfast
from holdfast.drift.suite_file import parse_suite
from holdfast.proxy import forwarding, retry_attempts, upstream_answer, wrapping
from holdfast.proxy.reply_scores import WhyUnscored
from holdfast.proxy.tally import Tally

CHAT = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Hi."}]
REMINDED = [CHAT[0], {"role": "user", "content": "[Reminder: Sign as Tony.]\n\nHi."}]
BROKEN, KEPT = reply_json(completion("Fine, sir")), reply_json(completion("Fine, Tony"))
WORSE = reply_json(completion("Fine. Yes, sir"))  # breaks both rules


def busy(status="429 Slow down", *headers):
    """Answers with a status after which the same request may succeed."""
    body = b'{"error": {"message": "no"}}'
    fields = ("Content-Type: application/json", *headers)
    return lambda request, writer: writer.whole(status, body, *fields)


refuse = busy("400 No")  # for good


def close(request, writer):
    return False


def break_off(request, writer):
    writer.head("200 OK", "Content-Type: application/json", "Content-Length: 500")
    writer.raw(b'{"choices": [')
    return False


@pytest.fixture(autouse=True)
def short_delays(monkeypatch):
    monkeypatch.setattr(retry_attempts, "_FIRST_DELAY", 0.001)


def ask(url, **fields):
    return httpx2.post(f"{url}/v1/chat/completions", json={"messages": CHAT, **fields})


def text_of(reply):
    return reply.json()["choices"][0]["message"]["content"]


def test_a_reply_that_breaks_a_rule_is_drawn_again(suite):
    with through(in_turn(BROKEN, KEPT), suite, "check-and-retry:n=2") as (upstream, proxy):
        assert text_of(ask(proxy.url, seed=3)) == "Fine, Tony"
        proxy.settle()
        metrics = httpx2.get(f"{proxy.url}/metrics").text
    first, second = upstream.requests
    assert first.json["messages"] == CHAT and second.json == {"messages": REMINDED, "seed": 3}
    # only the reply that the client got is scored
    rules = {row.cell.rule: (row.kept, row.scored) for row in proxy.counts.rules}
    assert rules == {"signs": (1, 1), "short": (1, 1)}
    assert proxy.counts.retries == 1 and proxy.counts.reminders == 0
    # at four bytes each: the 42 bytes of the chat again, and the 27 of the reminder
    assert proxy.counts.added_tokens == 11 + 7
    assert "holdfast_proxy_retries_total 1.0" in metrics


def test_a_reply_that_keeps_all_rules_is_sent_on(suite):
    with through(KEPT, suite, "check-and-retry") as (upstream, proxy):
        reply = ask(proxy.url)
    assert reply.content == completion("Fine, Tony") and len(upstream.requests) == 1
    assert proxy.counts.retries == 0


def test_messages_are_edited_in_a_retry_too(suite):
    spec = 'reminder:every=1,text="Be brief."+check-and-retry:n=1'
    with through(in_turn(BROKEN, KEPT), suite, spec) as (upstream, proxy):
        ask(proxy.url)
    first, second = (request.json["messages"][-1]["content"] for request in upstream.requests)
    assert first == "[Reminder: Be brief.]\n\nHi."
    assert second == "[Reminder: Be brief.]\n\n[Reminder: Sign as Tony.]\n\nHi."


@pytest.mark.parametrize(
    ("answers", "text"),
    [
        ((WORSE, BROKEN, WORSE), "Fine, sir"),
        ((BROKEN, WORSE, reply_json(completion("Well, sir"))), "Fine, sir"),
        ((BROKEN, refuse), "Fine, sir"),
        ((BROKEN, reply_json(completion(""))), "Fine, sir"),
        ((BROKEN, reply_json(b"<html>")), "Fine, sir"),
    ],
    ids=["the fewest broken", "the earliest", "refused", "empty", "unreadable"],
)
def test_the_best_draw_is_sent_if_none_keeps_all_rules(suite, answers, text):
    with through(in_turn(*answers), suite, "check-and-retry:n=2") as (upstream, proxy):
        reply = ask(proxy.url)
    assert reply.status_code == 200 and text_of(reply) == text
    assert len(upstream.requests) == len(answers)
    assert proxy.counts.failed_retries == (len(answers) == 2)  # all others gave a reply


BUSY = {
    "429 with seconds": busy("429 Slow down", "Retry-After: 0.02"),
    "429 with milliseconds": busy("429 Slow down", "Retry-After-Ms: 20"),
    "429": busy(),
    "503": busy("503 Later"),
    "529": busy("529 Overloaded"),
    "said to pass": busy("400 No", "x-should-retry: true"),
    "closed": close,
    "broken off": break_off,
}


@pytest.mark.parametrize("failure", BUSY.values(), ids=BUSY.keys())
def test_a_retry_waits_for_a_busy_server(suite, caplog, failure):
    answers = in_turn(BROKEN, failure, failure, KEPT)
    with through(answers, suite, "check-and-retry:n=1") as (upstream, proxy):
        assert text_of(ask(proxy.url)) == "Fine, Tony"
        proxy.settle()
        assert counts(proxy) == {("signs", 1): (1, 1), ("short", 1): (1, 1)}
    first, *later = (request.json["messages"] for request in upstream.requests)
    assert first == CHAT and later == [REMINDED] * 3
    assert (proxy.counts.retries, proxy.counts.failed_retries) == (1, 0)
    assert proxy.counts.added_tokens == 11 + 7  # a request without a reply costs no tokens
    lines = [r.getMessage() for r in caplog.records if r.name == "holdfast.proxy"]
    assert len(lines) == 2 and all("; sent again in " in line for line in lines)


def test_a_retry_is_given_up_if_the_server_stays_busy(suite, caplog):
    always_busy = [busy("429 Slow down", "Retry-After: 0.01")] * (1 + retry_attempts.MAX_RESENDS)
    with through(in_turn(BROKEN, *always_busy), suite, "check-and-retry:n=2") as (upstream, proxy):
        reply = ask(proxy.url)
        proxy.settle()
        metrics = httpx2.get(f"{proxy.url}/metrics").text
        live = httpx2.get(f"{proxy.url}/holdfast/live.json").json()
    assert reply.status_code == 200 and text_of(reply) == "Fine, sir"
    assert len(upstream.requests) == 1 + len(always_busy)
    assert (proxy.counts.retries, proxy.counts.failed_retries) == (1, 1)
    assert "holdfast_proxy_failed_retries_total 1.0" in metrics and live["failed_retries"] == 1
    *_, last = [r.getMessage() for r in caplog.records if r.name == "holdfast.proxy"]
    assert last.endswith("answered with status 429; an earlier reply is sent")


@pytest.mark.parametrize(
    "refusal",
    [
        busy("429 Slow down", "Retry-After: 3600"),
        busy("429 Slow down", "Retry-After: Fri, 01 Jan 2123 00:00:00 GMT"),
        busy("429 Slow down", "x-should-retry: false"),
        busy("401 No"),
    ],
)
def test_a_retry_that_would_take_too_long_or_be_refused_again_is_given_up(suite, refusal):
    with through(in_turn(BROKEN, refusal), suite, "check-and-retry:n=2") as (upstream, proxy):
        assert text_of(ask(proxy.url)) == "Fine, sir"
    assert len(upstream.requests) == 2 and proxy.counts.failed_retries == 1


def stall(request, writer):
    writer.client_is_gone(20)
    return False


def test_a_retry_that_stalls_costs_no_reply(suite, monkeypatch, caplog):
    monkeypatch.setattr(forwarding, "EXTRA_SECONDS", 0.2)
    with through(in_turn(BROKEN, stall), suite, "check-and-retry:n=2") as (_, proxy):
        started = time.monotonic()
        assert text_of(ask(proxy.url)) == "Fine, sir"
        assert time.monotonic() - started < 3
        proxy.settle()
    assert proxy.counts.failed_retries == 1
    (line,) = [r.getMessage() for r in caplog.records if r.name == "holdfast.proxy"]
    assert line.endswith("took too long for a retry; an earlier reply is sent")


@pytest.mark.parametrize("answer", [stall, busy("429 Slow down", "Retry-After: 30")])
def test_a_retry_ends_before_its_client_gives_up(suite, answer, monkeypatch):
    """OpenAI's clients say in a header how long they wait."""
    monkeypatch.setattr(forwarding, "_USABLE_PATIENCE", 0.2)
    with through(in_turn(BROKEN, answer), suite, "check-and-retry:n=2") as (_, proxy):
        reply = client(proxy, timeout=5).chat.completions.create(model="m", messages=CHAT)
    assert reply.choices[0].message.content == "Fine, sir" and proxy.counts.failed_retries == 1


def test_a_client_that_leaves_while_a_retry_waits_ends_it(suite):
    later = busy("429 Slow down", "Retry-After: 30")
    with through(in_turn(BROKEN, later), suite, "check-and-retry") as (upstream, proxy):
        with pytest.raises(httpx2.ReadTimeout):
            httpx2.post(f"{proxy.url}/v1/chat/completions", json={"messages": CHAT}, timeout=0.4)
        proxy.settle()
    assert len(upstream.requests) == 2 and proxy.counts.unscored == {WhyUnscored.FAILED: 1}


def test_a_retry_is_no_repetition_of_the_first_request(suite):
    """A server answers a second request with the same key by its first answer."""
    headers = {"Idempotency-Key": "k1", "x-mine": "1"}
    with through(in_turn(BROKEN, KEPT), suite, "check-and-retry") as (upstream, proxy):
        url = f"{proxy.url}/v1/chat/completions"
        httpx2.post(url, json={"messages": CHAT}, headers=headers)
    first, second = upstream.requests
    assert first.header("idempotency-key") == "k1" and second.header("idempotency-key") is None
    assert first.header("x-mine") == second.header("x-mine") == "1"


@pytest.mark.parametrize(
    ("seconds_left", "headers", "resends", "delay"),
    [
        (60, {}, 0, (0.00075, 0.001)),
        (60, {}, 3, (0.006, 0.008)),
        (60, {"retry-after": "20"}, 0, (20, 20)),
        (60, {"retry-after-ms": "1500", "retry-after": "20"}, 0, (1.5, 1.5)),
        (60, {"retry-after": "soon"}, 0, (0.00075, 0.001)),
        (60, {"retry-after": "-1"}, 0, (0.00075, 0.001)),
        (60, {"retry-after": "nan"}, 0, (0.00075, 0.001)),
        (10, {"retry-after": "20"}, 0, None),
        (60, {"retry-after": "inf"}, 0, None),
        (60, {}, 5, None),
        (0, {}, 0, None),
    ],
)
def test_the_delay_before_a_retry_is_sent_again(seconds_left, headers, resends, delay):
    deadline = time.monotonic() + seconds_left
    attempts = retry_attempts.RetryAttempts(5, deadline, resends)
    answer = upstream_answer.UpstreamAnswer(429, httpx2.Headers(headers))
    actual = attempts.delay_after(answer)
    assert actual is None if delay is None else delay[0] <= actual <= delay[1]


def test_a_date_says_when_to_send_a_retry_again():
    date = email.utils.formatdate(time.time() + 30, usegmt=True)
    attempts = retry_attempts.RetryAttempts(5, time.monotonic() + 60)
    answer = upstream_answer.UpstreamAnswer(503, httpx2.Headers({"retry-after": date}))
    assert 28 < attempts.delay_after(answer) <= 30


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


def test_a_stream_is_held_back_until_it_is_checked(suite):
    answers = in_turn(reply_events(*chunks("Fine, ", "sir")), reply_events(*chunks("Oh, ", "Tony")))
    with (
        FakeUpstream(answers) as upstream,
        proxied(upstream.url, suite, "check-and-retry") as proxy,
    ):
        client = openai.OpenAI(base_url=f"{proxy.url}/v1", api_key="k", max_retries=0)
        stream = client.chat.completions.create(model="m", messages=CHAT, stream=True)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "Oh, Tony"


def test_a_reply_of_the_responses_api_is_drawn_again(suite):
    answers = in_turn(
        *(
            reply_json(httpx2.Response(200, json=response(text)).content)
            for text in ("Fine, sir", "Fine, Tony")
        )
    )
    with (
        FakeUpstream(answers) as upstream,
        proxied(upstream.url, suite, "check-and-retry") as proxy,
    ):
        body = {"instructions": SYSTEM, "input": "Hi."}
        reply = httpx2.post(f"{proxy.url}/v1/responses", json=body).json()
    assert reply["output"][0]["content"][0]["text"] == "Fine, Tony"
    assert upstream.requests[1].json == {**body, "input": REMINDED[1]["content"]}


def test_reasoning_is_not_checked(suite):
    answer = reply_json(completion("<think>I plan. I plan more.</think>Fine, Tony"))
    with through(answer, suite, "check-and-retry") as (upstream, proxy):
        ask(proxy.url)
    assert len(upstream.requests) == 1 and proxy.counts.retries == 0


def test_half_a_surrogate_pair_is_sent_again_as_it_came(suite):
    body = b'{"messages": [{"role": "user", "content": "Hi \\ud83d"}]}'
    with through(in_turn(BROKEN, KEPT), suite, "check-and-retry") as (upstream, proxy):
        reply = httpx2.post(f"{proxy.url}/v1/chat/completions", content=body)
    assert text_of(reply) == "Fine, Tony"
    assert b"Tony.]\\n\\nHi \\ud83d" in upstream.requests[1].body


@pytest.mark.parametrize("choices", ["5", '["x"]', "[null]"])
def test_malformed_choices_are_sent_on_unchanged(suite, choices):
    body = f'{{"choices": {choices}}}'.encode()
    with through(reply_json(body), suite, "check-and-retry") as (_, proxy):
        assert ask(proxy.url).content == body


CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    "answer",
    [refuse, reply_json(completion("", "tool_calls", tool_calls=[CALL])), reply_json(b"[")],
    ids=["refused", "calls a tool", "unreadable"],
)
def test_what_is_no_reply_is_sent_on_as_it_is(suite, answer):
    with FakeUpstream(answer) as upstream:
        direct = ask(upstream.url)
        with proxied(upstream.url, suite, "check-and-retry") as proxy:
            through = ask(proxy.url)
    assert (through.status_code, through.content) == (direct.status_code, direct.content)
    assert len(upstream.requests) == 2 and proxy.counts.retries == 0


def test_several_choices_are_not_held_back(suite):
    """Such a reply is not drawn again either, even if all choices but one broke off."""
    stream = chunks("Fine, sir")
    release = threading.Event()

    def answer(request, writer):
        writer.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        writer.chunk(stream[0])
        assert release.wait(20)
        for event in stream[1:]:
            writer.chunk(event)
        writer.raw(b"0\r\n\r\n")

    with through(answer, suite, "check-and-retry") as (upstream, proxy):
        body = {"messages": CHAT, "stream": True, "n": 2}
        with httpx2.stream("POST", f"{proxy.url}/v1/chat/completions", json=body) as reply:
            parts = reply.iter_raw()
            assert next(parts) == stream[0]
            release.set()
            assert b"".join(parts) == b"".join(stream[1:])
        metrics = httpx2.get(f"{proxy.url}/metrics").text
    assert len(upstream.requests) == 1
    assert proxy.counts.unchecked == 1 and "holdfast_proxy_unchecked_total 1.0" in metrics


def test_a_pattern_that_runs_for_ages_costs_only_its_rule(tmp_path, caplog):
    cases = yaml.safe_load(SUITE)
    slow = {"id": "slow", "text": "Say a or Tony.", "measure": {"regex": "(a|aa)+$|Tony"}}
    cases["cases"][0]["rules"].insert(0, slow)
    path = tmp_path / "slow.yaml"
    path.write_text(yaml.safe_dump(cases))
    hostile = "a" * 5000 + "b"
    turns = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": hostile}]
    spec = "reminder:every=1,text=rules,when=broken+check-and-retry:n=1"
    answers = in_turn(reply_json(completion(hostile)), KEPT)
    with through(answers, str(path), spec) as (upstream, proxy):
        chat = [CHAT[0], *turns * 20, CHAT[1]]
        started = time.process_time()
        assert text_of(ask(proxy.url, messages=chat)) == "Fine, Tony"
        assert time.process_time() - started < 3  # a reply that stands there again is remembered
        proxy.settle()
        assert [row.cell.rule for row in proxy.counts.rules] == ["slow", "signs", "short"]
    contents = [request.json["messages"][-1]["content"] for request in upstream.requests]
    reminder = "[Reminder: Sign as Tony.]\n\n"
    assert contents == [f"{reminder}Hi.", f"{reminder * 2}Hi."]
    assert "brief/slow" in caplog.text and "aaa" not in caplog.text


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


def test_an_answer_that_breaks_off_does_so_here(suite):
    def answer(request, writer):
        writer.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        writer.chunk(chunks("Fine, ")[0])
        return False

    with through(answer, suite, "check-and-retry") as (_, proxy):
        client = openai.OpenAI(base_url=f"{proxy.url}/v1", api_key="k", max_retries=0)
        stream = client.chat.completions.create(model="m", messages=CHAT, stream=True)
        assert next(stream).choices[0].delta.content == "Fine, "
        with pytest.raises((openai.APIConnectionError, httpx2.RemoteProtocolError)):
            list(stream)
        proxy.settle()
    assert proxy.counts.unscored == {WhyUnscored.FAILED: 1}


def test_a_reply_that_is_too_long_to_hold_is_passed_on_as_it_comes(suite, monkeypatch):
    monkeypatch.setattr(upstream_answer, "MAX_SCORED_REPLY_BYTES", 100)
    body = completion(f"{'Oh. ' * 50}Tony")
    with through(reply_json(body), suite, "check-and-retry") as (upstream, proxy):
        reply = ask(proxy.url)
        proxy.settle()
    assert reply.content == body and len(upstream.requests) == 1
    assert proxy.tally.counts().unscored == {WhyUnscored.TOO_LONG: 1}


def test_a_retry_that_is_too_long_to_hold_is_discarded(suite, monkeypatch):
    monkeypatch.setattr(upstream_answer, "MAX_SCORED_REPLY_BYTES", 500)
    answers = in_turn(BROKEN, reply_json(completion(f"{'Oh. ' * 500}Tony")))
    with through(answers, suite, "check-and-retry") as (upstream, proxy):
        assert text_of(ask(proxy.url)) == "Fine, sir"
        proxy.settle()
    assert len(upstream.requests) == 2 and not proxy.tally.counts().unscored
    assert proxy.counts.failed_retries == 1


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


def test_a_client_that_leaves_while_its_reply_is_held_cancels_it(suite):
    client_states = []

    def answer(request, writer):
        writer.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        writer.chunk(chunks("Fine")[0])
        client_states.append(writer.client_is_gone())
        return False

    with through(answer, suite, "check-and-retry") as (upstream, proxy):
        with pytest.raises(httpx2.ReadTimeout):
            httpx2.post(f"{proxy.url}/v1/chat/completions", json={"messages": CHAT}, timeout=0.3)
        wait_until(lambda: bool(client_states))
    assert client_states == [True] and len(upstream.requests) == 1


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
