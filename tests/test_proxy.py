"""`holdfast proxy`: what goes up, what comes down, and what is counted."""

import asyncio
import gzip
import itertools
import json
import socket
import threading
import time

import httpx2
import openai
import pytest
from fake_upstream import (
    SUITE,
    SYSTEM,
    FakeUpstream,
    chunks,
    completion,
    proxied,
    reply_events,
    reply_json,
    response,
    through,
    wait_until,
)

from holdfast.logs import read_logs
from holdfast.proxy import forwarding
from holdfast.proxy.chat_requests import Api, Unreadable, request_of
from holdfast.proxy.reply_scores import Unscored
from holdfast.proxy.request_edits import Outcome
from holdfast.proxy.upstream import Upstream

KEY = "sk-test-0123456789abcdef"
EVERY = 'reminder:every=1,text="Be brief."'


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "bot.yaml"
    path.write_text(SUITE)
    return str(path)


def client(proxy, **options) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{proxy.url}/v1", api_key=KEY, max_retries=0, **options)


def user(text, *before):
    return [{"role": "system", "content": SYSTEM}, *before, {"role": "user", "content": text}]


def kept(proxy):
    """How many replies kept each rule at each turn, of how many."""
    proxy.settle()
    return {(row.cell.rule, row.cell.turn): (row.kept, row.scored) for row in proxy.counts.rules}


# What goes up


def test_a_chat_is_edited_and_its_reply_scored(suite):
    with through(reply_json(completion("Fine. Tony")), suite, EVERY) as (upstream, proxy):
        reply = client(proxy).chat.completions.create(model="m", messages=user("Hello."))
        assert reply.choices[0].message.content == "Fine. Tony"
        assert kept(proxy) == {("signs", 1): (1, 1), ("short", 1): (0, 1)}
    (seen,) = upstream.seen
    assert seen.line == "POST /v1/chat/completions HTTP/1.1"
    assert seen.header("authorization") == f"Bearer {KEY}"
    assert seen.json["messages"] == user("[Reminder: Be brief.]\n\nHello.")
    assert proxy.counts.reminders == 1 and proxy.counts.added_tokens == 6
    assert proxy.counts.requests == {Outcome.EDITED: 1}


def test_a_chat_that_is_too_long_to_read_goes_up_as_it_comes(suite, monkeypatch):
    monkeypatch.setattr(forwarding, "_LONGEST_CHAT", 1000)
    body = json.dumps({"model": "m", "messages": user("word " * 50_000)}).encode()
    with through(reply_json(completion("Fine.")), suite, EVERY) as (upstream, proxy):
        answer = httpx2.post(f"{proxy.url}/v1/chat/completions", content=body)
        assert answer.json()["choices"][0]["message"]["content"] == "Fine."
        assert not kept(proxy) and proxy.counts.requests == {Outcome.UNREADABLE: 1}
    assert upstream.seen[0].body == body


def test_a_body_with_nothing_to_add_is_forwarded_byte_for_byte(suite):
    body = (
        b'{ "messages":[ {"role":"user", "content":"caf\\u00e9 \xc3\xa9"} ],"temperature":1.50E0}'
    )
    spec = 'reminder:every=2,text="Be brief."'
    with through(reply_json(completion()), suite, spec) as (upstream, proxy):
        httpx2.post(f"{proxy.url}/v1/chat/completions", content=body)
        assert proxy.counts.requests == {Outcome.UNCHANGED: 1}
    assert upstream.seen[0].body == body


def test_an_edit_adds_its_text_and_changes_no_other_byte(suite):
    """Parts, images, calls, numbers, spaces and escapes."""
    body = (
        b'{"messages" : [{"role":"system","content":[{"type":"text","text":"A \\u00e9 \\/ B"}]},\n'
        b' {"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function",'
        b'"function":{"name":"f","arguments":"{\\"a\\": 1.0}"}}]},\n'
        b' {"role":"tool","tool_call_id":"1","content":"9"},'
        b' {"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}},'
        b'{"text":"Look: \xe2\x80\xa8 [1]","type":"text"},{"type":"text","text":"More."}],'
        b'"role":"user"} ],"temperature":1.50E0,"tools":[]}'
    )
    with through(reply_json(completion()), suite, EVERY) as (upstream, proxy):
        httpx2.post(f"{proxy.url}/v1/chat/completions", content=body)
    added = b"[Reminder: Be brief.]\\n\\n"
    assert upstream.seen[0].body == body.replace(b'"Look:', b'"' + added + b"Look:")
    assert upstream.seen[0].header("content-length") == str(len(body) + len(added))


def test_a_message_without_text_gets_a_part_of_its_own(suite):
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    chat = [{"role": "user", "content": [image]}]
    with through(reply_json(completion()), suite, EVERY) as (upstream, proxy):
        client(proxy).chat.completions.create(model="m", messages=chat)
    content = upstream.seen[0].json["messages"][0]["content"]
    assert content == [{"type": "text", "text": "[Reminder: Be brief.]"}, image]


