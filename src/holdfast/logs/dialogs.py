"""Dialogs from log files (docs/logs.md); a line that cannot be read is reported and skipped."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from holdfast.chat.reasoning import split_reasoning
from holdfast.common.files import read_text
from holdfast.common.validation import nearest
from holdfast.drift.messages import LoggedMessage, is_message
from holdfast.errors import UsageError, reason_of, shortened
from holdfast.logs.formats import EVENTS, FORMATS, format_of, may_be
from holdfast.logs.reading import Values
from holdfast.measures.turns import AssistantTurn, ToolCall
from holdfast.records import MANIFEST, RECORDS

BYTES_PER_TOKEN = 4  # of ordinary text, as no tokenizer is available
_SUFFIXES = (".jsonl", ".ndjson", ".json")
_COMPRESSED = (".zst", ".gz", ".bz2", ".xz", ".zip", ".br", ".lz4", ".7z", ".tar", ".tgz")


@dataclass(frozen=True)
class LoggedTurn:
    """An assistant turn: everything it did between two user messages.

    Args:
        number: in its dialog, from 1.
        user: the user's message before it; "" if the assistant began.
        role: of the message that its last text answers: user or tool; "" if it began.
        tokens: in the model's context before it, estimated from the bytes.
        reasoning: what its text began with between markers such as `<think>`; it is not scored.
        events: the ids of its events in a transcript; a copy of the turn has the same.
    """

    number: int
    user: str
    role: str
    tokens: int
    done: AssistantTurn
    reasoning: str = ""
    events: frozenset[str] = frozenset()


@dataclass(frozen=True)
class LoggedDialog:
    """A logged dialog.

    Args:
        source: the file, and the line or the session in it.
        system: the system prompt; "" if the log has none.
    """

    source: str
    system: str
    turns: tuple[LoggedTurn, ...]


@dataclass(frozen=True)
class Logs:
    """The contents of a set of files.

    Args:
        problems: a sentence for each line that was skipped, and for each part that was left out.
        fingerprint: SHA-256 of the files and their formats, in hexadecimal.
    """

    dialogs: tuple[LoggedDialog, ...]
    problems: tuple[str, ...]
    formats: Mapping[str, int]
    fingerprint: str


def read_logs(paths: Path | str | Sequence[Path | str], form: str | None = None) -> Logs:
    """Reads log files, including those in folders.

    Args:
        form: one of `FORMATS`; None detects it for each value.

    Raises:
        UsageError: a file cannot be read, or none has a dialog; names the first problem.
    """
    if form is not None and form not in FORMATS:
        raise UsageError(f"There is no format {form!r}; {nearest(form, FORMATS)}")
    dialogs: list[LoggedDialog] = []
    problems: list[str] = []
    formats: dict[str, int] = {}
    digest = hashlib.sha256()
    paths = [paths] if isinstance(paths, (Path, str)) else paths
    for path in _files(paths, problems):
        text = read_text(path)
        if not text.strip():
            problems.append(f"{path} is empty")
        digest.update(text.encode("utf-8", "surrogatepass"))
        by_format: dict[str, Values] = {}
        unknown: Values = []
        for where, value in _values(path, text, problems):
            name = form or format_of(value)
            if form is not None and not may_be(value, form):
                problems.append(f"{where} is in the format {format_of(value)}, not {form}")
                continue
            (unknown if name is None else by_format.setdefault(name, [])).append((where, value))
        has_events = bool(by_format.keys() & EVENTS)
        problems += [
            f"{where}: {shortened(value)} is in no known format"
            for where, value in unknown
            if not (has_events and _is_other_event(value))
        ]
        for name, values in by_format.items():
            read = [
                dialog
                for source, messages in FORMATS[name](values, problems)
                if (dialog := _dialog(source, messages, problems)) is not None
            ]
            formats[name] = formats.get(name, 0) + len(read)
            dialogs += read
    dialogs = _without_copies(dialogs, problems)
    if not dialogs:
        first = f" (the first problem: {problems[0]})" if problems else ""
        raise UsageError(
            f"There is no dialog in {', '.join(map(str, paths))}{first}; `holdfast docs"
            " logs` shows what is read, and --format names one of the formats."
        )
    counted = {name: count for name, count in formats.items() if count}
    read_as = [[d.system, [[t.number, t.user, t.done.text] for t in d.turns]] for d in dialogs]
    # another format, or another version of its reader, reads other dialogs
    digest.update(json.dumps([counted, read_as]).encode("utf-8", "surrogatepass"))
    return Logs(tuple(dialogs), tuple(problems), counted, digest.hexdigest())


def _is_other_event(value: Any) -> bool:
    """Whether a line among the events of sessions is one more, such as a snapshot of files."""
    typed = isinstance(value, Mapping) and isinstance(value.get("type"), str)
    return typed and not value.keys() & {"role", "content", "message", "messages"}


def _without_copies(dialogs: list[LoggedDialog], problems: list[str]) -> list[LoggedDialog]:
    """The dialogs with every turn in one of them only: the longest that has it.

    A session that is resumed or forked begins with a copy of another's events.
    """
    source_of: dict[str, str] = {}  # of each event that is counted
    kept: dict[int, LoggedDialog] = {}
    for number, dialog in sorted(enumerate(dialogs), key=lambda pair: -len(pair[1].turns)):
        copied = [turn for turn in dialog.turns if turn.events and turn.events <= source_of.keys()]
        numbers = {turn.number for turn in copied}
        turns = tuple(turn for turn in dialog.turns if turn.number not in numbers)
        if copied:
            other = source_of[min(copied[0].events)]
            count = f"{len(copied)} of its {len(dialog.turns)} turns"
            which = "its only turn is" if len(dialog.turns) == 1 else f"{count} are"
            problems.append(f"{dialog.source}: {which} in {other} too, and counted there")
        for turn in turns:
            source_of.update(dict.fromkeys(turn.events, dialog.source))
        if turns:
            kept[number] = replace(dialog, turns=turns)
    return [kept[number] for number in sorted(kept)]


def _files(paths: Sequence[Path | str], problems: list[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        if not path.is_dir():
            if path.suffix in _COMPRESSED:
                raise UsageError(f"{path} is compressed, which is not read; unpack it first.")
            yield path
            continue
        if (path / MANIFEST).is_file():  # a run
            records = path / RECORDS
            if not (records.is_file() and records.stat().st_size):
                raise UsageError(
                    f"{path} has no finished conversation yet; repeat its command to continue,"
                    " then score it again."
                )
            yield records
            continue
        files = sorted(file for file in path.rglob("*") if file.is_file())
        packed = [f"{f} is compressed, which is not read" for f in files if f.suffix in _COMPRESSED]
        problems += packed
        inside = [file for file in files if file.suffix in _SUFFIXES]
        if not inside:
            first = f" ({packed[0]}; unpack it first)" if packed else ""
            raise UsageError(f"{path} holds no file that ends in {', '.join(_SUFFIXES)}{first}.")
        yield from inside


def _values(path: Path, text: str, problems: list[str]) -> Iterator[tuple[str, Any]]:
    """The values in a file, each with its place: one per line, or those of one JSON document."""
    if path.suffix == ".json":
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            pass  # JSON lines despite the file's name
        else:
            many = isinstance(value, list) and not (value and is_message(value[0]))
            if isinstance(value, dict) and isinstance(value.get("data"), list):
                value, many = value["data"], True  # a page of an API's response
            values = value if many else [value]
            yield from ((f"{path}, entry {n}", entry) for n, entry in enumerate(values, start=1))
            return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                yield f"{path}, line {number}", json.loads(line)
            except (ValueError, RecursionError) as error:
                problems.append(f"{path}, line {number}: it is not JSON: {reason_of(error)}")


@dataclass
class _Exchange:
    """The user's message, and what the assistant and its tools did until the next one."""

    user: str  # "" if the assistant began
    size: int  # of the dialog before the assistant's turn, in bytes
    after: list[LoggedMessage] = field(default_factory=list)  # the messages after the user's

    @property
    def role(self) -> str:
        """The role of the message that the assistant's last text answers."""
        last = max(n for n, message in enumerate(self.after) if message.role == "assistant")
        if any(message.role == "tool" for message in self.after[:last]):
            return "tool"
        return "user" if self.user else ""


