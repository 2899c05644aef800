"""The formats of logs: how each is recognised, and its reader.

A value in a file is a dialog, a call of a model, or an event; the events of a session make up a
dialog.
"""

from collections.abc import Mapping
from typing import Any

from holdfast.drift.messages import is_message
from holdfast.logs.chats import read_atif, read_gemini, read_listed, read_responses, read_run
from holdfast.logs.claude_code import read_claude_code
from holdfast.logs.codex import read_exec, read_rollout
from holdfast.logs.exports import read_chatgpt, read_claude_ai, read_librechat, read_open_webui
from holdfast.logs.gemini_cli import read_gemini_cli
from holdfast.logs.reading import Reader, at, dialog_per_value
from holdfast.logs.traces import (
    ANSWERS,
    is_otel_span,
    read_langfuse,
    read_langsmith,
    read_litellm,
    read_otel,
    read_otlp,
    read_phoenix,
)

FORMATS: dict[str, Reader] = {
    "openai": dialog_per_value(read_listed),
    "responses": dialog_per_value(read_responses),
    "anthropic": dialog_per_value(read_listed),
    "gemini": dialog_per_value(read_gemini),
    "ai-sdk": dialog_per_value(read_listed),
    "sharegpt": dialog_per_value(read_listed),
    "atif": dialog_per_value(read_atif),
    "litellm": read_litellm,
    "langfuse": read_langfuse,
    "langsmith": read_langsmith,
    "phoenix": read_phoenix,
    "otel": read_otel,
    "otlp": read_otlp,
    "claude-code": read_claude_code,
    "codex": read_rollout,
    "codex-exec": read_exec,
    "gemini-cli": read_gemini_cli,
    "chatgpt": read_chatgpt,
    "claude-ai": read_claude_ai,
    "open-webui": read_open_webui,
    "librechat": read_librechat,
    "run": dialog_per_value(read_run),
}

# whose values are events of a session, beside lines that are of no dialog and have a `type`
EVENTS = {"claude-code", "codex", "codex-exec", "gemini-cli"}

_CLAUDE_EVENTS = ("user", "assistant", "system", "summary", "progress", "attachment")
_CODEX_EVENTS = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_CODEX_EXEC_EVENTS = ("thread.", "turn.", "item.")
_LANGFUSE_TYPES = ("GENERATION", "SPAN", "EVENT")
_GEMINI_CLI_TYPES = ("user", "gemini", "info", "warning", "error")


def format_of(value: Any) -> str | None:
    """The format of a value, recognised by its fields; None if it is in none."""
    if isinstance(value, list):
        return _format_of_messages(value)
    if not isinstance(value, Mapping):
        return None
    return _format_of_session(value) or _format_of_dialog(value) or _format_of_call(value)


def _format_of_messages(messages: list[Any]) -> str | None:
    first: Any = messages[0] if messages else None
    if not is_message(first):
        return None
    if "from" in first:
        return "sharegpt"
    if isinstance(first.get("parts"), list):
        return "ai-sdk"
    return "responses" if "type" in first and "role" not in first else "openai"


def _format_of_dialog(value: Mapping[str, Any]) -> str | None:
    """The format of a value that is a dialog, or a request."""
    fields = value.keys()
    if {"method", "conversation", "agent", "turns"} <= fields:
        return "run"
    if "conversations" in fields:
        return "sharegpt"
    if isinstance(value.get("mapping"), Mapping):
        return "chatgpt"
    if isinstance(value.get("chat_messages"), list):
        return "claude-ai"
    if isinstance(at(value, "chat", "history") or at(value, "chat", "messages"), (Mapping, list)):
        return "open-webui"
    if "steps" in fields and str(value.get("schema_version", "ATIF")).startswith("ATIF"):
        return "atif"
    if "contents" in fields:
        return "gemini"
    messages = value.get("messages")
    if isinstance(messages, list) and "run_type" not in fields:
        return _format_with_messages(value, messages)
    return None


def _format_with_messages(value: Mapping[str, Any], messages: list[Any]) -> str:
    first: Any = messages[0] if messages and isinstance(messages[0], Mapping) else {}
    if {"messageId", "isCreatedByUser"} <= first.keys():
        return "librechat"
    if any(value.get(name) for name in ANSWERS) or "call_type" in value:
        return "litellm"
    if isinstance(first.get("parts"), list):
        return "ai-sdk"
    if "from" in first:
        return "sharegpt"
    return "anthropic" if "system" in value or _has_blocks(messages) else "openai"


def _format_of_session(value: Mapping[str, Any]) -> str | None:
    """The format of a value that is a session of a coding agent, or an event of one."""
    fields, kind = value.keys(), value.get("type")
    if "sessionId" in fields and "projectHash" in fields:
        return "gemini-cli"
    if {"$set", "$rewindTo"} & fields:
        return "gemini-cli"
    if kind in _GEMINI_CLI_TYPES and {"id", "timestamp", "content"} <= fields:
        return "gemini-cli"
    if kind in _CODEX_EVENTS and "payload" in fields:
        return "codex"
    if isinstance(kind, str) and kind.startswith(_CODEX_EXEC_EVENTS):
        return "codex-exec"
    if {"traceId", "trace_id", "messages"} & fields or kind in _LANGFUSE_TYPES:
        return None
    if "sessionId" in fields and ("type" in fields or "message" in fields):
        return "claude-code"
    if kind in _CLAUDE_EVENTS and isinstance(value.get("message"), Mapping):
        return "claude-code"
    return None


def _format_of_call(value: Mapping[str, Any]) -> str | None:
    """The format of a value that is a call of a model, or a span of a trace."""
    fields = value.keys()
    if "resourceSpans" in fields:
        return "otlp"
    if "run_type" in fields:
        return "langsmith"
    if isinstance(at(value, "request", "messages"), list) and set(ANSWERS) & fields:
        return "litellm"
    if is_otel_span(value):
        return "otel"
    if "context" in fields or "attributes" in fields or "context.trace_id" in fields:
        return "phoenix"
    if {"traceId", "trace_id"} & fields or "observations" in fields:
        return "langfuse"
    if value.get("type") in _LANGFUSE_TYPES:
        return "langfuse"
    if "input" in fields and ("output" in fields or "instructions" in fields):
        return "responses"
    return None


def _has_blocks(messages: list[Any]) -> bool:
    blocks = (
        block
        for message in messages
        if isinstance(message, Mapping) and isinstance(message.get("content"), list)
        for block in message["content"]
    )
    kinds = ("tool_use", "tool_result", "thinking")
    return any(isinstance(block, Mapping) and block.get("type") in kinds for block in blocks)


def may_be(value: Any, form: str) -> bool:
    """Whether a value can be read in a format: it is in that one, in none, or in both."""
    detected = format_of(value)
    if detected in (form, None):
        return True
    # messages of a user and an assistant with nothing else are the same in these APIs
    return detected == "openai" and form in ("anthropic", "responses") and _is_plain(value, form)


def _is_plain(value: Any, form: str) -> bool:
    messages = value if isinstance(value, list) else value["messages"]
    if form == "responses":
        return isinstance(value, list)
    return all(
        isinstance(message, Mapping)
        and message.get("role") in ("user", "assistant")
        and not {"tool_calls", "function_call"} & message.keys()
        for message in messages
    )
