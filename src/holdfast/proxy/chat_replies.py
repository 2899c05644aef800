"""Replies of OpenAI's two chat APIs, complete or streamed, as the API's complete answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.chat.chat_completions import AssistantMessage, ToolCallText, choices_in, index_of
from holdfast.proxy.chat_requests import Api
from holdfast.validation.json_values import fields_of, objects_in, text_or_empty

_ENDS = ("response.completed", "response.incomplete")  # events that hold the whole response
_ITEM_DONE = "response.output_item.done"
# items of the Responses API by which the model waits for the client; it runs other tools itself
_WAITS = (
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "computer_call",
    "mcp_approval_request",
)
_FILTERED = "content_filter"
_LINE_END = re.compile(r"\r\n|\n|\r")  # not splitlines, as JSON may hold other separators of lines


def read_answers(api: Api, text: str) -> list[Mapping[str, Any]]:
    """The answers in the body of a response, one for each choice, without those that broke off or
    were cut off by a content filter.

    Clients close a stream at its last event, so a reply may be whole though its body is not. The
    body says whether it is a stream, as its Content-Type may not.
    """
    text = text.removeprefix("\ufeff")
    try:
        answer = json.loads(text)
    except RecursionError:
        return []
    except ValueError:
        return _streamed(api, text)
    if not isinstance(answer, dict):
        return []
    if api is Api.CHAT:
        choices = choices_in(answer)
        return [{"choices": [c]} for c in choices if c.get("finish_reason") != _FILTERED]
    return [answer] if _is_whole(answer) and answer.get("output") else []


def waits_for_client(output: Any) -> bool:
    """Whether the output of the Responses API has a call whose result has to come from outside."""
    items = objects_in(output)
    done = [item.get("call_id") for item in items if str(item.get("type")).endswith("_output")]
    return any(item.get("type") in _WAITS and item.get("call_id") not in done for item in items)


def _is_whole(response: Mapping[str, Any]) -> bool:
    """Whether a response has ended: it did not fail, and does not go on in the background."""
    has_ended = (response.get("status") or "completed") in ("completed", "incomplete")
    return has_ended and fields_of(response.get("incomplete_details")).get("reason") != _FILTERED


def _streamed(api: Api, text: str) -> list[Mapping[str, Any]]:
    try:
        events = [*_events(text)]
    except (ValueError, RecursionError):  # a part of the reply may be missing
        return []
    return _streamed_choices(events) if api is Api.CHAT else _streamed_response(events)


def _events(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a stream of server-sent events; raises a `ValueError` at other data.

    An event whose end did not come is left out, as clients leave it out.
    """
    data = list[str]()
    for line in _LINE_END.split(text):
        name, _, value = line.partition(":")
        if name == "data":
            data.append(value.removeprefix(" "))
        elif not line:
            whole = "\n".join(data).strip()
            data.clear()
            if whole and whole != "[DONE]" and isinstance(event := json.loads(whole), dict):
                yield event


def _streamed_response(events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The Responses API repeats the whole response in the last event; some servers leave out its
    items, which have come before.
    """
    items = [fields_of(event.get("item")) for event in events if event.get("type") == _ITEM_DONE]
    ends = [fields_of(event.get("response")) for event in events if event.get("type") in _ENDS]
    whole = [{**end, "output": end.get("output") or items} for end in ends if _is_whole(end)]
    return [response for response in whole if response["output"]]


def _streamed_choices(events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    choices = dict[int, _StreamedChoice]()
    for event in events:
        for part in choices_in(event):
            choices.setdefault(index_of(part, default=0), _StreamedChoice()).add(part)
    ended = [choice for choice in choices.values() if choice.finish_reason]
    return [choice.answer for choice in ended if choice.finish_reason != _FILTERED]


class _StreamedChoice:
    """A choice of a streamed chat completion, as far as it has come."""

    def __init__(self) -> None:
        self.finish_reason = ""
        self._message = AssistantMessage(is_strict=False)

    def add(self, part: Mapping[str, Any]) -> None:
        self._message.add(fields_of(part.get("delta")))
        self.finish_reason = text_or_empty(part.get("finish_reason")) or self.finish_reason

    @property
    def answer(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self._message.text}
        if self._message.calls:
            calls = self._message.calls.values()
            message["tool_calls"] = [_whole_call(call) for call in calls]
        return {"choices": [{"message": message, "finish_reason": self.finish_reason}]}


def _whole_call(call: ToolCallText) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}