def test_a_message_whose_content_is_null_is_an_empty_text(suite):
    earlier = [{"role": "user", "content": None}, {"role": "assistant", "content": "Oh. Tony"}]
    with through(reply_json(completion()), suite, EVERY) as (upstream, proxy):
        for messages in (user(None), user("Hi.", *earlier)):
            httpx2.post(f"{proxy.url}/v1/chat/completions", json={"messages": messages})
            proxy.settle()
        assert proxy.tally.counts().requests == {Outcome.EDITED: 2}
        assert kept(proxy) == {
            ("signs", 1): (1, 1),
            ("short", 1): (0, 1),
            ("signs", 2): (1, 1),
            ("short", 2): (0, 1),
        }
    first, second = (seen.json["messages"] for seen in upstream.seen)
    assert first == user("[Reminder: Be brief.]")
    assert second[-1]["content"] == "[Reminder: Be brief.]\n\nHi."


def test_a_reminder_after_a_broken_rule_says_that_rule(suite):
    spec = "reminder:every=1,text=rules,when=broken"
    good = {"role": "assistant", "content": "Here you are, Tony"}
    bad = {"role": "assistant", "content": "Here you are."}
    with through(reply_json(completion()), suite, spec) as (upstream, proxy):
        create = client(proxy).chat.completions.create
        create(model="m", messages=user("More.", {"role": "user", "content": "Hi."}, good))
        create(model="m", messages=user("More.", {"role": "user", "content": "Hi."}, bad))
        assert proxy.counts.requests == {Outcome.UNCHANGED: 1, Outcome.EDITED: 1}
    assert upstream.seen[0].json["messages"][-1]["content"] == "More."
    assert upstream.seen[1].json["messages"][-1]["content"] == "[Reminder: Sign as Tony.]\n\nMore."


def test_an_exchange_that_broke_a_rule_is_left_out(suite):
    """With its calls of tools, and every other byte as it was."""
    call = (
        b'{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}'
    )
    broken = (
        b'{"role": "user", "content": "Hi."}, '
        + call
        + b""" ,
      {"role":"tool","tool_call_id":"1","content":"9"},{"role":"assistant","content":"No."},
    """
    )
    good = b'{"role":"user","content":"And?"},{"role":"assistant","content":"Yes, Tony"} , '
    body = b'{"messages": [ %s%s{"role":"user","content":"More."}], "temperature":1.50E0}'
    with through(reply_json(completion()), suite, "repair") as (upstream, proxy):
        httpx2.post(f"{proxy.url}/v1/chat/completions", content=body % (broken, good))
        assert proxy.counts.left_out == 4 and proxy.counts.reminders == 0
        assert kept(proxy)["signs", 3] == (1, 1)  # turns are those of the dialog as it was
    assert upstream.seen[0].body == body % (b"", good)


def test_what_is_no_turn_stays_in_an_exchange_that_is_left_out(suite):
    """Such as a summary of the dialog before, which nothing else holds."""
    items = [
        {"role": "user", "content": "Hi."},
        {"type": "reasoning", "id": "r", "summary": []},
        {"role": "assistant", "content": "No."},
        {"type": "compaction", "id": "c", "encrypted_content": "x"},
        {"role": "developer", "content": "From now on, say when."},
        {"role": "user", "content": "More."},
    ]
    answer = reply_json(json.dumps(response()).encode())
    with through(answer, suite, "repair") as (upstream, proxy):
        client(proxy).responses.create(model="m", instructions=SYSTEM, input=items)
    assert upstream.seen[0].json["input"] == items[3:]


def test_a_broken_reply_is_marked_in_the_next_message(suite):
    dialog = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
    with through(reply_json(completion()), suite, "repair:by=mark") as (upstream, proxy):
        client(proxy).chat.completions.create(model="m", messages=user("More.", *dialog))
    note = "[Your last reply broke this rule: Sign as Tony.]"
    assert upstream.seen[0].json["messages"][-1]["content"] == f"{note}\n\nMore."


def test_repeated_reminders_are_counted_once_and_their_tokens_always(suite):
    with through(reply_json(completion()), suite, EVERY) as (_, proxy):
        create = client(proxy).chat.completions.create
        create(model="m", messages=user("Hi."))
        dialog = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Yes?"}]
        create(model="m", messages=user("More.", *dialog))
        assert proxy.counts.reminders == 2
        assert proxy.counts.added_tokens == 6 + 12


@pytest.mark.parametrize("name", ["instructions", "developer"])
@pytest.mark.parametrize("form", ["text", "list"])
def test_the_responses_api(suite, name, form):
    with through(reply_json(json.dumps(response()).encode()), suite, EVERY) as (upstream, proxy):
        content = "Hello." if form == "text" else [{"role": "user", "content": "Hello."}]
        fields = {"input": content, "instructions": SYSTEM}
        if name == "developer" and form == "list":
            fields = {"input": [{"role": "developer", "content": SYSTEM}, *content]}
        reply = client(proxy).responses.create(model="m", **fields)
        assert reply.output_text == "Fine. Tony"
        assert kept(proxy)["signs", 1] == (1, 1)
    sent = upstream.seen[0].json["input"]
    assert (sent if form == "text" else sent[-1]["content"]) == "[Reminder: Be brief.]\n\nHello."
    assert "Reminder" not in str(upstream.seen[0].json.get("instructions"))


