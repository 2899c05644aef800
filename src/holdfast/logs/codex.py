"""Codex CLI: its rollouts, `~/.codex/sessions/**/rollout-*.jsonl`, and `codex exec --json`."""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.drift.messages import LoggedMessage, Malformed, read_messages
from holdfast.errors import shortened
from holdfast.logs.injected import element_around
from holdfast.logs.reading import (
    Dialogs,
    Values,
    at,
    field_of,
    file_of,
    mapping,
    objects,
    system_prompt,
)
from holdfast.measures.turns import ToolCall

_INSTRUCTIONS = ("<user_instructions>", "# AGENTS.md instructions")  # the project's rules
_INJECTED = (  # elements that Codex writes into messages of the user
    *("environment_context", "turn_aborted", "subagent_notification", "user_shell_command"),
    *("skill", "user_action", "model_switch", "collaboration_mode", "permissions instructions"),
    *("personality_spec", "apps_instructions", "hook_prompt", "goal_context", "image"),
)
_NOT_MESSAGES = ("ghost_snapshot", "compaction_summary", "context_compaction", "other")


def read_rollout(values: Values, problems: list[str]) -> Dialogs:
    """The events of a rollout; those for display, `event_msg`, repeat the messages."""
    events = list(objects(values, problems))
    typed = _typed_by_the_user(events)
    messages: list[LoggedMessage] = []
    begun = False
    for where, event in events:
        kind, payload = event.get("type"), event.get("payload")
        try:
            if kind == "session_meta" and isinstance(payload, Mapping):
                if not begun:  # a fork repeats that of the session that it was forked from
                    base = payload.get("base_instructions") or payload.get("instructions")
                    messages += system_prompt(at(base, "text") or base)
                    if origin := payload.get("forked_from_id"):
                        problems.append(
                            f"{where}: the session was forked from {origin}; turns that both have"
                            " count twice if both are read"
                        )
                begun = True
            elif kind == "compacted":
                messages.append(_compaction(mapping(payload)))
            elif kind == "event_msg" and at(payload, "type") == "thread_rolled_back":
                messages = _rolled_back(messages, at(payload, "num_turns"), where, problems)
            elif kind == "response_item" and at(payload, "type") not in _NOT_MESSAGES:
                messages += [_classified(item, typed) for item in read_messages([payload])]
        except Malformed as error:
            problems.append(f"{where}: {error}")
    yield file_of(values[0][0]), messages


def _typed_by_the_user(events: Sequence[tuple[str, Mapping[str, Any]]]) -> set[str]:
    """The messages that the user typed, according to the events for display."""
    payloads = [event.get("payload") for _, event in events if event.get("type") == "event_msg"]
    texts = (at(p, "message") for p in payloads if at(p, "type") == "user_message")
    return {text.strip() for text in texts if isinstance(text, str)}


def _classified(message: LoggedMessage, typed: set[str]) -> LoggedMessage:
    """A message of the user as what it is: Codex writes some of them itself."""
    if message.role != "user":
        return message
    text = message.text.strip()
    if text.startswith(_INSTRUCTIONS):
        return LoggedMessage("system", message.text)
    element = element_around(text)
    if element in _INJECTED or (element and text not in typed):
        return LoggedMessage("context", message.text)
    return message


def _compaction(payload: Mapping[str, Any]) -> LoggedMessage:
    """The context from a compaction on: what replaces the history, or else its summary."""
    history = payload.get("replacement_history")
    if not isinstance(history, list):
        return LoggedMessage("compaction", str(payload.get("message") or ""))
    items = [item for item in history if at(item, "type") not in _NOT_MESSAGES]
    texts = (item.text for item in read_messages(items))
    return LoggedMessage("compaction", "\n".join(texts))


def _rolled_back(
    messages: list[LoggedMessage], count: Any, where: str, problems: list[str]
) -> list[LoggedMessage]:
    """The messages before the user's last `count` ones, which were taken back."""
    if not isinstance(count, int) or count < 1:
        raise Malformed(f"it takes back {shortened(count)} turns, which is no number")
    starts = [number for number, message in enumerate(messages) if message.role == "user"]
    starts = [n for n in starts if not n or messages[n - 1].role != "user"]  # one turn each
    if not starts:
        return messages
    problems.append(f"{where}: the last turns before it ({count}) were rewound, and are left out")
    kept = messages[: starts[-min(count, len(starts))]]
    return kept + [m for m in messages[len(kept) :] if m.role == "system"]


def read_exec(values: Values, problems: list[str]) -> Dialogs:
    """The output of `codex exec --json`, which has no message of the user."""
    threads: dict[str, list[LoggedMessage]] = {}
    messages = threads.setdefault(file_of(values[0][0]), [])
    for where, event in objects(values, problems):
        kind = event.get("type")
        try:
            if kind == "thread.started":
                name = f"{file_of(where)}, session {field_of(event, 'thread_id')}"
                messages = threads.setdefault(name, [])
            elif kind == "turn.started":
                messages.append(LoggedMessage("user", ""))  # which is not in the output
            elif kind == "item.completed":
                messages += _done(mapping(event.get("item")))
        except Malformed as error:
            problems.append(f"{where}: {error}")
    yield from ((name, messages) for name, messages in threads.items() if messages)


def _done(item: Mapping[str, Any]) -> list[LoggedMessage]:
    kind, call_id = item.get("type"), str(item.get("id", ""))
    if kind == "agent_message":
        return [LoggedMessage("assistant", str(field_of(item, "text")))]
    if kind == "command_execution":
        call = ToolCall("shell", {"command": str(field_of(item, "command"))}, call_id)
        output = str(item.get("aggregated_output") or "")
        return [LoggedMessage("assistant", "", (call,)), LoggedMessage("tool", output)]
    if kind == "file_change":
        changes = field_of(item, "changes")
        calls = tuple(ToolCall("apply_patch", mapping(change), call_id) for change in changes)
        return [LoggedMessage("assistant", "", calls)]
    if kind == "mcp_tool_call":
        given = item.get("arguments")
        arguments = given if isinstance(given, Mapping) else {}
        call = ToolCall(str(field_of(item, "tool")), arguments, call_id)
        return [LoggedMessage("assistant", "", (call,))]
    if kind in ("reasoning", "web_search", "todo_list", "error"):
        return []
    raise Malformed(f"it has an item of the type {shortened(kind)}, which is not read")
