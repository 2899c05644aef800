"""Faults and slow measures on the way cost an edit, a check or a score, but never the request."""

import asyncio
import gzip
import json
import sys
import threading
import time
import types

import httpx2
import openai
import pytest
import yaml
from fake_upstream import (
    EVERY,
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
    user,
    wait_until,
)

import holdfast
from holdfast.drift.suite_file import parse_suite
from holdfast.proxy import forwarding, measure_threads
from holdfast.proxy.chat_edits import EditOutcome
from holdfast.proxy.reply_scores import WhyUnscored
from holdfast.proxy.suite_middleware import SuiteChat
from holdfast.proxy.tally import Tally

BROKEN, KEPT = reply_json(completion("Fine, sir")), reply_json(completion("Fine, Tony"))
CHECKED = "check-and-retry:n=2"


SECRETS = ("a", "secret")


def fail(*_, **__):
    raise KeyError(" ".join(SECRETS))


def ask(proxy, **fields):
    body = {"messages": user("Hi."), **fields}
    return httpx2.post(f"{proxy.url}/v1/chat/completions", json=body)


def text_of(reply):
    return reply.json()["choices"][0]["message"]["content"]


# Faults of ours


def test_a_fault_while_a_request_is_edited_costs_only_the_edit(suite, monkeypatch, caplog):
    monkeypatch.setattr(SuiteChat, "edit", fail)
    with through(KEPT, suite, EVERY) as (upstream, proxy):
        assert text_of(ask(proxy)) == "Fine, Tony"
        proxy.settle()
        metrics = httpx2.get(f"{proxy.url}/metrics").text
    assert upstream.requests[0].json["messages"] == user("Hi.")
    assert proxy.counts.requests == {EditOutcome.FAILED: 1}
    assert 'holdfast_proxy_chat_requests_total{outcome="failed"} 1.0' in metrics
    assert "KeyError" in caplog.text and " ".join(SECRETS) not in caplog.text


@pytest.mark.parametrize("name", ["broken_rules", "edit_again"])
def test_a_fault_while_a_reply_is_checked_costs_only_the_retry(suite, monkeypatch, caplog, name):
    monkeypatch.setattr(SuiteChat, name, fail)
    with through(BROKEN, suite, CHECKED) as (upstream, proxy):
        assert text_of(ask(proxy)) == "Fine, sir"
        assert counts(proxy)["signs", 1] == (0, 1)
    assert len(upstream.requests) == 1
    assert "KeyError" in caplog.text and " ".join(SECRETS) not in caplog.text


@pytest.mark.parametrize("kind", [openai.OpenAI, openai.AsyncOpenAI])
@pytest.mark.parametrize("name", ["edit", "broken_rules", "edit_again", "score"])
def test_a_fault_in_a_wrapped_client_costs_no_reply(suite, monkeypatch, caplog, kind, name):
    monkeypatch.setattr(SuiteChat, name, fail)
    tally = Tally()
    with FakeUpstream(BROKEN) as upstream:
        wrapped = holdfast.wrap(
            kind(base_url=f"{upstream.url}/v1", api_key="k"),
            suite=suite,
            method=EVERY if name == "score" else CHECKED,
            tally=tally,
        )
        reply = wrapped.chat.completions.create(model="m", messages=user("Hi."))
        reply = asyncio.run(reply) if kind is openai.AsyncOpenAI else reply
    assert reply.choices[0].message.content == "Fine, sir" and len(upstream.requests) == 1
    unscored = {WhyUnscored.UNREADABLE: 1} if name == "score" else {}
    assert tally.counts().unscored == unscored
    assert "KeyError" in caplog.text and " ".join(SECRETS) not in caplog.text


def test_a_fault_while_a_reply_is_scored_is_counted(suite, monkeypatch):
    monkeypatch.setattr(SuiteChat, "score", fail)
    with through(KEPT, suite) as (_, proxy):
        assert text_of(ask(proxy)) == "Fine, Tony"
        proxy.settle()
    assert proxy.counts.unscored == {WhyUnscored.UNREADABLE: 1}


