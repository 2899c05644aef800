"""Unusual requests and replies pass through `holdfast proxy` as they were sent."""

import gzip
import json

import httpx2
import openai
import pytest
from checked_replies import BROKEN, CHECKED, KEPT, ask, text_of
from fake_upstream import (
    EVERY,
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
)

from holdfast.proxy.chat_edits import EditOutcome
from holdfast.proxy.reply_scores import WhyUnscored

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


# Replies


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
        assert ask(proxy.url).content == body
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
        assert ask(proxy.url, **body).content == b"".join(events)
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


# Requests


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
        assert text_of(ask(proxy.url, messages=messages)) == "Fine, Tony"
        proxy.settle()
    sent = upstream.requests[0].json["messages"]
    assert ("Reminder: Be brief." in str(sent)) is is_edited
    assert sent[0] == messages[0]
    outcome = EditOutcome.EDITED if is_edited else EditOutcome.UNREADABLE
    assert proxy.counts.requests == {outcome: 1}
