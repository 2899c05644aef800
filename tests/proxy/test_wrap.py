"""`holdfast.wrap`: OpenAI's clients, with edited chats and scored replies."""

import asyncio
import json
import sys
import types

import httpx2
import openai
import pytest
import yaml
from fake_upstream import (
    SUITE,
    SYSTEM,
    FakeUpstream,
    chunks,
    completion,
    in_turn,
    reply_events,
    reply_json,
    response,
)

import holdfast
from holdfast.drift.suite_file import parse_suite
from holdfast.errors import UsageError
from holdfast.logs import read_logs
from holdfast.proxy.reply_scores import WhyUnscored
from holdfast.proxy.tally import RuleCell, Tally
from holdfast.proxy.upstream_answer import UpstreamAnswer

KEY = "sk-test-0123456789abcdef"
EVERY = 'reminder:every=1,text="Be brief."'
CHAT = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Hi."}]
REMINDED = [CHAT[0], {"role": "user", "content": "[Reminder: Be brief.]\n\nHi."}]


def suite():
    return parse_suite(SUITE, "bot.yaml", "bot", probed=False)


def wrap(upstream, tally=None, kind=openai.OpenAI, method=EVERY, **options):
    client = kind(base_url=f"{upstream.url}/v1", api_key=KEY, max_retries=0)
    return holdfast.wrap(client, suite=suite(), method=method, tally=tally, **options)


def counts(tally):
    return {row.cell.rule: (row.kept, row.scored) for row in tally.counts().rules}


# Chats, streams and responses


def test_a_chat_is_edited_and_its_reply_scored():
    tally, replies = Tally(), []
    with FakeUpstream(reply_json(completion("Fine, Tony"))) as upstream:
        client = wrap(upstream, tally, on_reply=replies.append)
        assert isinstance(client, openai.OpenAI)
        reply = client.chat.completions.create(model="m", messages=CHAT)
    assert reply.choices[0].message.content == "Fine, Tony"
    (request,) = upstream.requests
    assert request.json["messages"] == REMINDED and CHAT[1]["content"] == "Hi."
    assert request.header("authorization") == f"Bearer {KEY}"
    assert counts(tally) == {"signs": (1, 1), "short": (1, 1)} and tally.counts().reminders == 1
    assert [(score.rule, score.kept) for score in replies[0].scores] == [
        ("signs", True),
        ("short", True),
    ]
    assert (replies[0].case, replies[0].turn) == ("brief", 1)


def test_a_stream_is_scored_once_it_is_read():
    tally = Tally()
    with FakeUpstream(reply_events(*chunks("Fine. ", "Tony"))) as upstream:
        stream = wrap(upstream, tally).chat.completions.create(
            model="m", messages=CHAT, stream=True
        )
        assert not tally.counts().rules
        assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "Fine. Tony"
    assert upstream.requests[0].json["messages"] == REMINDED
    assert counts(tally) == {"signs": (1, 1), "short": (0, 1)}


def test_a_stream_that_is_left_has_no_scores():
    tally = Tally()
    with FakeUpstream(reply_events(*chunks("Fine. ", "Tony"))) as upstream:
        client = wrap(upstream, tally)
        with client.chat.completions.create(model="m", messages=CHAT, stream=True) as stream:
            next(stream)
    assert not counts(tally) or counts(tally)["signs"] == (1, 1)  # all of it may have come at once
    assert sum(tally.counts().unscored.values()) + len(tally.counts().rules) // 2 == 1


def test_a_response_is_edited_and_scored():
    tally = Tally()
    with FakeUpstream(reply_json(json.dumps(response("Fine, Tony")).encode())) as upstream:
        reply = wrap(upstream, tally).responses.create(model="m", instructions=SYSTEM, input="Hi.")
    assert reply.output_text == "Fine, Tony" and counts(tally)["signs"] == (1, 1)
    assert upstream.requests[0].json["input"] == "[Reminder: Be brief.]\n\nHi."


