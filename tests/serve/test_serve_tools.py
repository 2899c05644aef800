"""Tool calls of the server: parsed from replies, shown in the next request, or refused."""

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import httpx2
import openai
import pytest
import tiny
from fast_set import only_fast
from served import RunningServer, served
from tool_models import TOOLED, calling_model

import holdfast
from holdfast.serve.limits import RequestLimits
from holdfast.serve.tool_calls import CallParser

CALL = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
ASKED = list(tiny.chat("Be kind.", "What is it?"))


@cache
def reply_with_a_mark() -> tuple[int, re.Match]:
    """A seed whose reply has one special token, a tool call's mark, with text on both sides."""
    sampling = holdfast.Sampling(top_p=1.0, max_new_tokens=20)
    for first in itertools.count(step=32):
        seeds = range(first, first + 32)
        requests = [
            holdfast.Request(ASKED, sampling=sampling, seed=seed, tools=[tiny.LOOK])
            for seed in seeds
        ]
        for seed, reply in zip(seeds, TOOLED.generate_batch(requests), strict=True):
            text = TOOLED.tokenizer.decode(list(reply.token_ids))
            parts = re.match(r"([^<\ufffd]{4,})<sys>([^<\ufffd]{2,}?)([!-~])", text, re.DOTALL)
            if parts and parts[3] not in f"{parts[1]}<sys>{parts[2]}":
                return seed, parts


@pytest.fixture(scope="module")
def tool_server() -> Iterator[RunningServer]:
    """A server whose model writes tool calls after a special token."""
    call = {"name": "look", "arguments": {"at": "{content}"}}
    transform = {"type": "function", "function": call}
    model = calling_model({"open": "<sys>", "repeats": True, "transform": transform})
    with served(model, RequestLimits(tokens=400)) as running:
        yield running


def ask_with_tools(server: RunningServer, messages=ASKED, **changes):
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
    seed, parts = reply_with_a_mark()
    fields = {"seed": seed, "max_tokens": 20, "stop": parts[3], "tools": [tiny.LOOK], **changes}
    return client.chat.completions.create(model="default", messages=messages, **fields)


@pytest.mark.slow
def test_tool_calls_are_parsed_and_the_content_is_as_the_model_wrote_it(tool_server):
    _, parts = reply_with_a_mark()
    answer = ask_with_tools(tool_server).choices[0]
    assert answer.message.content == f"{parts[1]}<sys>{parts[2]}"
    (call,) = answer.message.tool_calls
    parsed_call = answer.finish_reason, call.type, call.function.name
    assert parsed_call == ("tool_calls", "function", "look")
    assert json.loads(call.function.arguments) == {"at": parts[2]}

    streamed = [chunk.choices[0] for chunk in ask_with_tools(tool_server, stream=True)]
    assert "".join(piece.delta.content or "" for piece in streamed) == answer.message.content
    *_, last = streamed
    (streamed_call,) = last.delta.tool_calls
    assert (last.finish_reason, streamed_call.index) == ("tool_calls", 0)
    assert streamed_call.function.arguments == call.function.arguments

    cut = ask_with_tools(tool_server, stop=None, max_tokens=19).choices[0]
    assert cut.finish_reason == "length" and cut.message.tool_calls is None
    text = ask_with_tools(tool_server, tool_choice="none").choices[0]
    assert text.message.content == parts[1] + parts[2], "the text alone, as in any other reply"
    assert text.finish_reason == "stop" and text.message.tool_calls is None


def test_a_dialog_continues_with_the_tool_calls_of_a_reply(tool_server):
    answer = ask_with_tools(tool_server).choices[0].message
    (call,) = answer.tool_calls
    result = {"role": "tool", "tool_call_id": call.id, "content": "nine"}
    body = {"messages": [*ASKED, answer.model_dump(), result], "tools": [tiny.LOOK]}
    tokens = httpx2.post(f"{tool_server.url}/tokenize", json=body).json()["tokens"]
    reply = ask_with_tools(tool_server, body["messages"], max_tokens=4)
    assert reply.usage.prompt_tokens == len(tokens)
    text = TOOLED.tokenizer.decode(tokens)
    _, parts = reply_with_a_mark()
    assert text.count("<tool_call>") == 1 and "<result>nine</result>" in text
    # the call appears once, not also as the model wrote it
    assert f">{parts[1].strip()}\n<tool_call>" in text
    ((first, last),) = reply.model_extra["holdfast"]["span"]
    assert TOOLED.tokenizer.decode(tokens[first:last]) == "Be kind."


def test_transformers_tool_call_formats_are_found_by_model_type():
    parser = CallParser("mine", replace(tiny.model("qwen2")))
    text = 'I will look.\n<tool_call>\n{"name": "look", "arguments": {"at": 3}}\n</tool_call>'
    (call,) = parser.parse(text, "a prompt in another format <tool_call>{", [tiny.LOOK])
    assert call["function"] == {"name": "look", "arguments": '{"at": 3}'}
    for malformed in ("<tool_call>{", "<tool_call>[3]</tool_call>", '<tool_call>{"name": "x"}'):
        assert parser.parse(f"{malformed}</tool_call>", "", []) == []
    assert CallParser("mine", TOOLED).template is None


@pytest.mark.parametrize("stream", only_fast((False, True), False))
def test_tools_are_refused_if_calls_cannot_be_parsed_or_a_template_omits_them(stream):
    with served(TOOLED, RequestLimits(tokens=400)) as running:
        with pytest.raises(openai.BadRequestError, match="'look'") as excinfo:
            ask_with_tools(running, stream=stream)
        assert (excinfo.value.param, excinfo.value.code) == ("tools", "no_response_template")
        text = ask_with_tools(running, tool_choice="none").choices[0].message.content
        _, parts = reply_with_a_mark()
        assert text == parts[1] + parts[2]
    with served(tiny.model(), RequestLimits(tokens=400)) as running:
        with pytest.raises(openai.BadRequestError, match="declared tool 'look'"):
            ask_with_tools(running, tool_choice="none", stream=stream)
        with pytest.raises(openai.BadRequestError, match="call of 'look'"):
            called = {**tiny.tool_talk("")[1], "tool_calls": [CALL], "content": None}
            ask_with_tools(running, [*ASKED, called, ASKED[-1]], tools=[], stream=stream)