@pytest.mark.parametrize(
    ("left_out", "why"), [(0, "the system prompt"), (1, "the message that is to be answered")]
)
def test_a_method_may_leave_out_neither_instructions_nor_the_question(left_out, why):
    request = request_of(Api.RESPONSES, {"instructions": SYSTEM, "input": "Hello."})
    edited = [message for n, message in enumerate(request.chat) if n != left_out]
    with pytest.raises(Unreadable, match=f"a method leaves out {why}"):
        request.changes_to(edited)


def test_items_of_the_responses_api_survive(suite):
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "Sum?"}]},
        {"type": "reasoning", "id": "rs1", "summary": []},
        {"type": "function_call", "call_id": "1", "name": "add", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "1", "output": "3"},
    ]
    with through(reply_json(json.dumps(response()).encode()), suite, EVERY) as (upstream, proxy):
        client(proxy).responses.create(model="m", instructions=SYSTEM, input=items)
        assert kept(proxy)["signs", 1] == (1, 1)
        assert proxy.counts.reminders == 0  # it was sent with the user's message
    sent = upstream.seen[0].json["input"]
    assert sent[1:] == items[1:] and sent[0]["content"][0]["text"].endswith("\n\nSum?")


def test_a_stored_dialog_passes_through_and_is_counted(suite):
    with through(reply_json(json.dumps(response()).encode()), suite, EVERY) as (upstream, proxy):
        client(proxy).responses.create(model="m", input="Hi.", previous_response_id="r0")
        proxy.settle()
        assert proxy.counts.requests == {Outcome.STORED: 1} and not proxy.counts.rules
    assert upstream.seen[0].json["input"] == "Hi."


@pytest.mark.parametrize(
    ("method", "path", "body", "headers"),
    [
        ("GET", "/v1/models?limit=2&after=%2Fx", b"", {}),
        ("POST", "/v1/embeddings", b'{"input": "a"}', {}),
        ("POST", "/v1/files", b"x" * 300_000, {"content-type": "multipart/form-data; boundary=b"}),
        ("DELETE", "/v1/files/a%20b", b"", {}),
        ("PATCH", "/health", b"", {"x-mine": "1"}),
        ("POST", "/v1/chat/completions", b"{not json", {}),
        ("POST", "/v1/chat/completions", b"[1]", {}),
        ("POST", "/v1/chat/completions", b'{"messages": 3}', {}),
        ("POST", "/v1/chat/completions", b"\xff\xfe", {}),
        ("POST", "/v1/responses", b'{"input": 3}', {}),
        ("POST", "/v1/responses", gzip.compress(b"{}", mtime=0), {"content-encoding": "gzip"}),
    ],
)
def test_what_is_not_known_passes_through(suite, method, path, body, headers):
    answer = reply_json(b'{"ok": true}')
    with through(answer, suite, EVERY) as (upstream, proxy):
        reply = httpx2.request(method, proxy.url + path, content=body or None, headers=headers)
        assert reply.json() == {"ok": True}
    (seen,) = upstream.seen
    assert seen.line == f"{method} {path} HTTP/1.1" and seen.body == body
    assert headers.items() <= dict(seen.headers).items()


def test_an_upload_in_chunks_passes_through(suite):
    with through(reply_json(b"{}"), suite) as (upstream, proxy):
        parts = iter([b"one", b"two"])
        assert httpx2.post(f"{proxy.url}/v1/files", content=parts).status_code == 200
    assert upstream.seen[0].body == b"onetwo"
    assert upstream.seen[0].header("transfer-encoding") == "chunked"


@pytest.mark.parametrize(
    ("base", "path", "expected"),
    [
        ("", "/v1/models", "/v1/models"),
        ("/v1", "/v1/models", "/v1/models"),
        ("/v1/", "/v1/models", "/v1/models"),
        ("/v1beta/openai/", "/v1/models", "/v1beta/openai/models"),
        ("/api/v1", "/v1/models", "/api/v1/models"),
        ("/api/v1", "/health", "/health"),
        ("/v1", "/v10/models", "/v10/models"),
        ("/openai/bot?api-version=2", "/v1/models", "/openai/bot/models?api-version=2"),
        ("/v1?a=%2F", "/v1/models?limit=1", "/v1/models?a=%2F&limit=1"),
    ],
)
def test_the_path_of_the_base_url_stands_for_v1(suite, base, path, expected):
    with FakeUpstream(reply_json(b"{}")) as upstream, proxied(upstream.url + base, suite) as proxy:
        httpx2.get(proxy.url + path)
    assert upstream.seen[0].line == f"GET {expected} HTTP/1.1"