@pytest.mark.parametrize("streamed", [False, True])
def test_the_async_client_is_edited_and_scored(streamed):
    tally = Tally()
    answer = reply_events(*chunks("Fine, ", "Tony"))
    if not streamed:
        answer = reply_json(completion("Fine, Tony"))

    async def ask(upstream):
        client = wrap(upstream, tally, openai.AsyncOpenAI)
        assert isinstance(client, openai.AsyncOpenAI)
        reply = await client.chat.completions.create(model="m", messages=CHAT, stream=streamed)
        if not streamed:
            return reply.choices[0].message.content
        return "".join([chunk.choices[0].delta.content or "" async for chunk in reply])

    with FakeUpstream(answer) as upstream:
        assert asyncio.run(ask(upstream)) == "Fine, Tony"
    assert upstream.requests[0].json["messages"] == REMINDED
    assert counts(tally) == {"signs": (1, 1), "short": (1, 1)}


def test_a_retry_is_edited_once():
    answers = iter([b"", completion("Fine, Tony")])
    tally = Tally()

    def answer(request, writer):
        body = next(answers)
        return writer.whole("200 OK" if body else "500 No", body, "Content-Type: application/json")

    with FakeUpstream(answer) as upstream:
        client = wrap(upstream, tally).with_options(max_retries=1)
        client.chat.completions.create(model="m", messages=CHAT)
    assert [request.json["messages"] for request in upstream.requests] == [REMINDED] * 2
    assert counts(tally)["signs"] == (1, 1) and tally.counts().unscored == {WhyUnscored.FAILED: 1}


@pytest.mark.parametrize("kind", [openai.OpenAI, openai.AsyncOpenAI])
@pytest.mark.parametrize("method", [EVERY, "check-and-retry"])
def test_a_request_without_an_answer_is_counted(kind, method):
    tally = Tally()
    with FakeUpstream(lambda request, writer: False) as upstream:
        client = wrap(upstream, tally, kind, method)
        with pytest.raises(openai.APIConnectionError):
            reply = client.chat.completions.create(model="m", messages=CHAT)
            asyncio.run(_awaited(reply))
    assert tally.counts().unscored == {WhyUnscored.FAILED: 1} and tally.counts().rules == []


# The client that is wrapped


def test_other_calls_of_a_wrapped_client_work_as_before():
    """Other requests, raw responses, headers, errors, and copies with other options."""
    with FakeUpstream(reply_json(b'{"object": "list", "data": []}')) as upstream:
        client = wrap(upstream)
        assert client.models.list().data == []
        assert client.files.create(file=b"x" * 100_000, purpose="batch")
        assert b"x" * 100_000 in upstream.requests[1].body
        upstream.answer = lambda request, writer: writer.whole(
            "200 OK", completion(), "Content-Type: application/json", "x-request-id: 7"
        )
        raw = client.with_options(timeout=5).chat.completions.with_raw_response.create(
            model="m", messages=CHAT, extra_headers={"x-mine": "1"}
        )
        assert raw.headers["x-request-id"] == "7" and raw.parse().choices[0].message.content
        assert upstream.requests[2].json["messages"] == REMINDED
        assert upstream.requests[2].header("x-mine") == "1"
        upstream.answer = lambda request, writer: writer.whole(
            "429 No", b'{"error": {"code": "x"}}'
        )
        with pytest.raises(openai.RateLimitError) as excinfo:
            client.chat.completions.create(model="m", messages=CHAT)
        assert excinfo.value.code == "x"


def test_the_client_itself_stays_as_it_is():
    with FakeUpstream(reply_json(completion())) as upstream:
        client = openai.OpenAI(base_url=f"{upstream.url}/v1", api_key=KEY)
        holdfast.wrap(client, suite=suite(), method=EVERY)
        client.chat.completions.create(model="m", messages=CHAT)
    assert upstream.requests[0].json["messages"] == CHAT


def test_an_own_http_client_is_used():
    hooked = []
    own_client = httpx2.Client(event_hooks={"request": [hooked.append]})
    with FakeUpstream(reply_json(completion())) as upstream:
        client = openai.OpenAI(base_url=f"{upstream.url}/v1", api_key=KEY, http_client=own_client)
        holdfast.wrap(client, suite=suite()).chat.completions.create(model="m", messages=CHAT)
    assert len(hooked) == 1


