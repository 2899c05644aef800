"""Gives a role to a message of LangChain, which names its class or type in place of one.

For example:

    {"type": "human", "data": {"content": "Hi"}}
    {"type": "constructor", "id": [..., "HumanMessage"], "kwargs": {"content": "Hi"}}
    -> {"role": "human", "content": "Hi"} and {"role": "HumanMessage", "content": "Hi"}
"""

import re
from collections.abc import Mapping
from typing import Any

from holdfast.validation.json_values import fields_of

_TYPES = ("system", "human", "ai", "tool", "function")
_CLASS = re.compile(rf"({'|'.join(_TYPES)})message(?:chunk)?")


def type_of_class(name: str) -> str | None:
    """Returns the type that belongs to a class of messages, such as `ai` to `aimessagechunk`.

    Args:
        name: the name of the class in lower case.
    """
    match = _CLASS.fullmatch(name)
    return match[1] if match else None


def with_langchain_role(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Gives a message of LangChain a role; it has one of three forms. Others are left unchanged."""
    if not _is_of_langchain(item):
        return item
    role = item["type"]
    if role == "constructor":  # a serialised object, whose class is the last name of its path
        path = item.get("id")
        role = path[-1] if isinstance(path, list) and path else None
        fields = item["kwargs"]
    elif isinstance(item.get("data"), Mapping):
        fields = item["data"]
    else:
        fields = item
    message = {name: value for name, value in fields.items() if name != "type"}
    message["role"] = role
    extra = fields_of(fields.get("additional_kwargs"))  # a provider's calls, in its own form
    if not fields.get("tool_calls"):
        for name in ("tool_calls", "function_call"):
            if extra.get(name):
                message[name] = extra[name]
    return message


def _is_of_langchain(item: Mapping[str, Any]) -> bool:
    """Whether an object is a message as LangChain writes it."""
    kind = item.get("type")
    if kind == "constructor":
        return isinstance(item.get("kwargs"), Mapping)
    if not isinstance(kind, str) or "role" in item:
        return False
    if "sessionId" in item:  # an event of Claude Code, which has the type "system" too
        return False
    if kind not in _TYPES and type_of_class(kind.lower()) is None:
        return False
    return isinstance(item.get("data"), Mapping) or "content" in item
