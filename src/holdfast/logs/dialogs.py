"""Dialogs from log files, whatever wrote them; docs/logs.md lists the formats.

In some formats each value of a file is a dialog; in others it is an event, and the events of one
session make a dialog. A line that cannot be read costs that line alone, and is reported.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.errors import UsageError
from holdfast.files import read_text
from holdfast.logs.messages import Malformed, Message, read_messages
from holdfast.measures.turns import AssistantTurn, ToolCall
from holdfast.validation import nearest, shortened

BYTES_PER_TOKEN = 4  # of ordinary text, where no tokenizer is at hand
EVENTS = {"claude-code", "codex"}  # formats of which a value is an event of a session
Values = list[tuple[str, Any]]  # each with its place
_SUFFIXES = (".jsonl", ".ndjson", ".json")


@dataclass(frozen=True)
class LoggedTurn:
    """A turn of the assistant: all it did between two messages of the user.

    Args:
        number: in its dialog, from 1.
        user: the user's message before it; "" where the assistant began.
        role: of the message that its last text answers: user or tool; "" where it began.
        tokens: of the dialog before it, estimated from its bytes.
        done: what it said and did.
    """

    number: int
    user: str
    role: str
    tokens: int
    done: AssistantTurn


@dataclass(frozen=True)
class LoggedDialog:
    """A dialog that was held.

    Args:
        source: the file, and the line or the session in it.
        system: the system prompt; "" where the log has none.
        turns: of the assistant, at least one.
    """

    source: str
    system: str
    turns: tuple[LoggedTurn, ...]


@dataclass(frozen=True)
class Logs:
    """The contents of a set of files.

    Args:
        dialogs: in the order of the files.
        problems: a sentence for each line that was left out.
        formats: how many dialogs came in each format.
        fingerprint: SHA-256 of the files, in hexadecimal.
    """

    dialogs: tuple[LoggedDialog, ...]
    problems: tuple[str, ...]
    formats: Mapping[str, int]
    fingerprint: str


@dataclass
class _Session:
    """The events of a session, in the order of the file, as messages."""

    key: str
    messages: list[Message] = field(default_factory=list)


def read_logs(paths: Sequence[Path | str], form: str | None = None) -> Logs:
    """Reads files of logs, and those in folders.

    Args:
        paths: files (.jsonl, .ndjson, .json), or folders of such.
        form: one of `FORMATS`; None finds out for each value.

    Raises:
        UsageError: a file cannot be read, or no dialog is in any; names what was found.
    """
    if form is not None and form not in FORMATS:
        raise UsageError(f"There is no format {form!r}; {nearest(form, FORMATS)}")
    dialogs: list[LoggedDialog] = []
    problems: list[str] = []
    formats: dict[str, int] = {}
    digest = hashlib.sha256()
    for path in _files(paths):
        text = read_text(path)
        digest.update(text.encode("utf-8", "surrogatepass"))
        by_format: dict[str, Values] = {}
        unknown: Values = []
        for where, value in _values(path, text, problems):
            name = form or format_of(value)
            (unknown if name is None else by_format.setdefault(name, [])).append((where, value))
        if not by_format.keys() & EVENTS:  # whose other events have forms of their own
            problems += [f"{where}: {shortened(v)} is in no known format" for where, v in unknown]
        for name, values in by_format.items():
            read = [
                dialog
                for source, messages in FORMATS[name](values, problems)
                if (dialog := _dialog(source, messages, problems)) is not None
            ]
            formats[name] = formats.get(name, 0) + len(read)
            dialogs += read
    if not dialogs:
        first = f" (the first problem: {problems[0]})" if problems else ""
        raise UsageError(
            f"There is no dialog in {', '.join(map(str, paths))}{first}; docs/logs.md shows what is"
            " read, and --format says which it is."
        )
    counted = {name: count for name, count in formats.items() if count}
    return Logs(tuple(dialogs), tuple(problems), counted, digest.hexdigest())


def _files(paths: Sequence[Path | str]) -> Iterator[Path]:
    for path in map(Path, paths):
        if not path.is_dir():
            yield path
            continue
        inside = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES)
        if not inside:
            raise UsageError(f"{path} holds no file that ends in {', '.join(_SUFFIXES)}.")
        yield from inside


def _values(path: Path, text: str, problems: list[str]) -> Iterator[tuple[str, Any]]:
    """The values of a file, each with its place: of its lines, or of one JSON document."""
    if path.suffix == ".json":
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            pass  # lines of JSON under another name
        else:
            many = isinstance(value, list) and not (value and _is_message(value[0]))
            if isinstance(value, dict) and isinstance(value.get("data"), list):
                value, many = value["data"], True  # a page of an API's answer
            values = value if many else [value]
            yield from ((f"{path}, entry {n}", entry) for n, entry in enumerate(values, start=1))
            return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield f"{path}, line {number}", json.loads(line)
            except (ValueError, RecursionError) as error:
                problems.append(f"{path}, line {number}: it is not JSON ({error})")


def _is_message(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    typed = str(value.get("type", "")).startswith(("message", "function_call", "reasoning"))
    return "role" in value or {"from", "value"} <= value.keys() or typed


_CLAUDE_EVENTS = ("user", "assistant", "system", "summary", "progress", "attachment")
_CODEX_EVENTS = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")


def format_of(value: Any) -> str | None:
    """The format of a value, by its fields; None where it is in none."""
    if isinstance(value, list):
        if not value or not _is_message(value[0]):
            return None
        if "from" in value[0]:
            return "sharegpt"
        return "openai" if any("role" in item for item in value[:1]) else "responses"
    if not isinstance(value, Mapping):
        return None
    fields = value.keys()
    if value.get("type") in _CODEX_EVENTS and "payload" in fields:
        return "codex"
    if "sessionId" in fields and ("type" in fields or "message" in fields):
        return "claude-code" if "traceId" not in fields else "langfuse"
    if "context" in fields or "attributes" in fields or "context.trace_id" in fields:
        return "phoenix"
    if {"traceId", "trace_id"} & fields or "observations" in fields:
        return "langfuse"
    if "conversations" in fields:
        return "sharegpt"
    if isinstance(value.get("messages"), list):
        return "anthropic" if "system" in fields or _has_blocks(value["messages"]) else "openai"
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


Dialogs = Iterator[tuple[str, list[Message]]]


def _dialog_per_value(
    read: Callable[[Any], list[Message]],
) -> Callable[[Values, list[str]], Dialogs]:
    """A format of which every value is a dialog."""

    def dialogs(values: Values, problems: list[str]) -> Dialogs:
        for where, value in values:
            try:
                yield where, read(value)
            except Malformed as error:
                problems.append(f"{where}: {error}")

    return dialogs


def _field(value: Any, *names: str) -> Any:
    """The first of some fields that a value has.

    Raises:
        Malformed: it has none of them.
    """
    if isinstance(value, Mapping):
        for name in names:
            if name in value:
                return value[name]
    raise Malformed(f"{shortened(value)} has no {' or '.join(map(repr, names))}")


def _system(text: Any) -> list[Message]:
    """A system prompt that stands beside the messages."""
    return read_messages([{"role": "system", "content": text}]) if text else []


def _listed(value: Any) -> list[Message]:
    items = value if isinstance(value, list) else _field(value, "messages", "conversations")
    beside = value.get("system") if isinstance(value, Mapping) else None
    return [*_system(beside), *read_messages(items)]


def _responses(value: Any) -> list[Message]:
    if isinstance(value, list):
        return read_messages(value)
    given = _field(value, "input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    output = value.get("output") or []
    return [*_system(value.get("instructions")), *read_messages(items), *read_messages(output)]


def _claude_code(values: Values, problems: list[str]) -> Dialogs:
    """Claude Code: `~/.claude/projects/*/SESSION.jsonl`, an event per line."""
    sessions: dict[str, _Session] = {}
    for where, event in values:
        kind = event.get("type")
        if kind not in ("user", "assistant") or event.get("isMeta"):
            continue  # snapshots, progress, summaries and what the program tells itself
        agent = event.get("agentId") or ("sidechain" if event.get("isSidechain") else "")
        key = " ".join(filter(None, (str(event.get("sessionId", "")), agent)))
        session = sessions.setdefault(key, _Session(f"{_file_of(where)}, session {key}"))
        try:
            message = _field(event, "message")
            session.messages += read_messages([{"role": kind, **message}])
        except (Malformed, TypeError) as error:
            problems.append(f"{where}: {error}")
    yield from ((session.key, session.messages) for session in sessions.values())


_CODEX_CONTEXT = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions")


def _codex(values: Values, problems: list[str]) -> Dialogs:
    """Codex CLI: `~/.codex/sessions/**/rollout-*.jsonl`, an event per line."""
    session = _Session(f"{_file_of(values[0][0])}")
    for where, event in values:
        payload = event.get("payload")
        if event.get("type") == "session_meta" and isinstance(payload, Mapping):
            base = payload.get("base_instructions") or payload.get("instructions")
            session.messages += _system(base.get("text") if isinstance(base, Mapping) else base)
        if event.get("type") != "response_item":
            continue  # what the program shows, which repeats what was said
        try:
            for message in read_messages([payload]):
                context = message.role == "user" and message.text.startswith(_CODEX_CONTEXT)
                session.messages.append(Message("system", message.text) if context else message)
        except Malformed as error:
            problems.append(f"{where}: {error}")
    yield session.key, session.messages


def _file_of(where: str) -> str:
    return where.rpartition(", ")[0]


@dataclass(frozen=True)
class _Span:
    """A call of a model in a trace: everything that it was given, and its answer."""

    where: str
    session: str
    start: str
    messages: tuple[Message, ...]


def _spans(
    read: Callable[[str, Any], Iterable[_Span]],
) -> Callable[[Values, list[str]], Dialogs]:
    """A format of traces, in which every call of a model repeats the dialog so far: a call that
    continues an earlier one of its session replaces it.
    """

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
    """Whether a call was given what an earlier one had been given, and more."""
    before = [message for message in other.messages[:-1] if message.role != "system"]
    now = [message for message in span.messages if message.role != "system"]
    return len(now) > len(before) and now[: len(before)] == before


def _langfuse(where: str, value: Any) -> Iterator[_Span]:
    """Langfuse: observations, as its API and its exports have them, or traces with theirs."""
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
    if isinstance(given, Mapping) and not _is_message(given):
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
    if isinstance(given, Mapping) and not _is_message(given):
        given = _field(given, "messages", "input")
    answer = _at(attributes, "llm", "output_messages") or _at(attributes, "output", "value")
    trace = _at(span, "context", "trace_id") or span.get("trace_id")
    session = _at(attributes, "session", "id") or trace
    messages = _given(given) + _answered(_decoded(answer))
    yield _Span(where, str(session), str(span.get("start_time", "")), tuple(messages))


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise Malformed(f"{shortened(value)} is no object")
    return value


def _at(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _decoded(value: Any) -> Any:
    """A value that may be JSON in a string, as exports write it."""
    if isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _given(value: Any) -> list[Message]:
    if isinstance(value, str):
        return [Message("user", value)]
    return read_messages(value if isinstance(value, list) else [value])


def _answered(value: Any) -> list[Message]:
    if value is None:
        return []
    if isinstance(value, str):
        return [Message("assistant", value)]
    if isinstance(value, Mapping) and "choices" in value:  # a whole answer of the API
        value = [_at(choice, "message") for choice in value["choices"][:1]]
    if isinstance(value, Mapping) and not _is_message(value):
        value = value.get("output") or [{"role": "assistant", **value}]
    return read_messages(value if isinstance(value, list) else [value])


def _unflattened(span: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted names as nested objects, and numbers among them as places in lists."""
    tree: dict[str, Any] = {}
    for name, value in span.items():
        value = _unflattened(value) if isinstance(value, Mapping) else value
        *outer, last = name.split(".")
        here = tree
        for part in outer:
            here = here.setdefault(part, {})
            if not isinstance(here, dict):
                raise Malformed(f"the field {name!r} stands beside a value of {part!r}")
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
    if value and all(name.isdigit() for name in value):
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
}


