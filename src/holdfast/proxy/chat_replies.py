"""Replies of OpenAI's two chat APIs, complete or streamed, as the API's complete answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.proxy.chat_requests import Api

_ENDS = ("response.completed", "response.incomplete")  # events that hold the whole response


def read_answers(api: Api, content_type: str, text: str) -> list[Mapping[str, Any]]:
    """The answers in the body of a response, one for each choice, without those that broke off.

    Clients close a stream at its last event, so a reply may be whole though its body is not.
    """
    if content_type.partition(";")[0].strip().lower() == "text/event-stream":
        return _streamed_choices(text) if api is Api.CHAT else _streamed_response(text)
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return []
    if not isinstance(answer, dict):
        return []
    if api is Api.CHAT:
        return [{"choices": [choice]} for choice in _choices_in(answer)]
    return [answer] if answer.get("output") else []


def _events(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a stream of server-sent events."""
    for line in text.split("\n"):  # not splitlines, as JSON may hold other separators of lines
        if line.startswith("data:"):
            try:
                value = json.loads(line[5:])
            except (ValueError, RecursionError):
                continue  # [DONE]
            if isinstance(value, dict):
                yield value


def _streamed_response(text: str) -> list[Mapping[str, Any]]:
    """The Responses API repeats the whole response in the last event."""
    whole = (event.get("response") for event in _events(text) if event.get("type") in _ENDS)
    return [response for response in whole if isinstance(response, dict)]


def _streamed_choices(text: str) -> list[Mapping[str, Any]]:
    choices = dict[int, _Choice]()
    for event in _events(text):
        for part in _choices_in(event):
            choices.setdefault(_index(part, 0), _Choice()).add(part)
    return [choice.answer for choice in choices.values() if choice.finish_reason]


class _Choice:
    """A choice of a streamed chat completion, as far as it has come."""

    def __init__(self) -> None:
        self.finish_reason: str | None = None
        self._texts: dict[str, str] = {"content": "", "refusal": ""}
        self._calls: dict[int, dict[str, str]] = {}

    def add(self, part: Mapping[str, Any]) -> None:
        delta = _object(part.get("delta"))
        for name in self._texts:
            self._texts[name] += _text(delta.get(name))
        for number, call in enumerate(_objects(delta.get("tool_calls"))):
            known = self._calls.setdefault(
                _index(call, number), {"id": "", "name": "", "arguments": ""}
            )
            function = _object(call.get("function"))
            known["id"] = _text(call.get("id")) or known["id"]
            known["name"] += _text(function.get("name"))
            known["arguments"] += _text(function.get("arguments"))
        self.finish_reason = _text(part.get("finish_reason")) or self.finish_reason

    @property
    def answer(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self._texts["content"]}
        if self._texts["refusal"] and not message["content"]:
            message["content"] = self._texts["refusal"]
        if self._calls:
            message["tool_calls"] = [
                {"id": call["id"], "type": "function", "function": call}
                for call in self._calls.values()
            ]
        return {"choices": [{"message": message, "finish_reason": self.finish_reason}]}


def _choices_in(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The choices that have the form of one."""
    return _objects(answer.get("choices"))


def _objects(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list; none of anything else."""
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _index(part: Mapping[str, Any], default: int) -> int:
    """Which choice, or which call, a part of a stream belongs to."""
    index = part.get("index", default)
    return index if isinstance(index, int) else default


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
