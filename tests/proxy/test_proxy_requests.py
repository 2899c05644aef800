"""The proxy: what goes up to the model's server."""

import gzip
import json
import socket

import httpx2
import pytest
from fake_upstream import (
    EVERY,
    KEY,
    SUITE,
    SYSTEM,
    FakeUpstream,
    client,
    completion,
    counts,
    proxied,
    reply_json,
    response,
    through,
    user,
)

from holdfast.proxy import forwarding
from holdfast.proxy.chat_edits import EditOutcome
from holdfast.proxy.chat_requests import Api, Unreadable, request_from_body
from holdfast.proxy.upstream import Upstream

# Edits of a chat


def test_a_chat_is_edited_and_its_reply_scored(suite):
    with through(reply_json(completion("Fine. Tony")), suite, EVERY) as (upstream, proxy):
        reply = client(proxy).chat.completions.create(model="m", messages=user("Hello."))
        assert reply.choices[0].message.content == "Fine. Tony"
        assert counts(proxy) == {("signs", 1): (1, 1), ("short", 1): (0, 1)}
    (request,) = upstream.requests
    assert request.line == "POST /v1/chat/completions HTTP/1.1"
    assert request.header("authorization") == f"Bearer {KEY}"
    assert request.json["messages"] == user("[Reminder: Be brief.]\n\nHello.")
    assert proxy.counts.reminders == 1 and proxy.counts.added_tokens == 6
    assert proxy.counts.requests == {EditOutcome.EDITED: 1}


def test_a_chat_that_is_too_long_to_read_is_forwarded_unchanged(suite, monkeypatch):
    monkeypatch.setattr(forwarding, "_MAX_CHAT_BYTES", 1000)
    body = json.dumps({"model": "m", "messages": user("word " * 50_000)}).encode()
    with through(reply_json(completion("Fine.")), suite, EVERY) as (upstream, proxy):
        answer = httpx2.post(f"{proxy.url}/v1/chat/completions", content=body)
        assert answer.json()["choices"][0]["message"]["content"] == "Fine."
        assert not counts(proxy) and proxy.counts.requests == {EditOutcome.UNREADABLE: 1}
    assert upstream.requests[0].body == body


def test_a_body_with_nothing_to_add_is_forwarded_byte_for_byte(suite):
    body = (
        b'{ "messages":[ {"role":"user", "content":"caf\\u00e9 \xc3\xa9"} ],"temperature":1.50E0}'
    )
    spec = 'reminder:every=2,text="Be brief."'
    with through(reply_json(completion()), suite, spec) as (upstream, proxy):
        httpx2.post(f"{proxy.url}/v1/chat/completions", content=body)
        assert proxy.counts.requests == {EditOutcome.UNCHANGED: 1}
    assert upstream.requests[0].body == body


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
    reminder = b"[Reminder: Be brief.]\\n\\n"
    assert upstream.requests[0].body == body.replace(b'"Look:', b'"' + reminder + b"Look:")
    assert upstream.requests[0].header("content-length") == str(len(body) + len(reminder))


def test_a_message_without_text_gets_a_part_of_its_own(suite):
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    chat = [{"role": "user", "content": [image]}]
    with through(reply_json(completion()), suite, EVERY) as (upstream, proxy):
        client(proxy).chat.completions.create(model="m", messages=chat)
    content = upstream.requests[0].json["messages"][0]["content"]
    assert content == [{"type": "text", "text": "[Reminder: Be brief.]"}, image]


def test_a_message_whose_content_is_null_is_an_empty_text(suite):
    earlier = [{"role": "user", "content": None}, {"role": "assistant", "content": "Oh. Tony"}]
    with through(reply_json(completion()), suite, EVERY) as (upstream, proxy):
        for messages in (user(None), user("Hi.", *earlier)):
            httpx2.post(f"{proxy.url}/v1/chat/completions", json={"messages": messages})
            proxy.settle()
        assert proxy.tally.counts().requests == {EditOutcome.EDITED: 2}
        assert counts(proxy) == {
            ("signs", 1): (1, 1),
            ("short", 1): (0, 1),
            ("signs", 2): (1, 1),
            ("short", 2): (0, 1),
        }
    first, second = (request.json["messages"] for request in upstream.requests)
    assert first == user("[Reminder: Be brief.]")
    assert second[-1]["content"] == "[Reminder: Be brief.]\n\nHi."


# Reminders and replies that broke a rule


def test_a_reminder_after_a_broken_rule_says_that_rule(suite):
    spec = "reminder:every=1,text=rules,when=broken"
    good = {"role": "assistant", "content": "Here you are, Tony"}
    bad = {"role": "assistant", "content": "Here you are."}
    with through(reply_json(completion()), suite, spec) as (upstream, proxy):
        create = client(proxy).chat.completions.create
        create(model="m", messages=user("More.", {"role": "user", "content": "Hi."}, good))
        create(model="m", messages=user("More.", {"role": "user", "content": "Hi."}, bad))
        assert proxy.counts.requests == {EditOutcome.UNCHANGED: 1, EditOutcome.EDITED: 1}
    assert upstream.requests[0].json["messages"][-1]["content"] == "More."
    assert (
        upstream.requests[1].json["messages"][-1]["content"] == "[Reminder: Sign as Tony.]\n\nMore."
    )


