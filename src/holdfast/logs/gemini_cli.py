"""Gemini CLI's sessions: `~/.gemini/tmp/*/chats/session-*`, one JSON document or JSON lines."""

from collections.abc import Mapping
from typing import Any

from holdfast.drift.messages import LoggedMessage, Malformed, read_messages
from holdfast.errors import shortened
from holdfast.logs.injected import without_elements
from holdfast.logs.reading import Dialogs, Values, at, entries, file_of, mapping, objects
from holdfast.measures.turns import ToolCall

_ROLES = {"user": "user", "gemini": "assistant"}
_FOR_DISPLAY = ("info", "warning", "error", "about", "help", "stats", "quit", "compression")
_INJECTED = ("session_context", "hook_context", "system-reminder")

# the records of a session's messages, by id; a message that is written again takes its place
_Session = dict[str, Mapping[str, Any]]


def read_gemini_cli(values: Values, problems: list[str]) -> Dialogs:
    session: _Session = {}
    name = file_of(values[0][0])
    for where, record in objects(values, problems):
        try:
            if "$rewindTo" in record:
                _rewind(session, record["$rewindTo"], where, problems)
            elif "$set" in record:
                _set(session, mapping(record["$set"]))
            elif "sessionId" in record:
                if _has_reply(session):  # another session, in a file that was put together
                    yield name, _messages(session, problems, name)
                session.clear()
                name = f"{file_of(where)}, session {record['sessionId']}"
                _add(session, record.get("messages") or [])
            else:
                _add(session, [record])
        except Malformed as error:
            problems.append(f"{where}: {error}")
    yield name, _messages(session, problems, name)


def _add(session: _Session, records: Any) -> None:
    for record in entries(records):
        session[str(mapping(record).get("id") or f"message {len(session)}")] = record


def _set(session: _Session, changed: Mapping[str, Any]) -> None:
    if "messages" not in changed:
        return
    kept = {str(at(record, "id")) for record in entries(changed["messages"])}
    gone = {name: record for name, record in session.items() if name not in kept}
    if _has_reply(gone):
        raise Malformed(
            "Gemini CLI replaced messages that had replies ($set, as after a compression), which is"
            " not read; its messages follow the earlier ones"
        )
    session.clear()
    _add(session, changed["messages"])


def _has_reply(session: _Session) -> bool:
    return any(record.get("type") == "gemini" for record in session.values())


def _rewind(session: _Session, target: Any, where: str, problems: list[str]) -> None:
    """Takes back a message and those after it."""
    names = list(session)
    if not isinstance(target, str) or target not in session:
        raise Malformed(f"Gemini CLI rewound to the message {shortened(target)}, which is not here")
    gone = names[names.index(target) :]
    for name in gone:
        del session[name]
    problems.append(
        f"{where}: Gemini CLI rewound the session to before the message {target!r} ($rewindTo), so"
        f" {len(gone)} {'message is' if len(gone) == 1 else 'messages are'} left out"
    )


def _messages(session: _Session, problems: list[str], name: str) -> list[LoggedMessage]:
    messages: list[LoggedMessage] = []
    for record in session.values():
        try:
            messages += _read(record)
        except Malformed as error:
            problems.append(f"{name}: {error}")
    return messages


def _read(record: Mapping[str, Any]) -> list[LoggedMessage]:
    kind = str(record.get("type"))
    if kind in _FOR_DISPLAY:
        return []
    if kind not in _ROLES:
        raise Malformed(f"Gemini CLI's message of the type {shortened(kind)} is not known")
    read = read_messages([{"role": _ROLES[kind], "content": record.get("content") or ""}])
    if kind == "user":
        texts = ((m, without_elements(m.text, _INJECTED)) for m in read)
        return [
            LoggedMessage(m.role if text or not m.text else "context", text or m.text)
            for m, text in texts
        ]
    calls = entries(record.get("toolCalls"))
    made = tuple(
        ToolCall(str(mapping(c).get("name")), mapping(c.get("args") or {}), str(c.get("id", "")))
        for c in calls
    )
    text = "\n".join(m.text for m in read)
    results = [{"role": "tool", "parts": c["result"]} for c in calls if _is_list(c.get("result"))]
    answers = [m for m in read_messages(results) if m.role == "tool" and m.text]
    return [LoggedMessage("assistant", text, made), *answers]


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)
