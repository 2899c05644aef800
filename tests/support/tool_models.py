"""Tiny models that call tools, each with a template that says how its calls are written."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import tiny

from holdfast.models.local import LocalModel

TOOLED = replace(tiny.model(), tokenizer=tiny.tokenizer(tiny.TOOLED))  # cannot read its own calls
# as the chat template of `TOOLED` writes a call: <tool_call>{"name": ..., "arguments": ...}
CALLS_IN_TAGS = {
    "open_pattern": r"\s*<tool_call>",
    "close": "</tool_call>",
    "repeats": True,
    "content": "json",
    "transform": {"type": "function", "function": "{content}"},
}
NUMBERED = {
    "type": "object",
    "properties": {"x": {"enum": [1, 2]}},
    "required": ["x"],
    "additionalProperties": False,
}

# of a response format
POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer", "maximum": 99, "minimum": 0}, "at": {"enum": ["sea"]}},
    "required": ["x", "at"],
    "additionalProperties": False,
}


def tool(name: str, parameters: Mapping[str, Any] = NUMBERED, **fields: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters, **fields}}


TOOLS = [tool("add"), tool("look_up")]


def calling_model(tool_calls: Mapping[str, Any] = CALLS_IN_TAGS) -> LocalModel:
    """A model whose response template finds calls of tools as `tool_calls` says."""
    tokenizer = copy.deepcopy(TOOLED.tokenizer)
    fields = {"content": {"content": "text"}, "tool_calls": tool_calls}
    tokenizer.response_template = {"start_anchor": "<assistant>", "fields": fields}
    return replace(TOOLED, tokenizer=tokenizer)
