"""Refusals, malformed answers, broken connections and silence of a server behind an endpoint."""

import json
import socket
import threading
import time

import fake_upstream
import pytest
from chat_server import CHAT, KEY, completion, failure_of, refusal
from fake_upstream import FakeUpstream, chunks, reply_events, reply_json

import holdfast.models.endpoint
from holdfast.errors import ModelError, RequestFailed
from holdfast.models.requests import Request

# Answers


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((401, f"Incorrect API key provided: {KEY}"), ["refused the API key in OPENAI", "***"]),
        ((404, "The model `tiny` does not exist", "model_not_found"), ["no model 'tiny'"]),
        ((404, {}, '{"detail": "Not Found"}'), ["/v1/chat/completions does not exist", "/v1"]),
        ((405, {}, "Method Not Allowed"), ["/v1/chat/completions does not exist", "405"]),
        ((429, "You exceeded your quota"), ["429: You exceeded", "0 retries", "requests per mi"]),
        ((503, "Loading model"), ["failed (503: Loading model)", "0 retries"]),
        ((500, "x" * 290 + KEY), ["failed (500"]),
        ((500, {"Content-Type": "text/html"}, "<h1>\nbad\n</h1>"), ["<h1> bad </h1>"]),
        ((400, "This model's maximum context length is 64 tokens."), ["context", "fewer rounds"]),
        ((400, "System role not supported"), ["System role", "before the first user message"]),
        ((422, {}, '{"detail": [{"loc": ["seed"], "msg": "extra field"}]}'), ["422", "extra fie"]),
        ((403, "Not in your country"), ["403: Not in your country", "'tiny'"]),
        ((500, "\x1b]0;owned\x07\x1b[31mred\x1b[0m \u202e\x9b2J"), ["]0;owned", "[31mred"]),
        ((500, "x" * 10**6), ["xxx"]),
        ((500, "half \ud83d a pair"), ["half a pair"]),
    ],
)
def test_a_refusal_is_explained(serve, answer, words):
    answer = answer if isinstance(answer[1], dict) else refusal(*answer)
    model, server = serve(lambda body, number: answer)
    message = failure_of(model)
    assert all(word in message for word in [server.url, *words]), message
    assert KEY[:12] not in message


def choice(reason, content):
    message = {} if content is None else {"content": content}
    return json.dumps({"choices": [{"finish_reason": reason, "message": message}]})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<html>Welcome</html>", ["not JSON", "<html>Welcome", "/v1"]),
        ("[1]", ["no choices"]),
        ('{"error": {"message": "upstream is down"}}', ["no choices", "upstream is down"]),
        ('{"choices": []}', ["empty list of choices"]),
        ('{"choices": [7]}', ["finish_reason None"]),
        ('{"choices": [{"finish_reason": "stop"}]}', ["no message"]),
        (choice("stop", ["a"]), ["no text"]),
        (choice(["stop"], "a"), ["finish_reason ['stop']"]),
        (choice("x" * 10**6, None), ["finish_reason 'xxx"]),
        ("[" * 100_000, ["not JSON"]),
        (choice("content_filter", "a"), ["content filter"]),
        (json.dumps({"echo": KEY}), ["no choices", "***"]),
    ],
)
@pytest.mark.parametrize("kind", ["application/json", "text/html"])
def test_a_malformed_answer_is_explained(serve, text, words, kind):
    model, server = serve(lambda body, number: (200, {"Content-Type": kind}, text))
    message = failure_of(model)
    assert all(word in message for word in [server.url, *words]), message


def endpoint_of(upstream):
    return holdfast.connect(f"{upstream.url}/v1", "m", max_retries=0, timeout=10)


def test_an_answer_in_another_encoding_is_not_read_with_letters_lost(monkeypatch):
    """JSON is UTF-8; a reply with replacement characters would be another one."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    body = fake_upstream.completion("Guten Tag").replace(
        b"Guten Tag", "Grüß Gott".encode("latin-1")
    )
    with FakeUpstream(reply_json(body)) as upstream, pytest.raises(ModelError, match="not JSON"):
        endpoint_of(upstream).generate(CHAT)


# Connections


def test_a_connection_that_is_closed_is_named_so(monkeypatch):
    """In place of a cause that has nothing to do with it."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    words = "Server disconnected without sending a response"
    with FakeUpstream(lambda *_: False) as upstream, pytest.raises(ModelError, match=words):
        endpoint_of(upstream).generate(CHAT)


@pytest.mark.parametrize(
    ("events", "words"),
    [
        (chunks("He", finish=None), "broke off in the middle of its answer, after 'He'; try again"),
        ([b"data: {bad\n\n"], "a piece that is not JSON"),
        ([], "gave an empty answer .a stream without an end."),
    ],
)
def test_a_stream_that_is_not_whole_is_explained(monkeypatch, events, words):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    answer = reply_events(*events)
    with FakeUpstream(answer) as upstream, pytest.raises(ModelError, match=words):
        endpoint_of(upstream).stream(Request(CHAT), lambda piece: None)


def test_a_silent_server_times_out(serve):
    released = threading.Event()

    def answer(body, number):
        released.wait(10)
        return completion()

    model, server = serve(answer, timeout=0.3)
    started = time.monotonic()
    message = failure_of(model)
    released.set()
    assert time.monotonic() - started < 5
    assert "within 0.3 s" in message and server.url in message


def test_an_unreachable_server_fails_quickly():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    start = time.monotonic()
    with pytest.raises(ModelError, match=f"Cannot reach {url} .*is running"):
        holdfast.connect(url)
    assert url in failure_of(holdfast.connect(url, "tiny"))
    assert time.monotonic() - start < 6


def test_a_connection_that_is_closed_in_mid_stream_is_not_called_unreachable(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def break_off(_, writer):
        writer.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        writer.chunk(chunks("He", finish=None)[0])
        return False

    words = "closed the connection before its answer"
    with FakeUpstream(break_off) as upstream, pytest.raises(RequestFailed, match=words):
        endpoint_of(upstream).stream(Request(CHAT), lambda piece: None)
