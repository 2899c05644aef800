"""Reads replies of OpenAI's two chat APIs, streamed or not, as the API's complete answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.chat.chat_completions import AssistantMessage, ToolCallText, choices_in, index_of
from holdfast.proxy.chat_requests import Api
from holdfast.validation.json_values import fields_of, objects_in, text_or_empty

_ENDS = ("response.completed", "response.incomplete")  # events with the whole response
_ITEM_DONE = "response.output_item.done"
# items of the Responses API whose result the client has to send; the server runs other tools itself
_AWAITING_CLIENT = (
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "computer_call",
    "mcp_approval_request",
)
_FILTERED = "content_filter"
_LINE_END = re.compile(r"\r\n|\n|\r")  # JSON may contain the other separators of `splitlines`


def read_answers(api: Api, text: str) -> list[Mapping[str, Any]]:
    """Reads the answers in the body of a response, one per choice.

    Answers that broke off, or that a content filter cut, are left out. Clients close a stream at
    its last event, so a reply may be complete although the body is not. Whether the body is a
    stream is seen in the body, as its Content-Type may be wrong.
    """
    text = text.removeprefix("\ufeff")
    try:
        answer = json.loads(text)
    except RecursionError:
        return []
    except ValueError:
        return _read_stream(api, text)
    if not isinstance(answer, dict):
        return []
    if api is Api.CHAT:
        choices = choices_in(answer)
        return [{"choices": [c]} for c in choices if c.get("finish_reason") != _FILTERED]
    return [answer] if _is_whole(answer) and answer.get("output") else []


def waits_for_client(output: Any) -> bool:
    """Whether an output of the Responses API has a call whose result the client has to send."""
    items = objects_in(output)
    done = [item.get("call_id") for item in items if str(item.get("type")).endswith("_output")]
    waiting = [item for item in items if item.get("type") in _AWAITING_CLIENT]
    return any(item.get("call_id") not in done for item in waiting)


def _is_whole(response: Mapping[str, Any]) -> bool:
    """Whether a response is complete: it neither failed nor continues in the background."""
    has_ended = (response.get("status") or "completed") in ("completed", "incomplete")
    return has_ended and fields_of(response.get("incomplete_details")).get("reason") != _FILTERED


def _read_stream(api: Api, text: str) -> list[Mapping[str, Any]]:
    """Reads the answers in a stream; [] if a part of it may be missing."""
    try:
        events = [*_events(text)]
    except (ValueError, RecursionError):
        return []
    return _streamed_choices(events) if api is Api.CHAT else _streamed_response(events)


def _events(text: str) -> Iterator[dict[str, Any]]:
    """Yields the JSON objects in a stream of server-sent events.

    An event without its end is left out, as clients leave it out.

    Raises:
        ValueError: the data of an event is not JSON.
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
    """Returns the whole response from the last event of the Responses API.

    Some servers leave out its items there; these are taken from the events before.
    """
    items = [fields_of(event.get("item")) for event in events if event.get("type") == _ITEM_DONE]
    ends = [fields_of(event.get("response")) for event in events if event.get("type") in _ENDS]
    whole = [{**end, "output": end.get("output") or items} for end in ends if _is_whole(end)]
    return [response for response in whole if response["output"]]


def _streamed_choices(events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Joins the parts of the choices in a stream; choices that broke off are left out."""
    choices = dict[int, _StreamedChoice]()
    for event in events:
        for part in choices_in(event):
            choices.setdefault(index_of(part, default=0), _StreamedChoice()).add(part)
    ended = [choice for choice in choices.values() if choice.finish_reason]
    return [choice.answer for choice in ended if choice.finish_reason != _FILTERED]


class _StreamedChoice:
    """A choice of a streamed chat completion, as far as it has arrived."""

    def __init__(self) -> None:
        self.finish_reason = ""
        self._message = AssistantMessage(is_strict=False)

    def add(self, part: Mapping[str, Any]) -> None:
        """Adds the next part of the choice."""
        self._message.add(fields_of(part.get("delta")))
        self.finish_reason = text_or_empty(part.get("finish_reason")) or self.finish_reason

    @property
    def answer(self) -> dict[str, Any]:
        """The choice as a complete answer of the API."""
        message: dict[str, Any] = {"role": "assistant", "content": self._message.text}
        if self._message.calls:
            calls = self._message.calls.values()
            message["tool_calls"] = [_whole_call(call) for call in calls]
        return {"choices": [{"message": message, "finish_reason": self.finish_reason}]}


def _whole_call(call: ToolCallText) -> dict[str, Any]:
    """Returns a tool call whose parts have all arrived, as the API writes it."""
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}