@pytest.mark.parametrize("kind", [openai.OpenAI, openai.AsyncOpenAI])
def test_the_headers_of_a_client_of_ones_own_are_sent(kind):
    inner = httpx2.Client if kind is openai.OpenAI else httpx2.AsyncClient
    http_client = inner(headers={"X-Gateway": "k"}, params={"team": "a"}, cookies={"c": "1"})
    with FakeUpstream(reply_json(completion())) as upstream:
        client = kind(
            base_url=f"{upstream.url}/v1", api_key=KEY, max_retries=0, http_client=http_client
        )
        wrapped = holdfast.wrap(client, suite=suite(), method=EVERY)
        reply = wrapped.chat.completions.create(model="m", messages=CHAT)
        if kind is openai.AsyncOpenAI:
            asyncio.run(_awaited(reply))
    (request,) = upstream.requests
    assert request.header("x-gateway") == "k" and request.header("cookie") == "c=1"
    assert "team=a" in request.line


async def _awaited(awaitable):
    return await awaitable


# What is refused or not scored


def test_a_wrapped_client_says_which_rules_are_not_scored(caplog):
    text = SUITE.replace("id: signs", "id: signs\n        probes: [Hi.]")
    client = openai.OpenAI(base_url="http://127.0.0.1:9/v1", api_key=KEY)
    holdfast.wrap(client, suite=parse_suite(text, "bot.yaml", "bot", probed=False))
    text = "1 of 2 rules is scored. Rules without `when:` are not scored"
    assert text in caplog.text and ": brief/signs." in caplog.text


@pytest.mark.parametrize(
    ("changes", "option"),
    [
        ({"client": "gpt"}, "client"),
        ({"method": "boost:factor=2"}, "method"),
        ({"suite": "bot"}, "suite"),
        ({"suite": "nowhere"}, "suite"),
    ],
)
def test_bad_input_is_refused_by_option(changes, option):
    arguments = {"client": openai.OpenAI(api_key=KEY), "suite": "luna", **changes}
    with pytest.raises(UsageError) as excinfo:
        holdfast.wrap(arguments.pop("client"), **arguments)
    assert excinfo.value.option == option


def test_a_refused_client_leaves_no_log(tmp_path):
    with pytest.raises(UsageError):
        holdfast.wrap("gpt", suite=suite(), log=tmp_path / "chats.jsonl")
    assert not list(tmp_path.iterdir())


# The log


def test_the_log_has_what_was_added_to_the_request_that_was_answered(tmp_path):
    log = tmp_path / "chats.jsonl"
    answers = in_turn(reply_json(completion("Hello.")), reply_json(completion("Hello, Tony")))
    with FakeUpstream(answers) as upstream:
        client = wrap(upstream, method="check-and-retry:n=1", log=log)
        client.chat.completions.create(model="m", messages=CHAT)
    assert len(upstream.requests) == 2
    (chat,) = map(json.loads, log.read_text().splitlines())
    assert chat["messages"] == CHAT and len(chat["added"]) == 1
    assert chat["added"][0].strip() in upstream.requests[1].json["messages"][-1]["content"]


def test_a_logged_response_that_was_cut_is_read_as_cut(tmp_path):
    log = tmp_path / "chats.jsonl"
    cut = response("One. Two", "incomplete", incomplete_details={"reason": "max_output_tokens"})
    with FakeUpstream(reply_json(json.dumps(cut).encode())) as upstream:
        client = wrap(upstream, log=log)
        client.responses.create(model="m", instructions=SYSTEM, input="Hi.")
    (dialog,) = read_logs(log).dialogs
    assert dialog.turns[0].done.is_cut


def test_a_log_that_was_torn_spoils_no_other_line(tmp_path):
    log = tmp_path / "chats.jsonl"
    log.write_text('{"messages": [')
    with FakeUpstream(reply_json(completion("Fine, Tony"))) as upstream:
        wrap(upstream, log=log).chat.completions.create(model="m", messages=CHAT)
    torn, line = log.read_text().splitlines()
    assert torn == '{"messages": [' and json.loads(line)["messages"] == CHAT