def test_a_request_of_a_wrapped_client_that_is_sent_in_parts_is_not_edited(suite):
    tally = Tally()
    body = json.dumps({"model": "m", "messages": user("Hi.")}).encode()
    with FakeUpstream(KEPT) as upstream:
        inner = openai.OpenAI(base_url=f"{upstream.url}/v1", api_key="k", max_retries=0)
        wrapped = holdfast.wrap(inner, suite=suite, method=EVERY, tally=tally)
        reply = wrapped._client.post(f"{upstream.url}/v1/chat/completions", content=iter([body]))
    assert reply.status_code == 200 and upstream.requests[0].body == body
    assert tally.counts().requests == {EditOutcome.UNREADABLE: 1}


# Measures of the user's


def measure_by(function, monkeypatch):
    """Gives the suite of all proxies another rule, "own", whose measure is this function."""
    module = types.ModuleType("own_measure")
    module.measure = function
    monkeypatch.setitem(sys.modules, "own_measure", module)
    cases = yaml.safe_load(SUITE)
    rule = {"id": "own", "text": "Be good.", "measure": {"python": "own_measure.measure"}}
    cases["cases"][0]["rules"].insert(0, rule)
    text = yaml.safe_dump(cases)
    # the measure is not tried out
    suite = parse_suite(text, "bot.yaml", "bot", probed=False, allow_code=True, check=False)
    monkeypatch.setattr("fake_upstream.load_suite", lambda *_, **__: suite)


@pytest.mark.parametrize("method", [EVERY, CHECKED, "reminder:every=1,text=rules,when=broken"])
def test_a_measure_that_fails_is_counted(monkeypatch, method):
    measure_by(fail, monkeypatch)
    dialog = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Yes, Tony"}]
    with through(KEPT, "bot.yaml", method) as (_, proxy):
        assert text_of(ask(proxy, messages=user("More.", *dialog))) == "Fine, Tony"
        assert counts(proxy) == {("signs", 2): (1, 1), ("short", 2): (1, 1)}
        metrics = httpx2.get(f"{proxy.url}/metrics").text
        live = httpx2.get(f"{proxy.url}/holdfast/live.json").json()
    labels = 'case="brief",outcome="measure_failed",rule="own",turn="2"'
    assert f"holdfast_proxy_rules_total{{{labels}}} 1.0" in metrics
    assert live["failed_measures"] == 1


@pytest.fixture
def end_of_slow_measure(monkeypatch):
    """The proxy's suite has a measure that waits for this event."""
    is_over = threading.Event()

    def wait(reply):
        is_over.wait(30)
        return 1.0

    measure_by(wait, monkeypatch)
    yield is_over
    is_over.set()


def test_a_slow_measure_delays_no_reply_for_long(end_of_slow_measure, monkeypatch, caplog):
    monkeypatch.setattr(forwarding, "_MAX_SECONDS", 0.2)
    with through(BROKEN, "bot.yaml", CHECKED) as (upstream, proxy):
        assert text_of(ask(proxy)) == "Fine, sir"
        assert proxy.counts.unchecked == 1
        assert len(upstream.requests) == 1 and "more than 0.2 s" in caplog.text
        monkeypatch.setattr(measure_threads, "_MAX_SECONDS", 0)
        assert text_of(ask(proxy)) == "Fine, sir"
        wait_until(lambda: proxy.counts.unscored == {WhyUnscored.BUSY: 1})
        end_of_slow_measure.set()
        assert counts(proxy)["own", 1] == (1, 1)


def test_a_slow_measure_costs_the_edit(end_of_slow_measure, monkeypatch):
    monkeypatch.setattr(forwarding, "_MAX_SECONDS", 0.2)
    dialog = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Yes?"}]
    spec = "reminder:every=1,text=rules,when=broken"
    with through(KEPT, "bot.yaml", spec) as (upstream, proxy):
        messages = user("More.", *dialog)
        assert text_of(ask(proxy, messages=messages)) == "Fine, Tony"
        assert upstream.requests[0].json["messages"] == messages
        assert proxy.counts.requests == {EditOutcome.FAILED: 1}
        end_of_slow_measure.set()


def test_a_measure_that_never_returns_holds_up_no_end(end_of_slow_measure, monkeypatch, caplog):
    monkeypatch.setattr(measure_threads, "_MAX_SECONDS_AT_END", 0.1)
    with through(KEPT, "bot.yaml") as (_, proxy):
        assert text_of(ask(proxy)) == "Fine, Tony"
        wait_until(lambda: proxy.forwarding.scoring.waiting == 1)
        ending = time.monotonic()
    assert time.monotonic() - ending < 5  # the measure takes 30 s
    assert "Not scored: 1 reply" in caplog.text


