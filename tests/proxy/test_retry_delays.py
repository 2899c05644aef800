"""A retry of `holdfast proxy` waits for a busy server, but never longer than its client."""

import email.utils
import time

import httpx2
import pytest
from checked_replies import BROKEN, BUSY, CHAT, KEPT, REMINDED, ask, busy, stall, text_of
from fake_upstream import client, counts, in_turn, through

from holdfast.proxy import forwarding, retry_attempts, upstream_answer
from holdfast.proxy.reply_scores import WhyUnscored


@pytest.fixture(autouse=True)
def short_delays(monkeypatch):
    monkeypatch.setattr(retry_attempts, "_FIRST_DELAY", 0.001)


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
