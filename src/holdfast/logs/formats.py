"""The formats of logs: how each is recognised, and its dialogs as messages.
A value in a file is a dialog or an event; the events of a session make up a dialog.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.drift.messages import LoggedMessage, Malformed, read_messages
from holdfast.errors import shortened

EVENTS = {"claude-code", "codex"}  # formats whose values are events of a session
Values = list[tuple[str, Any]]  # each with its place


def is_message(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    typed = str(value.get("type", "")).startswith(("message", "function_call", "reasoning"))
    return "role" in value or {"from", "value"} <= value.keys() or typed


_CLAUDE_EVENTS = ("user", "assistant", "system", "summary", "progress", "attachment")
_CODEX_EVENTS = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")


def format_of(value: Any) -> str | None:
    """The format of a value, recognised by its fields; None if it is in none."""
    if isinstance(value, list):
        if not value or not is_message(value[0]):
            return None
        if "from" in value[0]:
            return "sharegpt"
        return "openai" if "role" in value[0] else "responses"
    if not isinstance(value, Mapping):
        return None
    fields = value.keys()
    if {"method", "conversation", "agent", "turns"} <= fields:
        return "run"
    if "conversations" in fields:
        return "sharegpt"
    if isinstance(value.get("messages"), list):  # whatever is beside them
        return "anthropic" if "system" in fields or _has_blocks(value["messages"]) else "openai"
    if value.get("type") in _CODEX_EVENTS and "payload" in fields:
        return "codex"
    if "sessionId" in fields and ("type" in fields or "message" in fields):
        return "claude-code" if "traceId" not in fields else "langfuse"
    if "context" in fields or "attributes" in fields or "context.trace_id" in fields:
        return "phoenix"
    if {"traceId", "trace_id"} & fields or "observations" in fields:
        return "langfuse"
    if value.get("type") in _CLAUDE_EVENTS and isinstance(value.get("message"), Mapping):
        return "claude-code"
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


Dialogs = Iterator[tuple[str, list[LoggedMessage]]]


def _dialog_per_value(
    read: Callable[[Any], list[LoggedMessage]],
) -> Callable[[Values, list[str]], Dialogs]:
    def dialogs(values: Values, problems: list[str]) -> Dialogs:
        for where, value in values:
            try:
                yield where, read(value)
            except Malformed as error:
                problems.append(f"{where}: {error}")

    return dialogs


def _field(value: Any, *names: str) -> Any:
    if isinstance(value, Mapping):
        for name in names:
            if name in value:
                return value[name]
    raise Malformed(f"{shortened(value)} has no {' or '.join(map(repr, names))}")


def _system(text: Any) -> list[LoggedMessage]:
    return read_messages([{"role": "system", "content": text}]) if text else []


def _listed(value: Any) -> list[LoggedMessage]:
    items = value if isinstance(value, list) else _field(value, "messages", "conversations")
    beside = value.get("system") if isinstance(value, Mapping) else None
    return [*_system(beside), *read_messages(items)]


def _responses(value: Any) -> list[LoggedMessage]:
    if isinstance(value, list):
        return read_messages(value)
    given = _field(value, "input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    output = value.get("output") or []
    return [*_system(value.get("instructions")), *read_messages(items), *read_messages(output)]


_SPEAKERS = {"user": "user", "agent": "assistant"}


def _run(value: Any) -> list[LoggedMessage]:
    """A conversation of a run, from its `records.jsonl`."""
    turns = [
        {"role": _SPEAKERS.get(_field(turn, "speaker")), "content": _field(turn, "text")}
        for turn in _field(value, "turns")
    ]
    return [*_system(_field(_field(value, "agent"), "system_prompt")), *read_messages(turns)]


def _claude_code(values: Values, problems: list[str]) -> Dialogs:
    """Claude Code: `~/.claude/projects/*/SESSION.jsonl`, an event per line."""
    sessions: dict[str, list[LoggedMessage]] = {}
    for where, event in _objects(values, problems):
        kind = event.get("type")
        if kind not in ("user", "assistant") or event.get("isMeta"):
            continue  # snapshots, progress, summaries and internal messages
        agent = event.get("agentId") or ("sidechain" if event.get("isSidechain") else "")
        key = " ".join(filter(None, (str(event.get("sessionId", "")), agent)))
        messages = sessions.setdefault(f"{_file_of(where)}, session {key}", [])
        try:
            message = _field(event, "message")
            messages += read_messages([{"role": kind, **message}])
        except (Malformed, TypeError) as error:
            problems.append(f"{where}: {error}")
    yield from sessions.items()


_CODEX_CONTEXT = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions")


def _codex(values: Values, problems: list[str]) -> Dialogs:
    """Codex CLI: `~/.codex/sessions/**/rollout-*.jsonl`, an event per line."""
    messages: list[LoggedMessage] = []
    for where, event in _objects(values, problems):
        payload = event.get("payload")
        try:
            if event.get("type") == "session_meta" and isinstance(payload, Mapping):
                base = payload.get("base_instructions") or payload.get("instructions")
                messages += _system(base.get("text") if isinstance(base, Mapping) else base)
            if event.get("type") != "response_item":
                continue  # events for display, which repeat the messages
            for message in read_messages([payload]):
                context = message.role == "user" and message.text.startswith(_CODEX_CONTEXT)
                messages.append(LoggedMessage("system", message.text) if context else message)
        except Malformed as error:
            problems.append(f"{where}: {error}")
    yield _file_of(values[0][0]), messages


def _objects(values: Values, problems: list[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for where, value in values:
        if isinstance(value, Mapping):
            yield where, value
        else:
            problems.append(f"{where}: {shortened(value)} is not an object")


def _file_of(where: str) -> str:
    return where.rpartition(", ")[0]


@dataclass(frozen=True)
class _Span:
    """A model call in a trace: its whole input, and its answer."""

    where: str
    session: str
    start: str
    messages: tuple[LoggedMessage, ...]


def _spans(read: Callable[[str, Any], Iterable[_Span]]) -> Callable[[Values, list[str]], Dialogs]:
    """A format of traces in which every model call repeats the dialog so far."""
    # so a call that continues an earlier one of its session replaces it

    def dialogs(values: Values, problems: list[str]) -> Dialogs:
        spans: list[_Span] = []
        for where, value in values:
            try:
                spans += read(where, value)
            except Malformed as error:
                problems.append(f"{where}: {error}")
        by_session: dict[str, list[_Span]] = {}
        for span in sorted(spans, key=lambda span: span.start):
            kept = by_session.setdefault(span.session, [])
            begun = next((n for n, other in enumerate(kept) if _continues(span, other)), None)
            if begun is None:
                kept.append(span)
            else:
                kept[begun] = span
        for session, kept in by_session.items():
            for span in kept:
                yield f"{_file_of(span.where)}, session {session}", list(span.messages)

    return dialogs


def _continues(span: _Span, other: _Span) -> bool:
    """Whether a call's input extends that of an earlier call."""
    before = [message for message in other.messages[:-1] if message.role != "system"]
    now = [message for message in span.messages if message.role != "system"]
    return len(now) > len(before) and now[: len(before)] == before