def test_a_reply_that_waits_at_the_end_is_scored(suite, monkeypatch):
    begin = threading.Event()
    score = SuiteChat.score

    def wait(*arguments):
        begin.wait(20)
        return score(*arguments)

    monkeypatch.setattr(SuiteChat, "score", wait)
    with through(KEPT, suite) as (_, proxy):
        assert text_of(ask(proxy)) == "Fine, Tony"
        wait_until(lambda: proxy.forwarding.scoring.waiting == 1)
        threading.Timer(0.1, begin.set).start()
    assert {row.cell.rule: row.scored for row in proxy.counts.rules} == {"signs": 1, "short": 1}


# What is passed on unedited, unchecked or unscored is counted


@pytest.mark.parametrize(
    "path",
    [
        "/v1/messages",
        "/v1/completions",
        "/v1beta/models/m:generateContent",
        "/v1beta/models/m:streamGenerateContent",
        "/api/chat",
        "/api/generate",
    ],
)
def test_a_chat_in_another_api_is_counted(suite, path):
    body = (
        b'{"model": "m", "system": "Be brief.", "messages": [{"role": "user", "content": "Hi."}]}'
    )
    with through(reply_json(b'{"ok": true}'), suite, EVERY) as (upstream, proxy):
        assert httpx2.post(proxy.url + path, content=body).json() == {"ok": True}
        metrics = httpx2.get(f"{proxy.url}/metrics").text
    assert upstream.requests[0].body == body
    assert 'holdfast_proxy_chat_requests_total{outcome="other_api"} 1.0' in metrics


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/threads/t1/messages", "/v1/batches"])
def test_a_request_that_is_no_chat_is_not_counted_as_one(suite, path):
    with through(reply_json(b"{}"), suite, EVERY) as (_, proxy):
        httpx2.post(proxy.url + path, content=b"{}")
        httpx2.get(f"{proxy.url}/v1/messages")
        assert not proxy.counts.requests


def test_a_wrapped_client_counts_chats_in_another_api(suite):
    tally = Tally()
    with FakeUpstream(reply_json(b'{"choices": []}')) as upstream:
        inner = openai.OpenAI(base_url=f"{upstream.url}/v1", api_key="k", max_retries=0)
        wrapped = holdfast.wrap(inner, suite=suite, method=EVERY, tally=tally)
        wrapped.completions.create(model="m", prompt="Hi.")
    assert tally.counts().requests == {EditOutcome.OTHER_API: 1}


def test_a_reply_that_is_made_in_the_background_is_counted_as_such(suite):
    answer = reply_json(json.dumps(response("") | {"status": "queued", "output": []}).encode())
    with through(answer, suite, CHECKED) as (_, proxy):
        client(proxy).responses.create(model="m", instructions=SYSTEM, input="Hi.", background=True)
        proxy.settle()
    assert proxy.counts.unscored == {WhyUnscored.BACKGROUND: 1} and proxy.counts.unchecked == 1


def test_a_refused_request_for_a_reply_in_the_background_failed(suite):
    def refuse(request, writer):
        writer.whole("400 No", b'{"error": {"message": "no"}}', "Content-Type: application/json")

    with through(refuse, suite) as (_, proxy):
        httpx2.post(f"{proxy.url}/v1/responses", json={"input": "Hi.", "background": True})
        proxy.settle()
    assert proxy.counts.unscored == {WhyUnscored.FAILED: 1}


def test_a_request_that_refers_to_stored_items_continues_a_stored_dialog(suite):
    items = [{"type": "item_reference", "id": "m1"}, {"role": "user", "content": "More."}]
    with through(reply_json(json.dumps(response()).encode()), suite, EVERY) as (upstream, proxy):
        client(proxy).responses.create(model="m", instructions=SYSTEM, input=items)
        assert proxy.counts.requests == {EditOutcome.STORED: 1}
    assert upstream.requests[0].json["input"] == items


