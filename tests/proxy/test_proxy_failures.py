"""The proxy: what it does when its upstream or its client fails."""

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import httpx2
import openai
import pytest
from fake_upstream import (
    EVERY,
    FakeUpstream,
    chunks,
    client,
    completion,
    counts,
    proxied,
    reply_json,
    through,
    user,
    wait_until,
)

from holdfast.proxy.reply_scores import WhyUnscored


@pytest.mark.parametrize("status", ["401 Unauthorized", "429 Too Many Requests", "500 Oops"])
def test_errors_of_the_upstream_pass_through(suite, status):
    body = b'{"error": {"message": "no", "code": "x"}, "z": 1.0}'

    def answer(request, writer):
        writer.whole(status, body, "Retry-After: 7", "Content-Type: application/json")

    with through(answer, suite, EVERY) as (_, proxy):
        reply = httpx2.post(f"{proxy.url}/v1/chat/completions", json={"messages": user("Hi.")})
        assert reply.status_code == int(status[:3]) and reply.content == body
        assert reply.headers["retry-after"] == "7"
        proxy.settle()
        assert proxy.counts.unscored == {WhyUnscored.FAILED: 1} and not proxy.counts.rules


def test_an_upstream_that_closes_in_the_middle_breaks_the_answer_off(suite):
    def answer(request, writer):
        writer.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        writer.chunk(chunks("Fine, ")[0])
        return False

    with through(answer, suite) as (_, proxy):
        stream = client(proxy).chat.completions.create(model="m", messages=user("Hi."), stream=True)
        assert next(stream).choices[0].delta.content == "Fine, "
        with pytest.raises((openai.APIConnectionError, httpx2.RemoteProtocolError)):
            list(stream)
        proxy.settle()
        assert proxy.counts.unscored == {WhyUnscored.FAILED: 1}
        metrics = httpx2.get(f"{proxy.url}/metrics").text
        assert 'holdfast_proxy_upstream_errors_total{kind="broke_off"} 1.0' in metrics


def test_an_upstream_that_closes_before_it_answers_is_a_502(suite):
    with through(lambda request, writer: False, suite) as (_, proxy):
        with pytest.raises(openai.InternalServerError) as excinfo:
            client(proxy).chat.completions.create(model="m", messages=user("Hi."))
        assert excinfo.value.status_code == 502 and excinfo.value.code == "upstream_closed"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"garbage\r\n\r\n", "garbage"),
        (b"HTTP/1.1 200 OK\r\nA Header: 1\r\n\r\n", "header"),
        (b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n", "999"),
    ],
)
def test_an_answer_that_is_not_http_is_a_502(suite, data, message):
    def answer(request, writer):
        writer.raw(data)
        return False

    with through(answer, suite) as (_, proxy):
        reply = httpx2.get(f"{proxy.url}/v1/models")
    error = reply.json()["error"]
    assert reply.status_code == 502 and error["code"] == "upstream_malformed"
    assert message in error["message"]


def test_an_upstream_that_went_away_is_a_502(suite):
    with FakeUpstream(reply_json(completion())) as upstream:
        url = upstream.url
    with proxied(url, suite) as proxy:
        reply = httpx2.post(f"{proxy.url}/v1/chat/completions", json={"messages": user("Hi.")})
        assert reply.status_code == 502
        error = reply.json()["error"]
        assert error["code"] == "upstream_unreachable" and url in error["message"]


def test_a_silent_upstream_is_a_504_and_another_request_is_answered(suite):
    release = threading.Event()

    def answer(request, writer):
        if b"stall" in request.body:
            release.wait(10)
            return False
        return reply_json(completion())(request, writer)

    with through(answer, suite, timeout=0.5) as (_, proxy):
        url = f"{proxy.url}/v1/chat/completions"
        replies = []
        stalling = threading.Thread(
            target=lambda: replies.append(httpx2.post(url, json={"messages": user("stall")}))
        )
        stalling.start()
        assert httpx2.post(url, json={"messages": user("Hi.")}).status_code == 200
        stalling.join()
        release.set()
        assert replies[0].status_code == 504
        assert replies[0].json()["error"]["code"] == "upstream_timeout"


