"""Converts the messages of opencode 2 to the form of version 1, which the reader takes.

The `type` of a message says who wrote it, and a reply has its parts in `content`. The database
keeps messages in the table `session_message`.
"""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from holdfast.transcripts.content_texts import text_of
from holdfast.transcripts.json_fields import (
    at,
    decode_json,
    first_of,
    list_or_empty,
    optional_list,
    require_object,
)
from holdfast.validation.json_values import fields_of, text_or_empty

_BY_OPENCODE = ("synthetic", "system", "skill")
_FOR_DISPLAY = ("agent-switched", "model-switched", "location-switched")
_TYPES = ("user", "assistant", "shell", "compaction", "idle", *_BY_OPENCODE, *_FOR_DISPLAY)
_REFUSED = "permission.rejected"  # the type of the error of a call that never ran
_TEXT_TYPES = ("text/plain", "application/x-directory")
_ABORTED = "MessageAbortedError"  # version 1's name for an interruption


def is_of_version_2(value: Any) -> bool:
    """Whether a value is a message of version 2."""
    return _has_type(value) and fields_of(value)["type"] in _TYPES


def _has_type(value: Any) -> bool:
    """Whether a value has the fields that all messages of version 2 have."""
    fields = fields_of(value)
    is_typed = isinstance(fields.get("type"), str) and isinstance(fields.get("id"), str)
    return is_typed and not fields.keys() & {"role", "info", "message", "parts"}


def convert_to_version_1(values: Iterable[Any]) -> Iterator[Any]:
    """Converts the messages of a session to version 1; those that have it are left as they are.

    Raises:
        Malformed: a part of a message cannot be read.
    """
    for value in values:
        if not _has_type(value):
            yield value
        elif (message := _convert_message(value)) is not None:
            yield message


def _convert_message(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """Converts a message; None if it is only for display. Unknown types become unknown parts."""
    text = str(message.get("text") or "")
    match message["type"]:
        case "user":
            files = map(_part_of_file, optional_list(message.get("files")))
            parts = [{"type": "text", "text": text}, *files]
            return _with_parts(message, "user", parts)
        case "shell":  # a command that the user ran
            output = at(message, "output", "output") or message.get("output") or ""
            part = _part_by_opencode(f"{message.get('command')}\n{output}")
            return _with_parts(message, "user", [part])
        case "compaction" if message.get("status") in (None, "completed"):
            texts = (message.get(name) for name in ("summary", "recent"))
            summary = "\n\n".join(text for text in texts if isinstance(text, str) and text)
            parts = [{"type": "text", "text": summary}]
            return _with_parts(message, "assistant", parts, summary=True)
        case "assistant":
            content = optional_list(message.get("content"))
            parts = [_convert_part(require_object(part)) for part in content]
            error = _error(message.get("error"))
            return _with_parts(message, "assistant", parts, finish=message.get("finish"), **error)
        case "idle" if message.get("outcome") == "interrupted":
            return _with_parts(message, "assistant", [], error={"name": _ABORTED})
        case kind if kind in _BY_OPENCODE:
            return _with_parts(message, "user", [_part_by_opencode(text)])
        case kind if kind not in _TYPES:
            return _with_parts(message, "user", [{"type": kind}])
    return None


def _with_parts(
    message: Mapping[str, Any], role: str, parts: list[dict[str, Any]], **info: Any
) -> dict[str, Any]:
    """Returns a message of version 1; `info` are fields that only some messages have."""
    base = {"id": message["id"], "time": message.get("time"), "role": role}
    return {"info": {**base, **info}, "parts": parts}


def _part_by_opencode(text: str) -> dict[str, Any]:
    """Returns a text that opencode put into the context, and nobody said."""
    return {"type": "text", "text": text, "synthetic": True}


def _part_of_file(file: Any) -> dict[str, Any]:
    """Returns the text of a file that the user attached, or a part for a file that is not text."""
    data = at(file, "data")
    media_type = at(file, "mime")
    if media_type in _TEXT_TYPES and isinstance(data, str):
        with suppress(ValueError):
            return _part_by_opencode(base64.b64decode(data).decode("utf-8", "replace"))
    return {"type": "file", "mime": media_type}


def _convert_part(part: Mapping[str, Any]) -> dict[str, Any]:
    """Converts a part of a reply."""
    if part.get("type") != "tool":
        return dict(part)
    state = fields_of(part.get("state"))
    content = list_or_empty(state.get("content"))
    text = text_of(content)
    state_of_version_1 = {
        "status": state.get("status"),
        "input": decode_json(state.get("input")),
        "output": text if content else _result_without_content(state),
        "error": "\n".join(filter(None, (text_or_empty(at(state, "error", "message")), text))),
        "attachments": [item for item in content if at(item, "type") == "file"],
        "isRefused": at(state, "error", "type") == _REFUSED,
        "time": {"compacted": at(part, "time", "pruned")},
    }
    names = {"tool": part.get("name"), "callID": part.get("id")}
    return {"type": "tool", **names, "state": state_of_version_1}


def _result_without_content(state: Mapping[str, Any]) -> str:
    """Returns what the model saw of a result that has no content: a text, or a value as JSON."""
    result = first_of(state, "result", "structured", default="")
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


def _error(error: Any) -> dict[str, Any]:
    """Returns the error that ended a reply as a field of its info; {} if there is none."""
    if not error:
        return {}
    name = str(at(error, "type") or "UnknownError")
    is_abort = "abort" in name.lower()
    return {
        "error": {
            "name": _ABORTED if is_abort else name,
            "data": {"message": at(error, "message")},
        }
    }