def test_a_chat_without_a_message_of_the_user_is_not_checked(suite):
    """A retry would have no message to put the reminder into."""
    with through(BROKEN, suite, CHECKED) as (upstream, proxy):
        assert text_of(ask(proxy, messages=[{"role": "system", "content": SYSTEM}])) == "Fine, sir"
        proxy.settle()
    assert len(upstream.requests) == 1
    assert (proxy.counts.retries, proxy.counts.unchecked) == (0, 1)


# Compression


@pytest.mark.parametrize(
    ("accepted", "asked"),
    [
        ("br, gzip, deflate", "gzip, deflate"),
        ("gzip;q=0.5, xz", "gzip;q=0.5"),
        ("xz", "identity"),
        ("*", "identity"),
        ("identity", "identity"),
    ],
)
def test_a_chat_asks_only_for_compressions_that_can_be_read_here(suite, accepted, asked):
    """Else a reply would be neither checked nor scored; JavaScript's clients accept Brotli."""
    packed = gzip.compress(completion("Fine, Tony"))

    def answer(request, writer):
        if "gzip" in (request.header("accept-encoding") or ""):
            head = ("Content-Type: application/json", "Content-Encoding: gzip")
            return writer.whole("200 OK", packed, *head)
        return KEPT(request, writer)

    headers = {"Accept-Encoding": accepted}
    with FakeUpstream(answer) as upstream, proxied(upstream.url, suite, CHECKED) as proxy:
        proxy.forwarding._upstream._client.headers["accept-encoding"] = "gzip, deflate"
        url = f"{proxy.url}/v1/chat/completions"
        reply = httpx2.post(url, json={"messages": user("Hi.")}, headers=headers)
        assert text_of(reply) == "Fine, Tony" and counts(proxy)["signs", 1] == (1, 1)
        httpx2.get(f"{proxy.url}/v1/models", headers=headers)
    chat, other = upstream.requests
    assert chat.header("accept-encoding") == asked
    assert other.header("accept-encoding") == accepted


# Unusual requests and replies