def test_each_failure_of_the_upstream_is_one_line_in_the_log(suite, caplog):
    def answer(request, writer):
        text = request.json["messages"][-1]["content"]
        if text == "refuse":
            return writer.whole("429 Slow", b'{"error": "my secret"}')
        if text == "web page":
            return writer.whole("200 OK", b"<html>my secret", "Content-Type: text/html")
        if text == "malformed":
            writer.raw(b"my secret\r\n\r\n")
        if text in ("stall", "break off"):
            writer.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
            writer.chunk(b"data: secret")
        if text == "stall":
            time.sleep(1)
        return False

    with through(answer, suite, timeout=0.4) as (upstream, proxy):
        url = f"{proxy.url}/v1/chat/completions?key=secret"
        for text in ("refuse", "malformed", "close", "web page"):
            httpx2.post(url, json={"messages": user(text)})
            proxy.settle()
        for text in ("stall", "break off"):
            with pytest.raises(httpx2.RemoteProtocolError):
                httpx2.post(url, json={"messages": user(text)})
        proxy.settle()
    prefix = f"POST {upstream.url}/v1/chat/completions: "
    assert [record.getMessage() for record in caplog.records if "holdfast" in record.name] == [
        prefix + "answered with status 429",
        prefix + "gave an answer that is not HTTP",
        prefix + "closed the connection",
        "The server answered a chat with status 200 and the content type 'text/html'; the client"
        " got the answer as it came.",
        prefix + "silent for longer than --timeout in the middle of its answer",
        prefix + "closed the connection in the middle of its answer",
    ]


@pytest.mark.parametrize("streamed", [True, False])
def test_a_client_that_leaves_cancels_the_request_upstream(suite, streamed):
    client_states = []

    def answer(request, writer):
        if streamed:
            writer.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
            writer.chunk(chunks("Fine")[0])
        client_states.append(writer.client_is_gone())
        return False

    with through(answer, suite) as (_, proxy):
        body = {"messages": user("Hi."), "stream": streamed}
        url = f"{proxy.url}/v1/chat/completions"
        if streamed:
            with httpx2.stream("POST", url, json=body) as reply:
                next(reply.iter_raw())
        else:
            with pytest.raises(httpx2.ReadTimeout):
                httpx2.post(url, json=body, timeout=0.3)
        wait_until(lambda: bool(client_states))
        assert client_states == [True]
        proxy.settle()
        assert proxy.counts.unscored == {WhyUnscored.FAILED: 1}
        if not streamed:
            assert 'status="499"' in httpx2.get(f"{proxy.url}/metrics").text


def answer_by_name(request, writer):
    """Five pieces and "Tony"; to "broken..." the pieces alone, and to "leaves..." endless ones."""
    name = request.json["messages"][-1]["content"].rsplit("\n", 1)[-1]
    writer.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
    for number in itertools.count() if name.startswith("leaves") else range(5):
        writer.chunk(chunks(f"{name}.{number} ", finish=None)[0])
        time.sleep(0.01)
    if name.startswith("broken"):
        return False
    for event in chunks("Tony"):
        writer.chunk(event)
    return writer.raw(b"0\r\n\r\n")


def read_stream(proxy, name):
    """The text of a stream, with "!" where it broke off; of "leaves..." only the first piece."""
    stream = client(proxy).chat.completions.create(model="m", messages=user(name), stream=True)
    text = ""
    try:
        for chunk in stream:
            text += chunk.choices[0].delta.content or ""
            if name.startswith("leaves"):
                stream.close()
                break
    except (openai.APIConnectionError, httpx2.RemoteProtocolError):
        text += "!"
    return text


def test_many_streams_at_once_are_whole(suite):
    """No stream is lost or mixed up while some clients leave and some answers break off."""
    names = [f"{kind}{n}" for n in range(8) for kind in ("whole", "broken", "leaves")]
    with (
        through(answer_by_name, suite, EVERY) as (_, proxy),
        ThreadPoolExecutor(len(names)) as pool,
    ):
        texts = dict(zip(names, pool.map(partial(read_stream, proxy), names), strict=True))
        for name in names:
            five = "".join(f"{name}.{number} " for number in range(5))
            if name.startswith("whole"):
                assert texts[name] == five + "Tony"
            elif name.startswith("broken"):
                assert texts[name] == five + "!"
        assert counts(proxy)["signs", 1] == (8, 8)


def test_the_connections_to_the_upstream_are_closed_when_the_proxy_ends(suite, monkeypatch):
    clients = []
    close = httpx2.AsyncClient.aclose

    async def note_and_close(self):
        clients.append(self)
        await close(self)

    monkeypatch.setattr(httpx2.AsyncClient, "aclose", note_and_close)
    with through(reply_json(completion()), suite) as (_, proxy):
        httpx2.post(f"{proxy.url}/v1/chat/completions", json={"messages": user("Hi.")})
        assert not clients
    assert [http_client.is_closed for http_client in clients] == [True]
