"""The Responses API of the server, by OpenAI's own client."""

import json

import openai
import pydantic
import pytest
from served import client_of, default_model
from tool_models import POINT, TOOLS

import holdfast

PROMPT, ASK = "Talk like a pirate.", "What do you think about the garden?"
CALL = {"type": "function_call", "call_id": "1", "name": "a"}
JSON = {"format": {"type": "json_object"}}
FLAT = [{"type": "function", **tool["function"]} for tool in TOOLS]


def respond(client, items=ASK, instructions=PROMPT, seed=1, steering=None, **changes):
    extra = {"seed": seed, **({"steering": steering} if steering else {})}
    fields = {"max_output_tokens": 60, **changes}
    return client.responses.create(
        model="default", input=items, instructions=instructions, extra_body=extra, **fields
    )


def offline(messages, methods="none", seed=1):
    sampling = holdfast.Sampling(top_p=1.0, max_new_tokens=60)
    return default_model().generate(messages, methods, sampling, seed)


def test_a_response_is_the_reply_of_the_model(client):
    chat = [{"role": "system", "content": PROMPT}, {"role": "user", "content": ASK}]
    reply = offline(chat, "boost:factor=2")
    answer = respond(client, steering="boost:factor=2", metadata={"a": "b"}, store=True)
    assert answer.output_text == reply.text and answer.status == "completed"
    assert answer.usage.input_tokens == len(reply.prompt_ids)
    assert answer.usage.output_tokens == len(reply.token_ids)
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens
    assert answer.metadata == {"a": "b"} and answer.instructions == PROMPT
    assert answer.model_extra["store"] is False, "nothing is stored, whatever is asked"
    assert answer.model_extra["holdfast"]["applied"] is True


def test_items_are_the_same_dialog_as_a_chats_messages(client):
    text = "Arr! It is green."
    items = [
        {"role": "developer", "content": [{"type": "input_text", "text": PROMPT}]},
        {"type": "message", "role": "user", "content": ASK},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        },
        {"role": "user", "content": [{"type": "input_text", "text": "And the sea?"}]},
    ]
    chat = [
        {"role": "system", "content": PROMPT},
        {"role": "user", "content": ASK},
        {"role": "assistant", "content": text},
        {"role": "user", "content": "And the sea?"},
    ]
    assert respond(client, items, None).output_text == offline(chat).text


