"""The proxy: what comes down from the model's server, and how it is scored."""

import gzip
import json
import threading

import httpx2
import pytest
from fake_upstream import (
    EVERY,
    SYSTEM,
    chunks,
    client,
    completion,
    counts,
    reply_events,
    reply_json,
    response,
    through,
    user,
    wait_until,
)

from holdfast.proxy.reply_scores import WhyUnscored


def test_a_stream_arrives_as_it_comes(suite):
    """The first piece arrives while the upstream still waits to send the second."""
    go_on = threading.Event()
    first, *later = chunks("Fine, ", "Tony")

    def answer(request, writer):
        writer.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        writer.chunk(first)
        assert go_on.wait(10)
        for event in later:
            writer.chunk(event)
        writer.raw(b"0\r\n\r\n")

    with through(answer, suite, EVERY) as (_, proxy):
        stream = client(proxy).chat.completions.create(model="m", messages=user("Hi."), stream=True)
        pieces = [next(stream).choices[0].delta.content]
        assert not proxy.counts.rules
        go_on.set()
        pieces += [chunk.choices[0].delta.content for chunk in stream]
        assert pieces == ["Fine, ", "Tony", None]
        assert counts(proxy) == {("signs", 1): (1, 1), ("short", 1): (1, 1)}


def test_a_client_may_leave_at_the_last_event(suite):
    """OpenAI's client leaves then, before the end of the body."""
    client_states = []

    def answer(request, writer):
        writer.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        for event in chunks("Fine, ", "Tony"):
            writer.chunk(event)
        client_states.append(writer.client_is_gone())
        return False

    with through(answer, suite) as (_, proxy):
        list(client(proxy).chat.completions.create(model="m", messages=user("Hi."), stream=True))
        wait_until(lambda: bool(client_states))
        assert client_states == [True] and counts(proxy)["signs", 1] == (1, 1)


def test_the_bytes_of_a_stream_are_those_of_the_upstream(suite):
    events = [b": keep-alive\n\n", *chunks("a\u2028b", "c"), b"event: x\r\ndata: {}\r\n\r\n"]
    with through(reply_events(*events), suite) as (_, proxy):
        body = {"messages": user("Hi."), "stream": True}
        reply = httpx2.post(f"{proxy.url}/v1/chat/completions", json=body)
        assert reply.content == b"".join(events)
        assert reply.headers["content-type"] == "text/event-stream"


def in_lines(event: bytes) -> bytes:
    """An event whose data has several lines."""
    lines = json.dumps(json.loads(event[6:]), indent=1).encode().split(b"\n")
    return b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"


@pytest.mark.parametrize("media_type", ["text/event-stream", "application/json", "text/plain"])
@pytest.mark.parametrize(
    "change",
    [
        lambda stream: stream,
        lambda stream: stream.replace(b"\n", b"\r\n"),
        lambda stream: stream.replace(b"\n", b"\r"),
        lambda stream: b"\xef\xbb\xbf" + stream,
        lambda stream: b": ping\n\n" + stream.replace(b"data: {", b"event: x\nid: 1\ndata:{"),
        lambda stream: b"".join(in_lines(e) for e in stream.split(b"\n\n")[:-2]),
    ],
)
def test_every_form_of_a_stream_is_read(suite, change, media_type):
    """Line ends, a byte order mark, comments, several lines of data, another Content-Type."""
    body = change(b"".join(chunks("Fine. ", "All’s well. ", "Tony")))

    def answer(request, writer):
        writer.head("200 OK", f"Content-Type: {media_type}", "Transfer-Encoding: chunked")
        for start in range(0, len(body), 11):  # which splits characters
            writer.chunk(body[start : start + 11])
        writer.raw(b"0\r\n\r\n")

    with through(answer, suite) as (_, proxy):
        json_body = {"messages": user("Hi."), "stream": True}
        reply = httpx2.post(f"{proxy.url}/v1/chat/completions", json=json_body)
        assert reply.content == body
        assert counts(proxy) == {("signs", 1): (1, 1), ("short", 1): (0, 1)}


