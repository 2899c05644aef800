"""Formats in which every value is a dialog: the requests of chat APIs, ShareGPT, ATIF, and runs."""

from collections.abc import Mapping
from typing import Any

from holdfast.drift.messages import LoggedMessage, Malformed, read_messages
from holdfast.errors import shortened
from holdfast.logs.reading import answer_messages, at, entries, field_of, mapping, system_prompt
from holdfast.measures.turns import ToolCall


def read_listed(value: Any) -> list[LoggedMessage]:
    """A list of messages, or an object that has them and perhaps the system prompt."""
    items = value if isinstance(value, list) else field_of(value, "messages", "conversations")
    beside = value.get("system") if isinstance(value, Mapping) else None
    return [*system_prompt(beside), *read_messages(items)]


def read_responses(value: Any) -> list[LoggedMessage]:
    """OpenAI's Responses API: a request with its response, or a list of items."""
    if isinstance(value, list):
        return read_messages(value)
    given = field_of(value, "input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    output = value.get("output") or []
    return [
        *system_prompt(value.get("instructions")),
        *read_messages(items),
        *(answer_messages(value) if output else []),
    ]


def read_gemini(value: Any) -> list[LoggedMessage]:
    """Gemini's API: a request's `contents`, and perhaps the response to it."""
    instruction = next(
        (value[name] for name in ("systemInstruction", "system_instruction") if value.get(name)), ""
    )
    if isinstance(instruction, Mapping):
        instruction = instruction.get("parts")
    answer = value if "candidates" in value else value.get("response")
    contents = field_of(value, "contents")
    items = contents if isinstance(contents, list) else [contents]
    # the role may be left out of a single message of the user
    given = read_messages([{"role": "user", **mapping(item)} for item in items])
    return [*system_prompt(instruction), *given, *answer_messages(answer)]


_ATIF_ROLES = {"system": "system", "user": "user", "agent": "assistant"}


def read_atif(value: Any) -> list[LoggedMessage]:
    """ATIF, the Agent Trajectory Interchange Format: an agent's steps."""
    messages: list[LoggedMessage] = []
    for number, step in enumerate(entries(field_of(value, "steps")), start=1):
        role = _ATIF_ROLES.get(str(mapping(step).get("source")))
        if role is None:
            known = ", ".join(_ATIF_ROLES)
            raise Malformed(
                f"step {number} has the source {shortened(step.get('source'))}; known are {known}"
            )
        (message,) = read_messages([{"role": role, "content": step.get("message") or ""}])
        if step.get("is_copied_context"):  # of an earlier trajectory, which has its scores
            role = "system" if role == "system" else "context"
            messages.append(LoggedMessage(role, message.text))
            continue
        calls = tuple(
            ToolCall(
                str(field_of(call, "function_name")),
                mapping(call.get("arguments") or {}),
                str(call.get("tool_call_id", "")),
            )
            for call in entries(step.get("tool_calls"))
        )
        messages.append(LoggedMessage(role, message.text, calls))
        for result in entries(at(step, "observation", "results")):
            content = mapping(result).get("content") or ""
            messages += read_messages([{"role": "tool", "content": content}])
    return messages


_SPEAKERS = {"user": "user", "agent": "assistant"}


def read_run(value: Any) -> list[LoggedMessage]:
    """A conversation of a run, from its `records.jsonl`."""
    turns = [
        {
            "role": _SPEAKERS.get(field_of(turn, "speaker")),
            "content": field_of(turn, "text"),
            "stop_reason": turn.get("stop_reason"),
        }
        for turn in field_of(value, "turns")
    ]
    prompt = field_of(field_of(value, "agent"), "system_prompt")
    return [*system_prompt(prompt), *read_messages(turns)]