@pytest.mark.parametrize("method", ["reminder:every=1,text=rules,when=broken", "repair"])
def test_reasoning_in_an_earlier_reply_breaks_no_rule(suite, method):
    reply = "<think>I plan. I plan more.</think>Here you are, Tony"
    dialog = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": reply}]
    with through(reply_json(completion()), suite, method) as (upstream, proxy):
        client(proxy).chat.completions.create(model="m", messages=user("More.", *dialog))
    assert upstream.requests[0].json["messages"] == user("More.", *dialog)


def test_an_earlier_reply_that_was_cut_does_not_break_what_its_end_decides(tmp_path):
    """The request that repeats it does not say that it was cut."""
    path = tmp_path / "bot.yaml"
    path.write_text(SUITE.replace('{regex: "Tony$"}', "{name: ends_with, word: Tony}"))
    spec = "reminder:every=1,text=rules,when=broken"
    cut = reply_json(completion("Here you", "length"))
    dialog = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Here you"}]
    with through(cut, str(path), spec) as (upstream, proxy):
        create = client(proxy).chat.completions.create
        create(model="m", messages=user("Hi."))
        proxy.settle()
        create(model="m", messages=user("More.", *dialog))
    assert upstream.requests[1].json["messages"] == user("More.", *dialog)


def test_an_exchange_that_broke_a_rule_is_left_out(suite):
    """With its calls of tools, and every other byte as it was."""
    call = (
        b'{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}'
    )
    breaking_exchange = (
        b'{"role": "user", "content": "Hi."}, '
        + call
        + b""" ,
      {"role":"tool","tool_call_id":"1","content":"9"},{"role":"assistant","content":"No."},
    """
    )
    good = b'{"role":"user","content":"And?"},{"role":"assistant","content":"Yes, Tony"} , '
    body = b'{"messages": [ %s%s{"role":"user","content":"More."}], "temperature":1.50E0}'
    with through(reply_json(completion()), suite, "repair") as (upstream, proxy):
        httpx2.post(f"{proxy.url}/v1/chat/completions", content=body % (breaking_exchange, good))
        assert proxy.counts.left_out == 4 and proxy.counts.reminders == 0
        assert counts(proxy)["signs", 3] == (1, 1)  # turns are those of the dialog as it was
    assert upstream.requests[0].body == body % (b"", good)


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
    assert upstream.requests[0].json["input"] == items[3:]


def test_a_broken_reply_is_marked_in_the_next_message(suite):
    dialog = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
    with through(reply_json(completion()), suite, "repair:by=mark") as (upstream, proxy):
        client(proxy).chat.completions.create(model="m", messages=user("More.", *dialog))
    note = "[Your last reply broke this rule: Sign as Tony.]"
    assert upstream.requests[0].json["messages"][-1]["content"] == f"{note}\n\nMore."


def test_repeated_reminders_are_counted_once_and_their_tokens_always(suite):
    with through(reply_json(completion()), suite, EVERY) as (_, proxy):
        create = client(proxy).chat.completions.create
        create(model="m", messages=user("Hi."))
        dialog = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Yes?"}]
        create(model="m", messages=user("More.", *dialog))
        assert proxy.counts.reminders == 2
        assert proxy.counts.added_tokens == 6 + 12


@pytest.mark.parametrize(
    ("left_out", "why"), [(0, "the system prompt"), (1, "the message that is to be answered")]
)
def test_a_method_may_leave_out_neither_instructions_nor_the_question(left_out, why):
    request = request_from_body(Api.RESPONSES, {"instructions": SYSTEM, "input": "Hello."})
    edited = [message for n, message in enumerate(request.chat) if n != left_out]
    with pytest.raises(Unreadable, match=f"a method leaves out {why}"):
        request.changes_to(edited)


# The Responses API


@pytest.mark.parametrize("name", ["instructions", "developer"])
@pytest.mark.parametrize("form", ["text", "list"])
def test_a_request_of_the_responses_api_is_edited_and_its_reply_scored(suite, name, form):
    with through(reply_json(json.dumps(response()).encode()), suite, EVERY) as (upstream, proxy):
        content = "Hello." if form == "text" else [{"role": "user", "content": "Hello."}]
        fields = {"input": content, "instructions": SYSTEM}
        if name == "developer" and form == "list":
            fields = {"input": [{"role": "developer", "content": SYSTEM}, *content]}
        reply = client(proxy).responses.create(model="m", **fields)
        assert reply.output_text == "Fine. Tony"
        assert counts(proxy)["signs", 1] == (1, 1)
    items = upstream.requests[0].json["input"]
    assert (items if form == "text" else items[-1]["content"]) == "[Reminder: Be brief.]\n\nHello."
    assert "Reminder" not in str(upstream.requests[0].json.get("instructions"))


