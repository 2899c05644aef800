"""Writes the answers of `/v1/responses`, as one object or as a stream of events."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any, Literal, NotRequired

from starlette.types import Send
from typing_extensions import TypedDict

from holdfast.serve.answer_formats import AppliedSteering
from holdfast.serve.answering import PendingAnswer
from holdfast.serve.decoding import Delta, join_deltas
from holdfast.serve.responses_body import ResponsesBody
from holdfast.serve.tool_calls import ParsedCall
from holdfast.serve.wire import end_events, send_event, send_json, start_events

Status = Literal["in_progress", "completed", "incomplete"]
ResponsesEvent = dict[str, Any]


class OutputText(TypedDict):
    """The text of a message."""

    type: Literal["output_text"]
    text: str
    annotations: list[Any]
    logprobs: list[Any]


class OutputItem(TypedDict):
    """A message, with `role` and `content`, or a call of a tool, with `call_id`, `name` and
    `arguments`.
    """

    id: str
    type: Literal["message", "function_call"]
    status: Status
    role: NotRequired[Literal["assistant"]]
    content: NotRequired[list[OutputText]]
    call_id: NotRequired[str]
    name: NotRequired[str]
    arguments: NotRequired[str]


class Incomplete(TypedDict):
    """Why a response is not complete."""

    reason: Literal["max_output_tokens"]


class InputDetails(TypedDict):
    """Input tokens that were not forwarded."""

    cached_tokens: int


class OutputDetails(TypedDict):
    """Output tokens that are reasoning: always 0, because this server counts reasoning as text."""

    reasoning_tokens: int


class ResponseUsage(TypedDict):
    """Token counts of a response."""

    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int


class ResponseSteering(AppliedSteering):
    """The steering of a response; `unparsed_call` is as in a chat's choices."""

    unparsed_call: NotRequired[bool]


class ResponseAnswer(TypedDict):
    """The answer of `/v1/responses`."""

    id: str
    object: Literal["response"]
    created_at: int
    status: Status
    error: None
    incomplete_details: Incomplete | None
    instructions: str | None
    max_output_tokens: int | None
    metadata: dict[str, str]
    model: str
    output: list[OutputItem]
    parallel_tool_calls: bool
    previous_response_id: None
    store: bool
    temperature: float
    text: dict[str, Any]
    tool_choice: str | dict[str, Any]
    tools: list[dict[str, Any]]
    top_p: float
    truncation: Literal["disabled"]
    usage: ResponseUsage | None
    holdfast: ResponseSteering


async def write_response(body: ResponsesBody, answer: PendingAnswer, send: Send) -> None:
    """Writes the answer to a request of the Responses API."""
    response = _begin_response(body, answer)
    if not body.stream:
        await send_json(send, await _complete_response(response, answer))
        return
    await start_events(send)
    number = 0
    async for event in _events(response, answer):
        await send_event(send, event | {"sequence_number": number}, event["type"])
        number += 1
    await end_events(send, b"")


async def _complete_response(response: ResponseAnswer, answer: PendingAnswer) -> ResponseAnswer:
    """Waits for the whole reply, and returns the response with it."""
    reply = await join_deltas(answer.deltas(answer.choices[0]))
    output = [_call_item(call) for call in reply.calls]
    is_call_alone = answer.submission.is_call_forced and reply.calls
    if not is_call_alone:
        output.insert(0, _with_text(_empty_message(), reply.text, _status(reply)))
    return _end_response(response, answer, reply, output)


async def _events(response: ResponseAnswer, answer: PendingAnswer) -> AsyncIterator[ResponsesEvent]:
    """Yields the events of a response, without their numbers."""
    yield {"type": "response.created", "response": response}
    yield {"type": "response.in_progress", "response": response}
    message = _empty_message()
    text = ""
    last = Delta()
    output = list[OutputItem]()
    has_message = not answer.submission.is_call_forced
    if has_message:
        for event in _begin_message(message):
            yield event
    async with aclosing(answer.deltas(answer.choices[0])) as deltas:
        async for last in deltas:
            text += last.text
            if last.text and has_message:
                yield _delta_event(message, last.text)
    if not has_message and not last.calls:  # the reply was cut before the end of the call
        has_message = True
        for event in _begin_message(message):
            yield event
        yield _delta_event(message, text)
    if has_message:
        output.append(_with_text(message, text, _status(last)))
        for event in _end_message(output[0], text):
            yield event
    for call in last.calls:
        item = _call_item(call)
        for event in _call_events(item, len(output)):
            yield event
        output.append(item)
    whole = _end_response(response, answer, last, output)
    yield {"type": f"response.{whole['status']}", "response": whole}


