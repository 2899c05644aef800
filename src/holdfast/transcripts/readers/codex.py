"""Codex CLI's rollouts, `~/.codex/sessions/**/rollout-*.jsonl`."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from typing import Any

from holdfast.errors import shortened
from holdfast.measures.turns import ToolCall
from holdfast.transcripts.call_messages import system_prompt
from holdfast.transcripts.chat_messages import read_messages
from holdfast.transcripts.content_blocks import CALL_TYPES, text_of
from holdfast.transcripts.injected import element_around, without_elements
from holdfast.transcripts.reader import (
    Format,
    Unread,
    Values,
    at,
    fields_of,
    file_of,
    mapping,
    objects,
)
from holdfast.transcripts.transcript import Event, Kind, Malformed, Transcript, Tree

_KINDS = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_INSTRUCTIONS = ("<user_instructions>", "# AGENTS.md instructions")  # the project's rules
_INJECTED = (  # elements that Codex writes into messages of the user
    *("environment_context", "subagent_notification", "user_shell_command"),
    *("skill", "user_action", "model_switch", "collaboration_mode", "permissions instructions"),
    *("personality_spec", "apps_instructions", "hook_prompt", "goal_context", "image"),
)
_NOT_MESSAGES = ("ghost_snapshot", "compaction_summary", "context_compaction", "other")
_REPEATED = 80_000  # characters of the user's messages that a compaction repeats
# what editors and the app put before the user's words
_BEFORE_REQUEST = re.compile(
    r"\A\s*# (?:Context from my IDE setup|Files mentioned by the user):.*?"
    r"^## My request for Codex:[ \t]*\n?",
    re.DOTALL | re.MULTILINE,
)
_IMAGE = re.compile(r"<image\b[^>]*>\s*(?:</image>\s*|\Z)")  # around the part with the image itself
# the events for display that repeat a message, and whose it is
_SHOWN = {"user_message": "user", "agent_message": "assistant"}
_INTERRUPTED = "turn_aborted"  # the element that says that the user interrupted the assistant


def _recognises(value: Any) -> bool:
    fields = fields_of(value)
    return (fields.get("type") in _KINDS and "payload" in fields) or _is_of_2025(fields)


def _is_of_2025(fields: Mapping[str, Any]) -> bool:
    """Whether a line is of the first rollouts, which had items and their header unwrapped."""
    if "record_type" in fields:
        return True
    if {"id", "timestamp", "instructions"} <= fields.keys():
        return fields.keys() <= {"id", "timestamp", "instructions", "git"}
    kind, content = fields.get("type"), fields.get("content")
    parts = content if isinstance(content, list) else []
    is_message = kind == "message" and all(
        at(part, "type") in ("input_text", "output_text", "input_image") for part in parts
    )
    is_call = kind in (*CALL_TYPES, "function_call_output", "custom_tool_call_output")
    is_reasoning = kind == "reasoning" and "summary" in fields
    return bool(is_message and parts) or (is_call and "call_id" in fields) or is_reasoning


def _wrapped(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """A line as later versions write it."""
    if "payload" in fields or not _is_of_2025(fields):
        return fields
    kind = "response_item" if "type" in fields else "session_meta"
    return {"type": "state" if "record_type" in fields else kind, "payload": fields}


def _read(values: Values) -> Iterator[Transcript | Unread]:
    records, others = objects(values)
    records = [(where, _wrapped(fields)) for where, fields in records]
    yield from others
    sessions = _by_session(records)
    for number, session in enumerate(sessions, start=1):
        count = f", session {number}" if len(sessions) > 1 else ""
        yield from _session(f"{file_of(values[0][0])}{count}", session)


_Records = Sequence[tuple[str, Mapping[str, Any]]]


def _by_session(records: _Records) -> list[_Records]:
    """The records of each session; several are in one file if it was put together. A fork begins
    with the header of the session that it was forked from, behind its own.
    """
    sessions: list[list[tuple[str, Mapping[str, Any]]]] = [[]]
    known: set[str] = set()
    has_items = False
    for where, fields in records:
        if fields.get("type") == "session_meta":
            name = str(at(fields, "payload", "id"))
            if has_items and name not in known:
                sessions.append([])
                has_items = False
            known |= {name, str(at(fields, "payload", "forked_from_id"))}
        has_items = has_items or fields.get("type") == "response_item"
        sessions[-1].append((where, fields))
    return [*sessions]


def _session(name: str, records: _Records) -> Iterator[Transcript | Unread]:
    """The events of a session; those for display, `event_msg`, mostly repeat the messages."""
    typed = _typed_by_the_user(records)
    roles = _roles(records)
    logged = {str(at(fields, "payload", "call_id")) for _, fields in records if _is_item(fields)}
    only_shown = {kind: role for kind, role in _SHOWN.items() if role not in roles}
    tree = Tree()
    begun = False
    written: set[str] = set()  # the items that have an id
    last: Any = None
    for where, fields in records:
        kind, payload = fields.get("type"), fields.get("payload")
        try:
            if kind == "session_meta" and isinstance(payload, Mapping):
                if not begun:  # a fork repeats that of the session that it was forked from
                    base = payload.get("base_instructions") or payload.get("instructions")
                    prompts = system_prompt(at(base, "text") or base)
                    tree.add(replace(event, source=where) for event in prompts)
                begun = True
            elif kind == "compacted":
                said = [event.text for _, event in tree.path() if event.is_by_user]
                tree.add([replace(_compaction(mapping(payload), said), source=where)])
            elif _reaches_back(fields):
                count = at(payload, "num_turns")
                if _roll_back(tree, count):
                    yield Unread(
                        f"{where}: the last turns before it ({count}) were rewound, and are left"
                        " out"
                    )
            elif kind == "response_item" and at(payload, "type") not in _NOT_MESSAGES:
                is_repeat = payload == last and at(payload, "call_id") is not None
                last = payload
                if is_repeat or _is_repeat(mapping(payload), written):
                    continue
                for message in _read_item(payload):
                    tree.add(replace(event, source=where) for event in _classified(message, typed))
            elif kind == "event_msg" and (role := only_shown.get(str(at(payload, "type")))):
                text = str(at(payload, "message") or "")
                tree.add([Event(Kind.MESSAGE, text, role, source=where)])
            elif kind == "event_msg" and str(at(payload, "call_id")) not in logged:
                tree.add(replace(event, source=where) for event in _nested_call(mapping(payload)))
        except Malformed as error:
            yield Unread(f"{where}: {error}")
    is_of_subagent, history = _is_of_subagent(records), _origin(records)
    yield replace(tree.transcript(name), is_of_subagent=is_of_subagent, history=history)


def _is_item(fields: Mapping[str, Any]) -> bool:
    return fields.get("type") == "response_item"


def _nested_call(payload: Mapping[str, Any]) -> list[Event]:
    """A call that only an event for display shows, as a script of the model's made it (the tool
    `exec` of code mode), and its result.
    """
    call_id = str(payload.get("call_id") or "")
    name, result = "", str(payload.get("aggregated_output") or payload.get("stdout") or "")
    arguments: dict[str, Any] = {}
    match payload.get("type"):
        case "exec_command_end" if payload.get("source") != "user_shell":
            name, arguments = "exec_command", {"command": payload.get("command")}
        case "patch_apply_end":
            changes = fields_of(payload.get("changes")).items()
            name, arguments = "apply_patch", {"input": "\n".join(starmap(_patch_of, changes))}
        case "mcp_tool_call_end":
            invocation = fields_of(payload.get("invocation"))
            name = f"mcp__{invocation.get('server')}__{invocation.get('tool')}"
            arguments = dict(fields_of(invocation.get("arguments")))
            result = text_of(at(payload, "result", "Ok", "content"))
    if not name:
        return []
    call = Event(Kind.TOOL_CALL, call=ToolCall(name, arguments, call_id))
    return [call, Event(Kind.TOOL_RESULT, result, call_id=call_id)]


def _patch_of(path: str, change: Any) -> str:
    """The change of a file as a patch."""
    verb = {"add": "Add", "delete": "Delete"}.get(str(at(change, "type")), "Update")
    content = str(at(change, "content") or "")
    added = "\n".join(f"+{line}" for line in content.splitlines()) if verb == "Add" else ""
    diff = at(change, "unified_diff") or added
    return f"*** Begin Patch\n*** {verb} File: {path}\n{diff}\n*** End Patch"


def _roles(records: _Records) -> set[str]:
    """The roles that a session has messages in, apart from events for display."""
    items = [fields for _, fields in records if _is_item(fields)]
    return {str(at(item, "payload", "role")) for item in items}


def _read_item(item: Any) -> list[Event]:
    if at(item, "type") == "agent_message":  # of another agent
        return [Event(Kind.REMINDER, text_of(item.get("content")))]
    return read_messages([item])


def _is_repeat(item: Mapping[str, Any], written: set[str]) -> bool:
    """Whether an item with an id is in the file already, as it is; it is noted for the next."""
    if not item.get("id"):
        return False
    content = json.dumps(item, sort_keys=True)
    is_repeat = content in written
    written.add(content)
    return is_repeat


def _headers(records: _Records) -> list[Mapping[str, Any]]:
    """The payloads of `session_meta`."""
    found = (fields.get("payload") for _, fields in records if fields["type"] == "session_meta")
    return [payload for payload in found if isinstance(payload, Mapping)]


def _is_of_subagent(records: _Records) -> bool:
    """Whether a session was started by another one."""
    headers = _headers(records)
    return bool(headers) and "subagent" in fields_of(headers[0].get("source"))


def _origin(records: _Records) -> str:
    """The id of the session; of a fork, that of the session whose history it begins with."""
    headers = _headers(records)
    return str(headers[-1].get("forked_from_id") or headers[-1].get("id") or "") if headers else ""


def _reaches_back(value: Any) -> bool:
    """Whether an event takes back turns."""
    kind = at(value, "payload", "type")
    return bool(at(value, "type") == "event_msg" and kind == "thread_rolled_back")


def _typed_by_the_user(events: _Records) -> set[str]:
    """The messages that the user typed, according to the events for display."""
    payloads = [event.get("payload") for _, event in events if event.get("type") == "event_msg"]
    texts = (at(p, "message") for p in payloads if at(p, "type") == "user_message")
    return {text.strip() for text in texts if isinstance(text, str)}


def _classified(event: Event, typed: set[str]) -> list[Event]:
    """A user message, or what Codex wrote in its place."""
    if not event.is_by_user:
        return [event]
    text = event.text.strip()
    if text.startswith(_INSTRUCTIONS):
        return [Event(Kind.MESSAGE, event.text, "system")]
    element = element_around(text)
    if element == _INTERRUPTED:
        return [Event(Kind.INTERRUPTION, event.text)]
    if element in _INJECTED or (element and text not in typed):
        return [Event(Kind.REMINDER, event.text)]
    surroundings = _BEFORE_REQUEST.match(event.text)
    words = event.text[surroundings.end() :].strip() if surroundings else event.text
    words = _IMAGE.sub("", without_elements(words, _INJECTED) or words)
    before = [Event(Kind.REMINDER, surroundings[0])] if surroundings else []
    return [*before, Event(Kind.MESSAGE, words, "user")]


def _compaction(payload: Mapping[str, Any], said: Sequence[str]) -> Event:
    """The context from a compaction on: what replaces the history; else the summary, before which
    Codex repeats the user's last messages (`build_compacted_history` in codex-rs/core).
    """
    history = payload.get("replacement_history")
    if not isinstance(history, list):
        summary = str(payload.get("message") or "")
        return Event(Kind.COMPACTION, "\n".join([*_last_messages(said), summary]))
    items = [item for item in history if at(item, "type") not in _NOT_MESSAGES]
    texts = [event.text for item in items for event in _read_item(item)]
    return Event(Kind.COMPACTION, "\n".join(texts))


def _last_messages(said: Sequence[str]) -> list[str]:
    """The last messages, of which a compaction repeats 20,000 tokens."""
    kept: list[str] = []
    left = _REPEATED
    for text in reversed(said):
        left -= len(text)
        if left < 0:
            break
        kept.insert(0, text)
    return kept


def _roll_back(tree: Tree, count: Any) -> bool:
    """Goes back to before the user's last `count` messages; returns whether there are any."""
    if not isinstance(count, int) or count < 1:
        raise Malformed(f"it takes back {shortened(count)} turns, which is not a number")
    path = tree.path()
    events = [event for _, event in path]
    starts = [number for number, event in enumerate(events) if event.is_by_user]
    starts = [n for n in starts if not n or not events[n - 1].is_by_user]  # one turn each
    if not starts:
        return False
    first = starts[-min(count, len(starts))]
    tree.tip = path[first - 1][0] if first else None
    tree.add(event for event in events[first:] if event.is_prompt)
    return True


FORMAT = Format("codex", _recognises, _read, has_events=True, reaches_back=_reaches_back)