def _langfuse(where: str, value: Any) -> Iterator[_Span]:
    """Langfuse: observations as in its API and exports, or traces that contain them."""
    if isinstance(value, Mapping) and isinstance(value.get("observations"), list):
        session = value.get("sessionId") or value.get("session_id") or value.get("id")
        for observation in value["observations"]:
            yield from _langfuse(where, {"sessionId": session, **_mapping(observation)})
        return
    value = _mapping(value)
    if value.get("type") != "GENERATION":
        return
    trace = _field(value, "traceId", "trace_id", "sessionId")
    session = value.get("sessionId") or value.get("session_id") or trace
    given, answer = _decoded(value.get("input")), _decoded(value.get("output"))
    if isinstance(given, Mapping) and not is_message(given):
        given = _field(given, "messages", "input", "prompt")
    messages = _given(given) + _answered(answer)
    start = str(value.get("startTime") or value.get("start_time") or "")
    yield _Span(where, str(session), start, tuple(messages))


def _phoenix(where: str, value: Any) -> Iterator[_Span]:
    """Phoenix: spans with OpenInference attributes, nested or with dotted names."""
    span = _unflattened(_mapping(value))
    attributes = _mapping(span.get("attributes", {}))
    kind = span.get("span_kind") or _at(attributes, "openinference", "span", "kind")
    if kind != "LLM":
        return
    given = _at(attributes, "llm", "input_messages") or _decoded(_at(attributes, "input", "value"))
    if isinstance(given, Mapping) and not is_message(given):
        given = _field(given, "messages", "input")
    answer = _at(attributes, "llm", "output_messages") or _at(attributes, "output", "value")
    trace = _at(span, "context", "trace_id") or span.get("trace_id")
    session = _at(attributes, "session", "id") or trace
    messages = _given(given) + _answered(_decoded(answer))
    yield _Span(where, str(session), str(span.get("start_time", "")), tuple(messages))


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise Malformed(f"{shortened(value)} is not an object")
    return value


def _at(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _decoded(value: Any) -> Any:
    """Decodes a value that may be JSON in a string, as exports write it."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _given(value: Any) -> list[LoggedMessage]:
    if isinstance(value, str):
        return [LoggedMessage("user", value)]
    return read_messages(value if isinstance(value, list) else [value])


def _answered(value: Any) -> list[LoggedMessage]:
    if value is None:
        return []
    if isinstance(value, str):
        return [LoggedMessage("assistant", value)]
    if isinstance(value, Mapping) and "choices" in value:  # a complete API response
        value = [_at(choice, "message") for choice in value["choices"][:1]]
    if isinstance(value, Mapping) and not is_message(value):
        value = value.get("output") or [{"role": "assistant", **value}]
    return read_messages(value if isinstance(value, list) else [value])


def _unflattened(span: Mapping[str, Any]) -> dict[str, Any]:
    """Turns dotted names into nested objects, and numbers among them into list positions."""
    tree: dict[str, Any] = {}
    for name, value in span.items():
        value = _unflattened(value) if isinstance(value, Mapping) else value
        *outer, last = name.split(".")
        here = tree
        for part in outer:
            here = here.setdefault(part, {})
            if not isinstance(here, dict):
                raise Malformed(f"the field {name!r} occurs beside a value of {part!r}")
        if isinstance(here.get(last), dict) and isinstance(value, dict):
            here[last].update(value)
        else:
            here[last] = value
    return {name: _listified(value) for name, value in tree.items()}


def _listified(value: Any) -> Any:
    if isinstance(value, list):
        return [
            _unflattened(entry) if isinstance(entry, Mapping) else _listified(entry)
            for entry in value
        ]
    if not isinstance(value, dict):
        return value
    if value and all(name.isdecimal() for name in value):
        return [_listified(value[name]) for name in sorted(value, key=int)]
    return {name: _listified(entry) for name, entry in value.items()}


FORMATS: dict[str, Callable[[Values, list[str]], Dialogs]] = {
    "openai": _dialog_per_value(_listed),
    "responses": _dialog_per_value(_responses),
    "anthropic": _dialog_per_value(_listed),
    "sharegpt": _dialog_per_value(_listed),
    "langfuse": _spans(_langfuse),
    "phoenix": _spans(_phoenix),
    "claude-code": _claude_code,
    "codex": _codex,
    "run": _dialog_per_value(_run),
}