def test_a_web_socket_is_refused(suite):
    headers = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
    with through(reply_json(b"{}"), suite) as (upstream, proxy):
        reply = httpx2.get(f"{proxy.url}/v1/realtime?model=m", headers=headers)
    assert reply.status_code == 501 and reply.json()["error"]["code"] == "websocket"
    assert not upstream.seen


def test_a_path_that_cannot_be_forwarded_is_refused(suite):
    with through(reply_json(b"{}"), suite) as (upstream, proxy):
        host, _, port = proxy.url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(f"OPTIONS * HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert connection.recv(1000).startswith(b"HTTP/1.1 400 ")
    assert not upstream.seen


def test_a_server_on_this_machine_is_reached_past_an_http_proxy(suite, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # where nothing listens
    with through(reply_json(b"{}"), suite) as (_, proxy):
        direct = httpx2.Client(trust_env=False)
        assert direct.get(f"{proxy.url}/v1/models").status_code == 200
        Upstream(proxy.url, 10).check()


def test_headers_pass_in_both_directions(suite):
    def answer(seen, writer):
        headers = ["X-Request-Id: 7", "x-ratelimit-remaining: 3", "Set-Cookie: a=1"]
        headers += ["Set-Cookie: b=2", "Date: Thu, 01 Jan 2026 00:00:00 GMT", "Server: mine"]
        writer.whole("200 OK", b"{}", "Keep-Alive: timeout=5", *headers)

    with through(answer, suite) as (upstream, proxy):
        sent = {"OpenAI-Organization": "o", "Cookie": "c=3", "Connection": "keep-alive, x-hop"}
        reply = httpx2.get(f"{proxy.url}/v1/models", headers=sent)
        again = httpx2.get(f"{proxy.url}/v1/models")
    assert reply.headers.get_list("set-cookie") == ["a=1", "b=2"]
    assert reply.headers.get_list("date") == ["Thu, 01 Jan 2026 00:00:00 GMT"]
    assert reply.headers["server"] == "mine" and reply.headers["x-request-id"] == "7"
    assert "keep-alive" not in reply.headers
    first, second = upstream.seen
    assert first.header("openai-organization") == "o" and first.header("cookie") == "c=3"
    assert first.header("host") == upstream.url.removeprefix("http://")
    assert second.header("cookie") is None and again.status_code == 200


# What comes down


def test_a_stream_arrives_as_it_comes(suite):
    """The first piece arrives while the upstream still waits to send the second."""
    go_on = threading.Event()
    first, *rest = chunks("Fine, ", "Tony")

    def answer(seen, writer):
        writer.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        writer.chunk(first)
        assert go_on.wait(10)
        for event in rest:
            writer.chunk(event)
        writer.raw(b"0\r\n\r\n")

    with through(answer, suite, EVERY) as (_, proxy):
        stream = client(proxy).chat.completions.create(model="m", messages=user("Hi."), stream=True)
        pieces = [next(stream).choices[0].delta.content]
        assert not proxy.counts.rules
        go_on.set()
        pieces += [chunk.choices[0].delta.content for chunk in stream]
        assert pieces == ["Fine, ", "Tony", None]
        assert kept(proxy) == {("signs", 1): (1, 1), ("short", 1): (1, 1)}


def test_a_client_may_leave_at_the_last_event(suite):
    """As OpenAI's does, before the end of the body."""
    gone = []

    def answer(seen, writer):
        writer.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        for event in chunks("Fine, ", "Tony"):
            writer.chunk(event)
        gone.append(writer.client_is_gone())
        return False

    with through(answer, suite) as (_, proxy):
        list(client(proxy).chat.completions.create(model="m", messages=user("Hi."), stream=True))
        wait_until(lambda: bool(gone))
        assert gone == [True] and kept(proxy)["signs", 1] == (1, 1)


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

    def answer(seen, writer):
        writer.head("200 OK", f"Content-Type: {media_type}", "Transfer-Encoding: chunked")
        for start in range(0, len(body), 11):  # which splits characters
            writer.chunk(body[start : start + 11])
        writer.raw(b"0\r\n\r\n")

    with through(answer, suite) as (_, proxy):
        json_body = {"messages": user("Hi."), "stream": True}
        reply = httpx2.post(f"{proxy.url}/v1/chat/completions", json=json_body)
        assert reply.content == body
        assert kept(proxy) == {("signs", 1): (1, 1), ("short", 1): (0, 1)}


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
        assert proxy.counts.unscored == {Unscored.FAILED: 1} and not proxy.counts.rules


@pytest.mark.parametrize(
    ("more", "is_scored"),
    [
        ({"status": "completed"}, True),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, False),
        ({"status": "in_progress"}, False),  # in the background
        ({"status": "failed"}, False),
        ({"status": "cancelled"}, False),
    ],
)
@pytest.mark.parametrize("method", ["none", "check-and-retry"])
def test_a_response_that_has_not_ended_is_not_scored(suite, more, is_scored, method):
    body = json.dumps(response("Fine. Sir") | more).encode()
    with through(reply_json(body), suite, method) as (upstream, proxy):
        request = {"input": "Hi.", "background": True}
        httpx2.post(f"{proxy.url}/v1/responses", json=request)
        assert bool(kept(proxy)) is is_scored
    assert len(upstream.seen) == 1  # a request in the background is not sent again


@pytest.mark.parametrize(
    ("item", "unscored"),
    [
        ({"type": "mcp_list_tools", "server_label": "s", "tools": []}, None),
        ({"type": "mcp_call", "name": "f", "arguments": "{}", "output": "1"}, None),
        ({"type": "web_search_call", "status": "completed"}, None),
        ({"type": "mcp_approval_request", "name": "f", "arguments": "{}"}, Unscored.UNFINISHED),
        ({"type": "computer_call", "call_id": "c"}, Unscored.UNFINISHED),
        ({"type": "shell_call", "call_id": "c"}, Unscored.UNFINISHED),
        ({"type": "apply_patch_call", "call_id": "c"}, Unscored.UNFINISHED),
        (
            {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": ""},
            Unscored.UNFINISHED,
        ),
    ],
)
def test_a_turn_ends_unless_a_call_waits_for_the_client(suite, item, unscored):
    answer = response("Fine, Tony")
    answer["output"].insert(0, item)
    with through(reply_json(json.dumps(answer).encode()), suite) as (_, proxy):
        client(proxy).responses.create(model="m", instructions=SYSTEM, input="Hi.")
        assert kept(proxy) == ({("signs", 1): (1, 1), ("short", 1): (1, 1)} if not unscored else {})
        assert proxy.counts.unscored == ({unscored: 1} if unscored else {})


def test_a_shell_that_the_server_runs_ends_no_turn(suite):
    answer = response("Fine, Tony")
    calls = [{"type": name, "call_id": "c"} for name in ("shell_call", "shell_call_output")]
    answer["output"] = [*calls, *answer["output"]]
    with through(reply_json(json.dumps(answer).encode()), suite) as (_, proxy):
        client(proxy).responses.create(model="m", instructions=SYSTEM, input="Hi.")
        assert kept(proxy)["signs", 1] == (1, 1)


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
        assert kept(proxy)["signs", 1] == (1, 1)


def test_a_streamed_response_is_scored(suite):
    whole = {"type": "response.completed", "response": response("Yes, Tony"), "sequence_number": 1}
    created = {"type": "response.created", "response": response(""), "sequence_number": 0}
    events = [f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in (created, whole)]
    with through(reply_events(*events), suite) as (_, proxy):
        stream = client(proxy).responses.create(
            model="m", instructions=SYSTEM, input="Hi.", stream=True
        )
        assert [event.type for event in stream] == ["response.created", "response.completed"]
        assert kept(proxy) == {("signs", 1): (1, 1), ("short", 1): (1, 1)}


def test_a_compressed_reply_passes_through_and_is_scored(suite):
    packed = gzip.compress(completion("Fine, Tony"))

    def answer(seen, writer):
        writer.whole("200 OK", packed, "Content-Type: application/json", "Content-Encoding: gzip")

    with through(answer, suite) as (upstream, proxy):
        reply = client(proxy).chat.completions.create(model="m", messages=user("Hi."))
        assert reply.choices[0].message.content == "Fine, Tony"
        assert kept(proxy)["signs", 1] == (1, 1)
    assert "gzip" in upstream.seen[0].header("accept-encoding")


def test_every_choice_is_scored(suite):
    answer = json.loads(completion("One, Tony"))
    answer["choices"] += json.loads(completion("Two"))["choices"]
    with through(reply_json(json.dumps(answer).encode()), suite) as (_, proxy):
        client(proxy).chat.completions.create(model="m", messages=user("Hi."), n=2)
        assert kept(proxy)["signs", 1] == (1, 2)


def test_a_turn_is_scored_when_it_ends(suite):
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    dialog = [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "9"},
    ]
    replies = [completion(None, "tool_calls", tool_calls=[call]), completion("Nine, Tony")]
    answer = lambda seen, writer: reply_json(replies[len(upstream.seen) - 1])(seen, writer)  # noqa: E731
    with through(answer, suite) as (upstream, proxy):
        create = client(proxy).chat.completions.create
        reply = create(model="m", messages=[{"role": "system", "content": SYSTEM}, dialog[0]])
        assert reply.choices[0].message.tool_calls[0].function.name == "f"
        proxy.settle()
        assert proxy.counts.unscored == {Unscored.UNFINISHED: 1} and not proxy.counts.rules
        create(model="m", messages=[{"role": "system", "content": SYSTEM}, *dialog])
        assert kept(proxy) == {("signs", 1): (1, 1), ("short", 1): (1, 1)}


def test_a_streamed_tool_call_is_no_end_of_a_turn(suite):
    call = {"index": 0, "id": "1", "type": "function", "function": {"name": "f", "arguments": ""}}
    delta = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}
    events = [b"data: " + json.dumps(delta).encode() + b"\n\n", *chunks(finish="tool_calls")]
    with through(reply_events(*events), suite) as (_, proxy):
        body = {"messages": user("Hi."), "stream": True}
        httpx2.post(f"{proxy.url}/v1/chat/completions", json=body)
        proxy.settle()
        assert proxy.counts.unscored == {Unscored.UNFINISHED: 1}