def _begin_message(message: OutputItem) -> Iterator[ResponsesEvent]:
    """Yields the events before the text of a message."""
    yield {"type": "response.output_item.added", "output_index": 0, "item": message}
    yield {"type": "response.content_part.added", **_text_position(message), "part": _part("")}


def _delta_event(message: OutputItem, delta: str) -> ResponsesEvent:
    """The event of a piece of a message's text."""
    fields = {**_text_position(message), "delta": delta, "logprobs": []}
    return {"type": "response.output_text.delta", **fields}


def _end_message(message: OutputItem, text: str) -> Iterator[ResponsesEvent]:
    """Yields the events after the text of a message."""
    position = _text_position(message)
    yield {"type": "response.output_text.done", **position, "text": text, "logprobs": []}
    yield {"type": "response.content_part.done", **position, "part": _part(text)}
    yield {"type": "response.output_item.done", "output_index": 0, "item": message}


def _text_position(message: OutputItem) -> ResponsesEvent:
    """The position of a message's text: the only part of the first item."""
    return {"item_id": message["id"], "output_index": 0, "content_index": 0}


def _call_events(call: OutputItem, index: int) -> Iterator[ResponsesEvent]:
    """Yields the events of a tool call, which is sent as a whole."""
    position = {"item_id": call["id"], "output_index": index}
    name = call["name"]
    arguments = call["arguments"]
    item = {**call, "arguments": "", "status": "in_progress"}
    yield {"type": "response.output_item.added", "output_index": index, "item": item}
    yield {"type": "response.function_call_arguments.delta", **position, "delta": arguments}
    whole = {"arguments": arguments, "name": name}
    yield {"type": "response.function_call_arguments.done", **position, **whole}
    yield {"type": "response.output_item.done", "output_index": index, "item": call}


def _begin_response(body: ResponsesBody, answer: PendingAnswer) -> ResponseAnswer:
    """The response before any of its output is generated."""
    options = {} if body.text is None else body.text.model_dump(exclude_none=True)
    choice = body.tool_choice
    return {
        "id": _new_id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": body.instructions,
        "max_output_tokens": body.max_output_tokens,
        "metadata": body.metadata or {},
        "model": answer.service.name,
        "output": [],
        "parallel_tool_calls": body.parallel_tool_calls,
        "previous_response_id": None,
        "store": False,  # whatever the request says
        "temperature": body.temperature,
        "text": {"format": {"type": "text"}, **options},
        "tool_choice": choice if isinstance(choice, str) else choice.model_dump(),
        "tools": [tool.model_dump() for tool in body.tools],
        "top_p": body.top_p,
        "truncation": "disabled",
        "usage": None,
        "holdfast": {**answer.steering},
    }


def _end_response(
    response: ResponseAnswer, answer: PendingAnswer, last: Delta, output: list[OutputItem]
) -> ResponseAnswer:
    """The response with its whole output and its token counts."""
    usage = answer.usage
    steering = response["holdfast"]
    if last.unparsed:
        steering = {**steering, "unparsed_call": True}
    status = _status(last)
    return {
        **response,
        "status": status,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "output": output,
        "usage": {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": {**usage["prompt_tokens_details"]},
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage["total_tokens"],
        },
        "holdfast": steering,
    }


def _status(last: Delta) -> Status:
    return "incomplete" if last.finish_reason == "length" else "completed"


def _empty_message() -> OutputItem:
    return {
        "id": _new_id("msg"),
        "type": "message",
        "status": "in_progress",
        "role": "assistant",
        "content": [],
    }


def _with_text(message: OutputItem, text: str, status: Status) -> OutputItem:
    return {**message, "status": status, "content": [_part(text)]}


def _part(text: str) -> OutputText:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _call_item(call: ParsedCall) -> OutputItem:
    return {
        "id": _new_id("fc"),
        "type": "function_call",
        "status": "completed",
        "call_id": call["id"],
        "name": call["function"]["name"],
        "arguments": call["function"]["arguments"],
    }


def _new_id(prefix: str) -> str:
    return f"{prefix}_{secrets.token_hex(12)}"