def _dialog(source: str, messages: list[LoggedMessage], problems: list[str]) -> LoggedDialog | None:
    """Groups messages into assistant turns; None, and a reported problem, if there are none."""
    turns: list[LoggedTurn] = []
    earlier: tuple[ToolCall, ...] = ()
    for exchange in _exchanges(messages):
        replies = [message for message in exchange.after if message.role == "assistant"]
        if replies:
            split = [split_reasoning(message.text) for message in replies]
            text = "\n\n".join(reply for _, reply in split if reply.strip())
            calls = tuple(call for message in replies for call in message.calls)
            turns.append(
                LoggedTurn(
                    len(turns) + 1,
                    exchange.user,
                    exchange.role,
                    exchange.size // BYTES_PER_TOKEN,
                    AssistantTurn(text, calls, earlier, replies[-1].is_cut),
                    "\n\n".join(reasoning for reasoning, _ in split if reasoning.strip()),
                    frozenset(message.event_id for message in replies if message.event_id),
                )
            )
            earlier += calls
    if not turns:
        problems.append(f"{source}: the assistant says nothing in it")
        return None
    return LoggedDialog(source, "\n\n".join(_prompts(messages)), tuple(turns))


def _prompts(messages: list[LoggedMessage]) -> list[str]:
    """The system prompts, each once: an agent repeats them after a compaction."""
    prompts = (m.text for m in messages if m.role == "system" and m.text.strip())
    return list(dict.fromkeys(prompts))


def _exchanges(messages: list[LoggedMessage]) -> list[_Exchange]:
    prompts = sum(len(text.encode("utf-8", "replace")) for text in _prompts(messages))
    size = prompts
    exchanges = [_Exchange("", size)]
    for message in messages:
        if message.role == "system":
            continue
        size = (prompts if message.role == "compaction" else size) + _size(message)
        if message.role in ("compaction", "context"):
            continue
        if message.role != "user":
            exchanges[-1].after.append(message)
        elif exchanges[-1].after or not exchanges[-1].user:
            exchanges.append(_Exchange(message.text, size))
        else:  # the user continues
            exchanges[-1] = _Exchange(f"{exchanges[-1].user}\n\n{message.text}", size)
    return exchanges


def _size(message: LoggedMessage) -> int:
    texts = [message.text, *(json.dumps(dict(call.arguments)) for call in message.calls)]
    return sum(len(text.encode("utf-8", "replace")) for text in texts)