def test_turns_are_counted_and_late_ones_together(suite):
    with through(reply_json(completion("Yes, Tony")), suite) as (_, proxy):
        before = []
        for _ in range(19):
            body = {"messages": user("Go on.", *before)}
            httpx2.post(f"{proxy.url}/v1/chat/completions", json=body)
            before += [{"role": "user", "content": "Go on."}]
            before += [{"role": "assistant", "content": "Yes, Tony"}]
        counted = {turn: n for (rule, turn), (_, n) in kept(proxy).items() if rule == "signs"}
        assert counted == {**dict.fromkeys(range(1, 17), 1), 17: 3}


# When something fails


@pytest.mark.parametrize("status", ["401 Unauthorized", "429 Too Many Requests", "500 Oops"])
def test_errors_of_the_upstream_pass_through(suite, status):
    body = b'{"error": {"message": "no", "code": "x"}, "z": 1.0}'

    def answer(seen, writer):
        writer.whole(status, body, "Retry-After: 7", "Content-Type: application/json")

    with through(answer, suite, EVERY) as (_, proxy):
        reply = httpx2.post(f"{proxy.url}/v1/chat/completions", json={"messages": user("Hi.")})
        assert reply.status_code == int(status[:3]) and reply.content == body
        assert reply.headers["retry-after"] == "7"
        proxy.settle()
        assert proxy.counts.unscored == {Unscored.FAILED: 1} and not proxy.counts.rules