def test_items_of_the_responses_api_survive(suite):
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "Sum?"}]},
        {"type": "reasoning", "id": "rs1", "summary": []},
        {"type": "function_call", "call_id": "1", "name": "add", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "1", "output": "3"},
    ]
    with through(reply_json(json.dumps(response()).encode()), suite, EVERY) as (upstream, proxy):
        client(proxy).responses.create(model="m", instructions=SYSTEM, input=items)
        assert counts(proxy)["signs", 1] == (1, 1)
        assert proxy.counts.reminders == 0  # it was sent with the user's message
    forwarded = upstream.requests[0].json["input"]
    assert forwarded[1:] == items[1:] and forwarded[0]["content"][0]["text"].endswith("\n\nSum?")


def test_a_stored_dialog_passes_through_and_is_counted(suite):
    with through(reply_json(json.dumps(response()).encode()), suite, EVERY) as (upstream, proxy):
        client(proxy).responses.create(model="m", input="Hi.", previous_response_id="r0")
        proxy.settle()
        assert proxy.counts.requests == {EditOutcome.STORED: 1} and not proxy.counts.rules
    assert upstream.requests[0].json["input"] == "Hi."


# Paths, headers and other requests


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
def test_requests_to_other_paths_pass_through_unchanged(suite, method, path, body, headers):
    answer = reply_json(b'{"ok": true}')
    with through(answer, suite, EVERY) as (upstream, proxy):
        reply = httpx2.request(method, proxy.url + path, content=body or None, headers=headers)
        assert reply.json() == {"ok": True}
    (request,) = upstream.requests
    assert request.line == f"{method} {path} HTTP/1.1" and request.body == body
    assert headers.items() <= dict(request.headers).items()


def test_an_upload_in_chunks_passes_through(suite):
    with through(reply_json(b"{}"), suite) as (upstream, proxy):
        parts = iter([b"one", b"two"])
        assert httpx2.post(f"{proxy.url}/v1/files", content=parts).status_code == 200
    assert upstream.requests[0].body == b"onetwo"
    assert upstream.requests[0].header("transfer-encoding") == "chunked"


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
    assert upstream.requests[0].line == f"GET {expected} HTTP/1.1"


def test_a_web_socket_is_refused(suite):
    headers = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
    with through(reply_json(b"{}"), suite) as (upstream, proxy):
        reply = httpx2.get(f"{proxy.url}/v1/realtime?model=m", headers=headers)
    assert reply.status_code == 501 and reply.json()["error"]["code"] == "websocket"
    assert not upstream.requests


def test_a_path_that_cannot_be_forwarded_is_refused(suite):
    with through(reply_json(b"{}"), suite) as (upstream, proxy):
        host, _, port = proxy.url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(f"OPTIONS * HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert connection.recv(1000).startswith(b"HTTP/1.1 400 ")
    assert not upstream.requests


def test_a_server_on_this_machine_is_reached_past_an_http_proxy(suite, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # where nothing listens
    with through(reply_json(b"{}"), suite) as (_, proxy):
        direct = httpx2.Client(trust_env=False)
        assert direct.get(f"{proxy.url}/v1/models").status_code == 200
        Upstream(proxy.url, 10).check()


def test_headers_pass_in_both_directions(suite):
    def answer(request, writer):
        headers = ["X-Request-Id: 7", "x-ratelimit-remaining: 3", "Set-Cookie: a=1"]
        headers += ["Set-Cookie: b=2", "Date: Thu, 01 Jan 2026 00:00:00 GMT", "Server: mine"]
        writer.whole("200 OK", b"{}", "Keep-Alive: timeout=5", *headers)

    with through(answer, suite) as (upstream, proxy):
        outgoing = {"OpenAI-Organization": "o", "Cookie": "c=3", "Connection": "keep-alive, x-hop"}
        reply = httpx2.get(f"{proxy.url}/v1/models", headers=outgoing)
        second_answer = httpx2.get(f"{proxy.url}/v1/models")
    assert reply.headers.get_list("set-cookie") == ["a=1", "b=2"]
    assert reply.headers.get_list("date") == ["Thu, 01 Jan 2026 00:00:00 GMT"]
    assert reply.headers["server"] == "mine" and reply.headers["x-request-id"] == "7"
    assert "keep-alive" not in reply.headers
    first, second = upstream.requests
    assert first.header("openai-organization") == "o" and first.header("cookie") == "c=3"
    assert first.header("host") == upstream.url.removeprefix("http://")
    assert second.header("cookie") is None and second_answer.status_code == 200