# Faults on the way


def test_a_measure_that_fails_spoils_only_its_rule(monkeypatch, caplog):
    failing = {"id": "bad", "text": "Be good.", "measure": {"python": "failing_measure.bad"}}
    module = types.ModuleType("failing_measure")
    module.bad = {}.__getitem__  # raises a KeyError
    monkeypatch.setitem(sys.modules, "failing_measure", module)
    cases = yaml.safe_load(SUITE)
    cases["cases"][0]["rules"].append(failing)
    text = yaml.safe_dump(cases)
    failing_suite = parse_suite(text, "bot.yaml", "bot", probed=False, allow_code=True)
    tally = Tally()
    with FakeUpstream(reply_json(completion("Fine. Tony"))) as upstream:
        client = openai.OpenAI(base_url=f"{upstream.url}/v1", api_key=KEY, max_retries=0)
        client = holdfast.wrap(client, suite=failing_suite, method=EVERY, tally=tally)
        client.chat.completions.create(model="m", messages=CHAT)
    assert counts(tally) == {"signs": (1, 1), "short": (0, 1)}
    assert tally.counts().failed == {RuleCell("brief", "bad", 1): 1}
    assert "brief/bad" in caplog.text and "Fine" not in caplog.text


@pytest.mark.parametrize("kind", [openai.OpenAI, openai.AsyncOpenAI])
def test_a_callback_that_raises_costs_neither_the_reply_nor_the_log(tmp_path, caplog, kind):
    """OpenAI's client would take its error for one of the connection, and send the chat again."""
    log, tally = tmp_path / "chats.jsonl", Tally()
    with FakeUpstream(reply_json(completion("Fine, Tony"))) as upstream:
        client = wrap(upstream, tally, kind, log=log, on_reply={}.__getitem__)
        client = client.with_options(max_retries=2)
        reply = client.chat.completions.create(model="m", messages=CHAT)
        reply = asyncio.run(_awaited(reply)) if kind is openai.AsyncOpenAI else reply
    assert reply.choices[0].message.content == "Fine, Tony" and len(upstream.requests) == 1
    assert len(log.read_text().splitlines()) == 1 and counts(tally)["signs"] == (1, 1)
    assert "on_reply failed (KeyError)" in caplog.text


def test_an_answer_encoded_as_identity_is_text():
    answer = UpstreamAnswer(200, httpx2.Headers({"content-encoding": "Identity"}))
    answer.add(b"text")
    assert answer.text == "text"


@pytest.mark.parametrize("method", [EVERY, "check-and-retry:n=1"])
def test_responses_that_a_hook_has_read_are_returned_whole(method):
    tally = Tally()
    hooks = {"response": [lambda response: response.read()]}
    with FakeUpstream(reply_json(completion("Fine, Tony"))) as upstream:
        client = openai.OpenAI(
            base_url=f"{upstream.url}/v1", api_key=KEY, http_client=httpx2.Client(event_hooks=hooks)
        )
        reply = holdfast.wrap(client, suite=suite(), method=method, tally=tally)
        answer = reply.chat.completions.create(model="m", messages=CHAT)
    assert answer.choices[0].message.content == "Fine, Tony" and counts(tally)["signs"] == (1, 1)


@pytest.mark.parametrize(
    "delta",
    [
        "x",
        ["x"],
        {"tool_calls": {"index": 0}},
        {"tool_calls": [{"index": [0], "function": "f"}]},
        {"tool_calls": ["x"], "content": 3},
    ],
)
@pytest.mark.parametrize("index", [0, [0], "0"])
def test_a_stream_that_is_none_of_the_api_is_passed_on(delta, index):
    events = [
        b"data: " + json.dumps({"choices": [{"index": index, "delta": delta}]}).encode() + b"\n\n",
        b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n',
    ]
    with FakeUpstream(reply_events(*events)) as upstream:
        client = wrap(upstream, method="none")
        raw = client.chat.completions.with_raw_response.create(
            model="m", messages=CHAT, stream=True
        )
        assert b"".join(raw.http_response.iter_bytes()) == b"".join(events)