def test_an_upstream_that_closes_in_the_middle_breaks_the_answer_off(suite):
    def answer(seen, writer):
        writer.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        writer.chunk(chunks("Fine, ")[0])
        return False

    with through(answer, suite) as (_, proxy):
        stream = client(proxy).chat.completions.create(model="m", messages=user("Hi."), stream=True)
        assert next(stream).choices[0].delta.content == "Fine, "
        with pytest.raises((openai.APIConnectionError, httpx2.RemoteProtocolError)):
            list(stream)
        proxy.settle()
        assert proxy.counts.unscored == {Unscored.FAILED: 1}
        metrics = httpx2.get(f"{proxy.url}/metrics").text
        assert 'holdfast_proxy_upstream_errors_total{kind="broke_off"} 1.0' in metrics


def test_an_upstream_that_closes_before_it_answers_is_a_502(suite):
    with through(lambda seen, writer: False, suite) as (_, proxy):
        with pytest.raises(openai.InternalServerError) as raised:
            client(proxy).chat.completions.create(model="m", messages=user("Hi."))
        assert raised.value.status_code == 502 and raised.value.code == "upstream_closed"


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"garbage\r\n\r\n", "garbage"),
        (b"HTTP/1.1 200 OK\r\nA Header: 1\r\n\r\n", "header"),
        (b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n", "999"),
    ],
)
def test_an_answer_that_is_not_http_is_a_502(suite, data, named):
    def answer(seen, writer):
        writer.raw(data)
        return False

    with through(answer, suite) as (_, proxy):
        reply = httpx2.get(f"{proxy.url}/v1/models")
    error = reply.json()["error"]
    assert reply.status_code == 502 and error["code"] == "upstream_malformed"
    assert named in error["message"]


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

    def answer(seen, writer):
        if b"stall" in seen.body:
            release.wait(10)
            return False
        return reply_json(completion())(seen, writer)

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
    def answer(seen, writer):
        text = seen.json["messages"][-1]["content"]
        if text == "refuse":
            return writer.whole("429 Slow", b'{"error": "my secret"}')
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
        for text in ("refuse", "malformed", "close"):
            httpx2.post(url, json={"messages": user(text)})
        for text in ("stall", "break off"):
            with pytest.raises(httpx2.RemoteProtocolError):
                httpx2.post(url, json={"messages": user(text)})
        proxy.settle()
    asked = f"POST {upstream.url}/v1/chat/completions: "
    assert [record.getMessage() for record in caplog.records if "holdfast" in record.name] == [
        asked + "answered with status 429",
        asked + "gave an answer that is not HTTP",
        asked + "closed the connection",
        asked + "silent for longer than --timeout in the middle of its answer",
        asked + "closed the connection in the middle of its answer",
    ]


@pytest.mark.parametrize("streamed", [True, False])
def test_a_client_that_leaves_cancels_the_request_upstream(suite, streamed):
    gone = []

    def answer(seen, writer):
        if streamed:
            writer.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
            writer.chunk(chunks("Fine")[0])
        gone.append(writer.client_is_gone())
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
        wait_until(lambda: bool(gone))
        assert gone == [True]
        proxy.settle()
        assert proxy.counts.unscored == {Unscored.FAILED: 1}
        if not streamed:
            assert 'status="499"' in httpx2.get(f"{proxy.url}/metrics").text