@pytest.mark.parametrize(
    "body",
    [
        b"data: {bad\n\n" + b"".join(chunks("Fine. Tony")),  # a piece of the text may be missing
        b"".join(chunks("Fine", finish="content_filter")),
        completion("Fine", "content_filter"),
    ],
)
def test_a_reply_that_is_not_whole_is_not_scored(suite, body):
    with through(reply_json(body), suite) as (_, proxy):
        httpx2.post(f"{proxy.url}/v1/chat/completions", json={"messages": user("Hi.")})
        proxy.settle()
        assert proxy.counts.unscored == {WhyUnscored.FAILED: 1} and not proxy.counts.rules


@pytest.mark.parametrize(
    ("fields", "is_scored"),
    [
        ({"status": "completed"}, True),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, False),
        ({"status": "in_progress"}, False),  # in the background
        ({"status": "failed"}, False),
        ({"status": "cancelled"}, False),
    ],
)
@pytest.mark.parametrize("method", ["none", "check-and-retry"])
def test_a_response_that_has_not_ended_is_not_scored(suite, fields, is_scored, method):
    body = json.dumps(response("Fine. Sir") | fields).encode()
    with through(reply_json(body), suite, method) as (upstream, proxy):
        request = {"input": "Hi.", "background": True}
        httpx2.post(f"{proxy.url}/v1/responses", json=request)
        assert bool(counts(proxy)) is is_scored
    assert len(upstream.requests) == 1  # a request in the background is not sent again


@pytest.mark.parametrize(
    ("item", "unscored"),
    [
        ({"type": "mcp_list_tools", "server_label": "s", "tools": []}, None),
        ({"type": "mcp_call", "name": "f", "arguments": "{}", "output": "1"}, None),
        ({"type": "web_search_call", "status": "completed"}, None),
        ({"type": "mcp_approval_request", "name": "f", "arguments": "{}"}, WhyUnscored.UNFINISHED),
        ({"type": "computer_call", "call_id": "c"}, WhyUnscored.UNFINISHED),
        ({"type": "shell_call", "call_id": "c"}, WhyUnscored.UNFINISHED),
        ({"type": "apply_patch_call", "call_id": "c"}, WhyUnscored.UNFINISHED),
        (
            {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": ""},
            WhyUnscored.UNFINISHED,
        ),
    ],
)
def test_a_turn_ends_unless_a_call_waits_for_the_client(suite, item, unscored):
    answer = response("Fine, Tony")
    answer["output"].insert(0, item)
    with through(reply_json(json.dumps(answer).encode()), suite) as (_, proxy):
        client(proxy).responses.create(model="m", instructions=SYSTEM, input="Hi.")
        assert counts(proxy) == (
            {("signs", 1): (1, 1), ("short", 1): (1, 1)} if not unscored else {}
        )
        assert proxy.counts.unscored == ({unscored: 1} if unscored else {})


def test_a_shell_that_the_server_runs_ends_no_turn(suite):
    answer = response("Fine, Tony")
    calls = [{"type": name, "call_id": "c"} for name in ("shell_call", "shell_call_output")]
    answer["output"] = [*calls, *answer["output"]]
    with through(reply_json(json.dumps(answer).encode()), suite) as (_, proxy):
        client(proxy).responses.create(model="m", instructions=SYSTEM, input="Hi.")
        assert counts(proxy)["signs", 1] == (1, 1)


def test_items_may_come_in_events_of_their_own(suite):
    """Some servers leave them out of the last event."""
    whole = response("Fine, Tony")
    events = [
        {"type": "response.output_item.done", "output_index": 0, "item": whole["output"][0]},
        {"type": "response.completed", "response": whole | {"output": []}},
    ]
    lines = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events]
    with through(reply_events(*lines), suite) as (_, proxy):
        httpx2.post(f"{proxy.url}/v1/responses", json={"input": "Hi.", "stream": True})
        assert counts(proxy)["signs", 1] == (1, 1)


def test_a_streamed_response_is_scored(suite):
    whole = {"type": "response.completed", "response": response("Yes, Tony"), "sequence_number": 1}
    created = {"type": "response.created", "response": response(""), "sequence_number": 0}
    events = [f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in (created, whole)]
    with through(reply_events(*events), suite) as (_, proxy):
        stream = client(proxy).responses.create(
            model="m", instructions=SYSTEM, input="Hi.", stream=True
        )
        assert [event.type for event in stream] == ["response.created", "response.completed"]
        assert counts(proxy) == {("signs", 1): (1, 1), ("short", 1): (1, 1)}