def test_a_stream_has_the_events_of_the_same_response(client):
    whole = respond(client, seed=3)
    events = list(respond(client, seed=3, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = list(dict.fromkeys(event.type for event in events))
    assert kinds == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert len(deltas) > 3 and "".join(deltas) == whole.output_text
    last = events[-1].response
    assert last.output_text == whole.output_text and last.usage == whole.usage
    with client.responses.stream(
        model="default",
        input=ASK,
        instructions=PROMPT,
        max_output_tokens=60,
        extra_body={"seed": 3},
    ) as stream:
        assert stream.get_final_response().output_text == whole.output_text


@pytest.mark.parametrize("stream", (False, True))
def test_a_response_that_is_cut_is_incomplete(client, stream):
    answer = respond(client, max_output_tokens=3, stream=stream)
    if stream:
        *_, last = answer
        assert last.type == "response.incomplete"
        answer = last.response
    assert answer.status == answer.output[0].status == "incomplete"
    assert answer.incomplete_details.reason == "max_output_tokens"
    assert answer.usage.output_tokens == 3


def test_a_response_follows_a_schema(client):
    class Point(pydantic.BaseModel):
        x: int = pydantic.Field(ge=0, le=99)
        is_sea: bool

    answer = client.responses.parse(model="default", input=ASK, text_format=Point)
    assert isinstance(answer.output_parsed, Point)
    form = {"type": "json_schema", "name": "point", "schema": POINT}
    answer = respond(client, text={"format": form})
    assert json.loads(answer.output_text).keys() == {"x", "at"}
    assert answer.text.format.name == "point"


@pytest.mark.parametrize("stream", (False, True))
def test_tools_are_called_and_their_results_are_sent_back(tool_server, stream):
    client = client_of(tool_server)
    fields = {"tools": FLAT, "tool_choice": "required", "stream": stream}
    fields["max_output_tokens"] = 200
    answer = respond(client, "What is it?", "Be kind.", **fields)
    if stream:
        events = list(answer)
        kinds = [event.type for event in events]
        assert "response.output_text.delta" not in kinds, "the reply is a call alone"
        done = events[kinds.index("response.function_call_arguments.done")]
        answer = events[-1].response
        assert done.arguments == answer.output[0].arguments
    (call,) = answer.output
    assert call.type == "function_call" and call.name in ("add", "look_up")
    assert json.loads(call.arguments)["x"] in (1, 2)
    items = [
        {"role": "user", "content": "What is it?"},
        call.model_dump(exclude_none=True),
        {"type": "function_call_output", "call_id": call.call_id, "output": "nine"},
    ]
    after = respond(client, items, "Be kind.", tools=FLAT, max_output_tokens=4)
    function = {"name": call.name, "arguments": call.arguments}
    tool_call = {"id": call.call_id, "type": "function", "function": function}
    messages = [
        {"role": "system", "content": "Be kind."},
        items[0],
        {"role": "assistant", "content": None, "tool_calls": [tool_call]},
        {"role": "tool", "tool_call_id": call.call_id, "content": "nine"},
    ]
    completion = client.chat.completions.create(
        model="default", messages=messages, tools=TOOLS, max_tokens=4, seed=1
    )
    assert after.usage.input_tokens == completion.usage.prompt_tokens


def test_a_forced_call_that_is_cut_is_shown_as_text(tool_server):
    fields = {"tools": FLAT, "tool_choice": {"type": "function", "name": "add"}}
    client = client_of(tool_server)
    whole = respond(client, "What is it?", "Be kind.", **fields, max_output_tokens=16)
    *_, last = respond(
        client, "What is it?", "Be kind.", **fields, max_output_tokens=16, stream=True
    )
    for answer in (whole, last.response):
        assert answer.status == "incomplete" and answer.output_text.startswith("\n<tool_call>")
        assert answer.model_extra["holdfast"]["unparsed_call"] is True


@pytest.mark.parametrize(
    ("fields", "param", "message"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id", "'resp_1'"),
        ({"conversation": "conv_1"}, "conversation", "conv_1"),
        ({"input": []}, "input", "not empty"),
        ({"input": [{"role": "user"}]}, "input", "needs content"),
        ({"input": [{"type": "function_call", "call_id": "1", "name": "a"}]}, "input", "arguments"),
        ({"input": [{"type": "reasoning", "summary": []}]}, "input[0]", "'reasoning'"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input[0]", "image"),
        ({"input": [{"role": "assistant", "content": "Arr"}]}, "input", "the assistant's"),
        ({"input": [{"role": "user", "content": "Hi"}] * 1001}, "input", "input has to be a list"),
        ({"input": [{**CALL, "arguments": "3"}]}, "input[0].arguments", "not '3'"),
        ({"max_output_tokens": 401}, "max_output_tokens", "401"),
        ({"tools": FLAT}, "tools", "no response template"),
        ({"tools": [{"type": "web_search"}]}, "tools[0]", "web_search"),
        ({"tool_choice": "required"}, "tool_choice", "declared tools are none"),
        ({"text": {"format": {"type": "json_schema", "name": "a"}}}, "text", "schema is missing"),
        (
            {"text": {"format": {"type": "json_schema", "name": "a", "schema": {"not": {}}}}},
            "text",
            '"not"',
        ),
        ({"text": JSON, "tools": FLAT}, "text", "text describes the whole reply"),
        (
            {
                "text": JSON,
                "input": [{"role": "assistant", "content": "Arr"}],
                "extra_body": {"continue_final_message": True},
            },
            "continue_final_message",
            "text asks for a JSON object",
        ),
        ({"reasoning": {"effort": "low"}}, "reasoning", "effort"),
        ({"background": True}, "background", "true"),
        ({"include": ["message.output_text.logprobs"]}, "include", "logprobs"),
        ({"extra_body": {"steering": "bost:factor=2"}}, "steering", "boost"),
        ({"extra_body": {"trace": True}}, "trace", "trace"),
    ],
)
def test_what_is_not_done_is_refused_by_name(client, fields, param, message):
    with pytest.raises(openai.BadRequestError) as excinfo:
        client.responses.create(**{"model": "default", "input": ASK, **fields})
    assert (excinfo.value.param or "").startswith(param)
    sentence = excinfo.value.body["message"]
    assert message in sentence
    assert "response_format" not in sentence and "messages" not in sentence