def test_many_streams_at_once_are_whole(suite):
    """None is lost or mixed up while some clients leave and some answers break off."""

    def answer(seen, writer):
        name = seen.json["messages"][-1]["content"].rsplit("\n", 1)[-1]
        writer.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        for number in itertools.count() if name.startswith("leaves") else range(5):
            writer.chunk(chunks(f"{name}.{number} ", finish=None)[0])
            time.sleep(0.01)
        if name.startswith("broken"):
            return False
        for event in chunks("Tony"):
            writer.chunk(event)
        return writer.raw(b"0\r\n\r\n")

    with through(answer, suite, EVERY) as (_, proxy):
        texts = {}

        def ask(name):
            stream = client(proxy).chat.completions.create(
                model="m", messages=user(name), stream=True
            )
            texts[name] = ""
            try:
                for chunk in stream:
                    texts[name] += chunk.choices[0].delta.content or ""
                    if name.startswith("leaves"):
                        return stream.close()
            except (openai.APIConnectionError, httpx2.RemoteProtocolError):
                texts[name] += "!"

        names = [f"{kind}{n}" for n in range(8) for kind in ("whole", "broken", "leaves")]
        threads = [threading.Thread(target=ask, args=(name,)) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for name in names:
            five = "".join(f"{name}.{number} " for number in range(5))
            if name.startswith("whole"):
                assert texts[name] == five + "Tony"
            elif name.startswith("broken"):
                assert texts[name] == five + "!"
        assert kept(proxy)["signs", 1] == (8, 8)


# What is kept and shown


def test_no_text_and_no_key_is_logged(suite, caplog, capfd):
    with caplog.at_level("DEBUG", "holdfast"), FakeUpstream(reply_json(completion())) as upstream:
        with proxied(upstream.url, suite, EVERY) as proxy:
            client(proxy).chat.completions.create(model="m", messages=user("A secret."))
            proxy.settle()
            shown = httpx2.get(f"{proxy.url}/metrics").text
            shown += httpx2.get(f"{proxy.url}/holdfast/live.json").text
        upstream.answer = lambda seen, writer: False
        with proxied(upstream.url, suite, EVERY) as proxy, pytest.raises(openai.APIError):
            client(proxy).chat.completions.create(model="m", messages=user("A secret."))
    printed = capfd.readouterr()
    for text in (shown, caplog.text, printed.out, printed.err):
        assert KEY not in text and "secret" not in text


def test_a_log_of_chats_is_one_that_logs_reads(suite, tmp_path):
    path = tmp_path / "chats.jsonl"
    with through(reply_json(completion("Fine, Tony")), suite, EVERY, log=path) as (upstream, proxy):
        client(proxy).chat.completions.create(model="m", messages=user("Hi."))
        proxy.settle()
        upstream.answer = reply_json(json.dumps(response("Yes, Tony")).encode())
        client(proxy).responses.create(model="m", instructions=SYSTEM, input="Hi.")
        proxy.settle()
    text = path.read_text()
    assert KEY not in text
    first, second = map(json.loads, text.splitlines())
    assert first["added"] == second["added"] == ["[Reminder: Be brief.]\n\n"]
    for line, reply in (first, "Fine, Tony"), (second, "Yes, Tony"):
        path.write_text(json.dumps(line))
        (dialog,) = read_logs(path).dialogs
        assert dialog.system == SYSTEM
        assert [(turn.user, turn.done.text) for turn in dialog.turns] == [("Hi.", reply)]


def test_a_trailing_slash_leads_to_the_page(suite):
    with through(reply_json(completion()), suite) as (upstream, proxy):
        page = httpx2.get(f"{proxy.url}/holdfast/", follow_redirects=True)
        assert str(page.url) == f"{proxy.url}/holdfast" and page.status_code == 200
        assert not upstream.seen


def test_metrics_and_page(suite):
    with through(reply_json(completion()), suite, EVERY) as (upstream, proxy):
        client(proxy).chat.completions.create(model="m", messages=user("Hi."))
        proxy.settle()
        metrics = httpx2.get(f"{proxy.url}/metrics").text
        live = httpx2.get(f"{proxy.url}/holdfast/live.json").json()
        page = httpx2.get(f"{proxy.url}/holdfast")
        linked = [f"{proxy.url}/holdfast/{name}" for name in ("colours.css", "live.js", "live.css")]
        assert all(httpx2.get(url).status_code == 200 for url in linked)
    labels = 'case="brief",outcome="kept",rule="signs",turn="1"'
    assert f"holdfast_proxy_rules_total{{{labels}}} 1.0" in metrics
    assert "holdfast_proxy_reminders_total 1.0" in metrics
    assert "holdfast_proxy_added_tokens_total 6.0" in metrics
    assert 'holdfast_proxy_chat_requests_total{outcome="edited"} 1.0' in metrics
    assert 'holdfast_proxy_requests_total{api="/chat/completions",status="200"} 1.0' in metrics
    assert live["reminders"] == 1 and live["requests"] == {"edited": 1} and live["open"] == 0
    assert {(row["rule"], row["kept"], row["scored"]) for row in live["rules"]} == {
        ("signs", 1, 1),
        ("short", 0, 1),
    }
    assert page.headers["content-security-policy"] and "live.js" in page.text
    assert len(upstream.seen) == 1


def test_the_page_lists_rules_in_the_order_of_the_suite(tmp_path):
    """And not in that in which their first replies came."""
    path = tmp_path / "bot.yaml"
    path.write_text(SUITE.replace("id: signs", "id: signs\n        when: {user: Sign}"))
    with through(reply_json(completion()), str(path)) as (_, proxy):
        for text in ("Hi.", "Sign it."):
            client(proxy).chat.completions.create(model="m", messages=user(text))
        proxy.settle()
        live = httpx2.get(f"{proxy.url}/holdfast/live.json").json()
    assert [row["rule"] for row in live["rules"]] == ["signs", "short"]


def test_the_page_and_the_metrics_say_which_rules_are_scored(tmp_path):
    path = tmp_path / "bot.yaml"
    path.write_text(SUITE.replace("id: signs", "id: signs\n        probes: [Hi.]"))
    with through(reply_json(completion()), str(path)) as (_, proxy):
        live = httpx2.get(f"{proxy.url}/holdfast/live.json").json()
        metrics = httpx2.get(f"{proxy.url}/metrics").text
    assert (live["scored_rules"], live["suite_rules"]) == (1, 2)
    assert live["which_are_scored"].startswith(
        "1 of 2 rules is scored; not scored: brief/signs, as it has no `when:`"
    )
    name = "holdfast_proxy_suite_rules"
    assert f'{name}{{case="brief",not_scored="no_when",rule="signs"}} 1.0' in metrics
    assert f'{name}{{case="brief",not_scored="",rule="short"}} 1.0' in metrics


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (completion("Fine. T", "length"), Unscored.CUT),
        (completion(""), Unscored.EMPTY),
    ],
)
def test_why_a_reply_has_no_scores(tmp_path, body, reason):
    path = tmp_path / "bot.yaml"
    path.write_text(SUITE.replace('{regex: "Tony$"}', "{name: ends_with, word: Tony}"))
    path.write_text(path.read_text().replace("measure: one_sentence", "measure: {regex: y$}"))
    with through(reply_json(body), str(path)) as (_, proxy):
        client(proxy).chat.completions.create(model="m", messages=user("Hi."))
        assert kept(proxy) == {} and proxy.tally.counts().unscored == {reason: 1}