@dataclass
class _Exchange:
    """The user's message, and what the assistant and its tools did until the next one.

    Args:
        user: "" where the assistant began.
        size: of the dialog before it, in bytes.
        after: the messages after the user's.
    """

    user: str
    size: int
    after: list[Message] = field(default_factory=list)

    @property
    def role(self) -> str:
        """Of the message that the assistant's last text answers."""
        last = max(n for n, message in enumerate(self.after) if message.role == "assistant")
        if any(message.role == "tool" for message in self.after[:last]):
            return "tool"
        return "user" if self.user else ""


def _dialog(source: str, messages: list[Message], problems: list[str]) -> LoggedDialog | None:
    """Messages as turns of the assistant; None where it has none, which is reported."""
    turns: list[LoggedTurn] = []
    earlier: tuple[ToolCall, ...] = ()
    for exchange in _exchanges(messages):
        messages_said = [message for message in exchange.after if message.role == "assistant"]
        if messages_said:
            text = "\n\n".join(message.text for message in messages_said if message.text.strip())
            calls = tuple(call for message in messages_said for call in message.calls)
            tokens = exchange.size // BYTES_PER_TOKEN
            done = AssistantTurn(text, calls, earlier)
            turns.append(LoggedTurn(len(turns) + 1, exchange.user, exchange.role, tokens, done))
            earlier += calls
    if not turns:
        problems.append(f"{source}: the assistant says nothing in it")
        return None
    prompts = (m.text for m in messages if m.role == "system" and m.text.strip())
    return LoggedDialog(source, "\n\n".join(prompts), tuple(turns))


def _exchanges(messages: list[Message]) -> list[_Exchange]:
    size = sum(map(_size, (message for message in messages if message.role == "system")))
    exchanges = [_Exchange("", size)]
    for message in messages:
        if message.role == "system":
            continue
        size += _size(message)
        if message.role != "user":
            exchanges[-1].after.append(message)
        elif exchanges[-1].after or not exchanges[-1].user:
            exchanges.append(_Exchange(message.text, size))
        else:  # the user goes on
            exchanges[-1] = _Exchange(f"{exchanges[-1].user}\n\n{message.text}", size)
    return exchanges


def _size(message: Message) -> int:
    texts = [message.text, *(json.dumps(dict(call.arguments)) for call in message.calls)]
    return sum(len(text.encode("utf-8", "replace")) for text in texts)