def odd(**message):
    """A chat completion with a message as it is."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    return json.dumps({"choices": [choice]}).encode()


@pytest.mark.parametrize("method", ["none", CHECKED])
@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (odd(content=None, refusal="I can't, Tony"), (1, 1)),
        (odd(content="Fine, Tony", reasoning_content="Hm. Sir."), (1, 1)),
        (odd(content="Fine, Tony", reasoning="Hm. Sir."), (1, 1)),
        (odd(content=[{"type": "text", "text": "Fine, Tony"}]), (1, 1)),
        (odd(content="Fine, Tony", annotations=[{"type": "url_citation"}], audio=None), (1, 1)),
        (odd(content="Fine, Tony", tool_calls=None, function_call=None), (1, 1)),
        (odd(content="Fine, Tony", tool_calls=[]), (1, 1)),
        (odd(content=None), WhyUnscored.EMPTY),
        (odd(content="", reasoning_content="Hm. Tony"), WhyUnscored.EMPTY),
        (odd(content=[{"type": "hologram", "data": "x"}]), WhyUnscored.EMPTY),
        (odd(content=7), None),
        (odd(), None),
        (b'{"error": {"message": "overloaded"}}', WhyUnscored.FAILED),
        (b"<html>Bad gateway</html>", WhyUnscored.FAILED),
        (b"", WhyUnscored.FAILED),
        (b"\xff\xfe\x00", WhyUnscored.FAILED),
        (completion("Fine, Tony").replace(b"Fine", b"F\xffne"), (1, 1)),
        (b"[" * 100_000, WhyUnscored.FAILED),
    ],
)
def test_every_reply_arrives_as_it_was_sent(suite, method, body, outcome):
    with through(reply_json(body), suite, method) as (upstream, proxy):
        assert ask(proxy).content == body
        scores = counts(proxy)
    assert len(upstream.requests) == 1
    if isinstance(outcome, tuple):
        assert scores["signs", 1] == outcome
    else:
        assert not scores and sum(proxy.counts.unscored.values()) == 1
        assert outcome is None or proxy.counts.unscored == {outcome: 1}


def event(**fields):
    return b"data: " + json.dumps(fields).encode() + b"\n\n"


def delta(finish=None, **fields):
    return event(choices=[{"index": 0, "delta": fields, "finish_reason": finish}])


@pytest.mark.parametrize("method", ["none", CHECKED])
@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        ([delta(refusal="I can't, "), delta(refusal="Tony"), delta("stop")], (1, 1)),
        ([delta(reasoning_content="Sir."), delta(content="Oh, Tony"), delta("stop")], (1, 1)),
        ([*chunks("Oh, ", "Tony"), event(choices=[], usage={"total_tokens": 9})], (1, 1)),
        ([event(choices=[], prompt_filter_results=[]), *chunks("Oh, Tony")], (1, 1)),
        ([delta(content="Oh, Tony"), event(error={"message": "overloaded"})], WhyUnscored.FAILED),
        ([delta(content="Oh, Tony")], WhyUnscored.FAILED),
    ],
)
def test_every_stream_arrives_as_it_was_sent(suite, method, events, outcome):
    with through(reply_events(*events), suite, method) as (_, proxy):
        body = {"stream": True, "stream_options": {"include_usage": True}, "logprobs": True}
        assert ask(proxy, **body).content == b"".join(events)
        scores = counts(proxy)
    if isinstance(outcome, tuple):
        assert scores["signs", 1] == outcome
    else:
        assert not scores and proxy.counts.unscored == {outcome: 1}


def test_a_stream_of_the_responses_api_that_fails_arrives_as_it_was_sent(suite):
    failed = response("") | {"status": "failed", "error": {"code": "server_error", "message": "no"}}
    events = [event(type="response.created", response=response("")), event(
        type="response.failed", response=failed
    )]  # fmt: skip
    with through(reply_events(*events), suite, CHECKED) as (upstream, proxy):
        body = {"instructions": SYSTEM, "input": "Hi.", "stream": True}
        reply = httpx2.post(f"{proxy.url}/v1/responses", json=body)
        assert reply.content == b"".join(events)
        proxy.settle()
    assert len(upstream.requests) == 1 and proxy.counts.unscored == {WhyUnscored.FAILED: 1}


@pytest.mark.parametrize(
    ("message", "is_edited"),
    [
        ({"role": "user", "content": "Hi."}, True),
        ({"role": "user", "content": []}, True),
        ({"role": "user", "content": ["Hi."]}, True),
        ({"role": "user", "content": [{"type": "hologram", "data": "x"}]}, True),
        ({"role": "user", "content": [{"type": "text", "text": None}]}, True),
        ({"role": "user", "content": [{"type": "text", "text": "\x00\u202e</s>"}]}, True),
        ({"role": "user", "content": {"type": "text", "text": "Hi."}}, False),
        ({"role": "user", "content": 7}, False),
        ({"role": "user"}, False),
    ],
)
def test_unknown_contents_of_a_request_are_kept(suite, message, is_edited):
    messages = [{"role": "system", "content": SYSTEM}, message]
    with through(KEPT, suite, EVERY) as (upstream, proxy):
        assert text_of(ask(proxy, messages=messages)) == "Fine, Tony"
        proxy.settle()
    sent = upstream.requests[0].json["messages"]
    assert ("Reminder: Be brief." in str(sent)) is is_edited
    assert sent[0] == messages[0]
    outcome = EditOutcome.EDITED if is_edited else EditOutcome.UNREADABLE
    assert proxy.counts.requests == {outcome: 1}


def test_errors_in_html_are_those_of_the_server(suite):
    def answer(request, writer):
        writer.whole("503 Later", b"<html>Down</html>", "Content-Type: text/html")

    with (
        through(answer, suite, CHECKED) as (_, proxy),
        pytest.raises(openai.InternalServerError) as excinfo,
    ):
        client(proxy).chat.completions.create(model="m", messages=user("Hi."))
    assert excinfo.value.status_code == 503
    assert excinfo.value.response.text == "<html>Down</html>"


def test_a_checked_reply_with_log_probabilities_is_that_of_one_draw(suite):
    logprobs = {"content": [{"token": "Tony", "logprob": -0.5, "bytes": None, "top_logprobs": []}]}
    answer = json.loads(completion("Fine, Tony"))
    answer["choices"][0]["logprobs"] = logprobs
    answers = in_turn(BROKEN, reply_json(json.dumps(answer).encode()))
    with through(answers, suite, CHECKED) as (_, proxy):
        reply = client(proxy).chat.completions.create(
            model="m", messages=user("Hi."), logprobs=True
        )
    assert reply.choices[0].logprobs.content[0].token == "Tony"