def test_a_reply_that_no_rule_applies_to(tmp_path):
    path = tmp_path / "bot.yaml"
    path.write_text(SUITE.replace("        text: ", "        when: {user: fish}\n        text: "))
    with through(reply_json(completion()), str(path)) as (_, proxy):
        client(proxy).chat.completions.create(model="m", messages=user("Hi."))
        assert kept(proxy) == {} and proxy.tally.counts().unscored == {Unscored.NO_RULE: 1}


def test_another_sites_name_is_refused(suite):
    with through(reply_json(b"{}"), suite) as (upstream, proxy):
        reply = httpx2.get(f"{proxy.url}/v1/models", headers={"Host": "evil.example"})
        assert reply.status_code == 421 and not upstream.seen


def test_headers_that_connection_names_stay_on_their_connection(suite):
    headers = {"Connection": "X-Hop", "X-Hop": "1", "X-Kept": "2"}
    with through(reply_json(completion()), suite) as (upstream, proxy):
        url = f"{proxy.url}/v1/chat/completions"
        httpx2.post(url, json={"messages": user("Hi.")}, headers=headers)
    (seen,) = upstream.seen
    assert seen.header("x-hop") is None and seen.header("x-kept") == "2"


def test_draining_waits_for_a_request_that_began_after_another_ended(suite):
    may_end = threading.Event()

    def answer(seen, writer):
        if b"slow" in seen.body:
            may_end.wait(20)
        reply_json(completion())(seen, writer)

    with through(answer, suite) as (_, proxy):
        url = f"{proxy.url}/v1/chat/completions"
        httpx2.post(url, json={"messages": user("Hi.")})
        wait_until(lambda: proxy.forwarding.open == 0)
        slow = threading.Thread(
            target=httpx2.post, args=(url,), kwargs={"json": {"messages": user("slow")}}
        )
        slow.start()
        wait_until(lambda: proxy.forwarding.open == 1)

        async def drain():
            draining = asyncio.ensure_future(proxy.forwarding.drain())
            await asyncio.wait([draining], timeout=0.2)
            assert not draining.done()
            draining.cancel()

        asyncio.run(drain())
        may_end.set()
        slow.join()