def test_a_compressed_reply_passes_through_and_is_scored(suite):
    packed = gzip.compress(completion("Fine, Tony"))

    def answer(request, writer):
        writer.whole("200 OK", packed, "Content-Type: application/json", "Content-Encoding: gzip")

    with through(answer, suite) as (upstream, proxy):
        reply = client(proxy).chat.completions.create(model="m", messages=user("Hi."))
        assert reply.choices[0].message.content == "Fine, Tony"
        assert counts(proxy)["signs", 1] == (1, 1)
    assert "gzip" in upstream.requests[0].header("accept-encoding")


def test_every_choice_is_scored(suite):
    answer = json.loads(completion("One, Tony"))
    answer["choices"] += json.loads(completion("Two"))["choices"]
    with through(reply_json(json.dumps(answer).encode()), suite) as (_, proxy):
        client(proxy).chat.completions.create(model="m", messages=user("Hi."), n=2)
        assert counts(proxy)["signs", 1] == (1, 2)


def test_a_turn_is_scored_when_it_ends(suite):
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    dialog = [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "9"},
    ]
    replies = [completion(None, "tool_calls", tool_calls=[call]), completion("Nine, Tony")]

    def answer(request, writer):
        reply_json(replies[len(upstream.requests) - 1])(request, writer)

    with through(answer, suite) as (upstream, proxy):
        create = client(proxy).chat.completions.create
        reply = create(model="m", messages=[{"role": "system", "content": SYSTEM}, dialog[0]])
        assert reply.choices[0].message.tool_calls[0].function.name == "f"
        proxy.settle()
        assert proxy.counts.unscored == {WhyUnscored.UNFINISHED: 1} and not proxy.counts.rules
        create(model="m", messages=[{"role": "system", "content": SYSTEM}, *dialog])
        assert counts(proxy) == {("signs", 1): (1, 1), ("short", 1): (1, 1)}


def test_a_streamed_tool_call_is_no_end_of_a_turn(suite):
    call = {"index": 0, "id": "1", "type": "function", "function": {"name": "f", "arguments": ""}}
    delta = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}
    events = [b"data: " + json.dumps(delta).encode() + b"\n\n", *chunks(finish="tool_calls")]
    with through(reply_events(*events), suite) as (_, proxy):
        body = {"messages": user("Hi."), "stream": True}
        httpx2.post(f"{proxy.url}/v1/chat/completions", json=body)
        proxy.settle()
        assert proxy.counts.unscored == {WhyUnscored.UNFINISHED: 1}


def test_a_stream_of_content_parts_is_scored(suite):
    """Mistral sends such streams; the thoughts in them are no part of the reply."""
    thoughts = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm. So. What now?"}]}
    contents = [[thoughts], [{"type": "text", "text": "Fine, "}], "Tony"]
    choices = [{"index": 0, "delta": {"content": c}, "finish_reason": None} for c in contents]
    events = [b"data: " + json.dumps({"choices": [c]}).encode() + b"\n\n" for c in choices]
    with through(reply_events(*events, *chunks()), suite) as (_, proxy):
        body = {"messages": user("Hi."), "stream": True}
        httpx2.post(f"{proxy.url}/v1/chat/completions", json=body)
        assert counts(proxy) == {("signs", 1): (1, 1), ("short", 1): (1, 1)}


def test_turns_are_counted_and_late_ones_together(suite):
    with through(reply_json(completion("Yes, Tony")), suite) as (_, proxy):
        before = []
        for _ in range(19):
            body = {"messages": user("Go on.", *before)}
            httpx2.post(f"{proxy.url}/v1/chat/completions", json=body)
            before += [{"role": "user", "content": "Go on."}]
            before += [{"role": "assistant", "content": "Yes, Tony"}]
        by_turn = {turn: n for (rule, turn), (_, n) in counts(proxy).items() if rule == "signs"}
        assert by_turn == {**dict.fromkeys(range(1, 17), 1), 17: 3}
