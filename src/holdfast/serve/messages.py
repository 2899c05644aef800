"""The messages of a chat completion: OpenAI's forms of them, read into plain ones."""

from __future__ import annotations

from typing import Any

from holdfast.chat.messages import Message, shortened
from holdfast.serve.fields import Field, Schema, read_list, read_text
from holdfast.serve.refusals import Refusal, refused_field

ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
# what OpenAI's clients send back of an assistant's message, with nothing in it
_EMPTY = ("refusal", "audio", "function_call", "tool_calls", "annotations", "name")
_PART: Schema = {
    "type": "object",
    "properties": {"type": {"const": "text"}, "text": {"type": "string"}},
    "required": ["type", "text"],
    "additionalProperties": False,
}
_JOINT = "\n"  # between the texts of one message, as vLLM puts them together


def messages_field(most: int) -> Field:
    """The chat so far, of at most so many messages; the body's size bounds their texts."""

    def read(name: str, value: Any) -> list[Message]:
        given = read_list(name, value, 1, most)
        return [_read_message(f"{name}[{number}]", message) for number, message in enumerate(given)]

    schema: Schema = {
        "type": "array",
        "minItems": 1,
        "maxItems": most,
        "items": {
            "type": "object",
            "properties": {
                "role": {"type": "string", "enum": list(ROLES)},
                "content": {
                    "anyOf": [
                        {"type": "string"},
                        {"type": "array", "minItems": 1, "items": _PART},
                    ]
                },
                **{name: {"enum": [None, []]} for name in _EMPTY},
            },
            "required": ["role", "content"],
            "additionalProperties": False,
        },
    }
    return Field(
        "messages", read, schema, "The chat so far; `developer` is read as `system`.", required=True
    )


def rounds(messages: list[Message]) -> int:
    """Which round of the dialog is being answered: the number of user messages."""
    return sum(message["role"] == "user" for message in messages)


def _read_message(where: str, message: Any) -> Message:
    if not isinstance(message, dict):
        raise refused_field(
            where,
            f'{where} is {shortened(message)}; write {{"role": "user", "content": "Hello."}}.',
        )
    role = message.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise refused_field(
            f"{where}.role",
            f"{where} has the role {shortened(role)}; use {', '.join(ROLES)}.",
            "unsupported" if role in ("tool", "function") else "invalid_value",
        )
    for name, value in message.items():
        if name in ("role", "content") or (name in _EMPTY and value in (None, [])):
            continue
        raise refused_field(
            f"{where}.{name[:60]}",
            f"{where} has {shortened(name)}, which is not implemented here; leave it out.",
            "unsupported",
        )
    return {"role": ROLES[role], "content": _read_content(where, message.get("content"))}


def _read_content(where: str, content: Any) -> str:
    if not isinstance(content, list):
        return read_text(f"{where}.content", content)
    parts = read_list(f"{where}.content", content, 1, 1000)
    texts = [_read_part(f"{where}.content[{n}]", part) for n, part in enumerate(parts)]
    return _JOINT.join(texts)


def _read_part(where: str, part: Any) -> str:
    if isinstance(part, dict) and part.get("type") == "text" and part.keys() == {"type", "text"}:
        return read_text(f"{where}.text", part["text"])
    kind = part.get("type") if isinstance(part, dict) else None
    raise Refusal(
        f"{where} is {shortened(kind if isinstance(kind, str) else part)}, and this server reads"
        ' text alone; write {"type": "text", "text": "..."}.',
        where,
        "unsupported",
    )
