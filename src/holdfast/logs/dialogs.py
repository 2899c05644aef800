"""The assistant's turns in transcripts (docs/logs.md), which rules and `when` are about."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from holdfast.chat.reasoning import split_reasoning
from holdfast.errors import UsageError
from holdfast.measures.turns import AssistantTurn, ToolCall
from holdfast.transcripts.transcript import Event, Kind, Transcript

_BYTES_PER_TOKEN = 4  # of ordinary text, as no tokenizer is available


def estimated_tokens(texts: Iterable[str]) -> int:
    """About how many tokens texts have, by their bytes."""
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    return -(-size // _BYTES_PER_TOKEN)


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
        positions: of its events on the path of the transcript.
    """

    number: int
    user: str
    role: str
    tokens: int
    done: AssistantTurn
    reasoning: str = ""
    events: frozenset[str] = frozenset()
    positions: tuple[int, ...] = ()


@dataclass(frozen=True)
class LoggedDialog:
    """A logged dialog.

    Args:
        source: the file, and the line or the session in it.
        system: the system prompt; "" if the log has none.
        transcript: that it was read from.
        file, number: all transcripts of its file, and which of them this is.
    """

    source: str
    system: str
    turns: tuple[LoggedTurn, ...]
    transcript: Transcript
    file: tuple[Transcript, ...] = ()
    number: int = 0


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
    from holdfast.transcripts.reading import read_transcripts  # the readers of all formats

    paths = [paths] if isinstance(paths, (Path, str)) else paths
    dialogs: list[LoggedDialog] = []
    problems: list[str] = []
    formats: Counter[str] = Counter()
    digest = hashlib.sha256()
    for file in read_transcripts(paths, form):
        digest.update(file.text.encode("utf-8", "surrogatepass"))
        problems += file.unread
        for number, transcript in enumerate(file.transcripts):
            dialog = replace(dialog_of(transcript), file=file.transcripts, number=number)
            if not dialog.turns:
                problems.append(f"{transcript.source}: the assistant says nothing in it")
                continue
            dialogs.append(dialog)
            formats[transcript.format] += 1
    dialogs = _without_copies(dialogs, problems)
    if not dialogs:
        first = f" (the first problem: {problems[0]})" if problems else ""
        raise UsageError(
            f"There is no dialog in {', '.join(map(str, paths))}{first}; `holdfast docs"
            " logs` shows what is read, and --format names one of the formats."
        )
    read_as = [[d.system, [[t.number, t.user, t.done.text] for t in d.turns]] for d in dialogs]
    # another format, or another version of its reader, reads other dialogs
    digest.update(json.dumps([formats, read_as]).encode("utf-8", "surrogatepass"))
    return Logs(tuple(dialogs), tuple(problems), dict(formats), digest.hexdigest())


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


@dataclass
class LoggedExchange:
    """The user's message, and what the assistant and its tools did until the next one.

    Args:
        user: "" if the assistant began.
        size: of the dialog before the assistant's turn, in bytes.
        begins: the user's message; None if the assistant began.
        after: the events after the user's message.
        positions: of the assistant's events among them, on the path.
    """

    user: str
    size: int
    begins: Event | None = None
    after: list[Event] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)

    @property
    def replies(self) -> list[Event]:
        return [event for event in self.after if event.is_by_assistant]

    @property
    def role(self) -> str:
        """The role of the message that the assistant's last text answers."""
        last = max(n for n, event in enumerate(self.after) if event.is_by_assistant)
        if any(event.kind is Kind.TOOL_RESULT for event in self.after[:last]):
            return "tool"
        return "user" if self.user else ""


def dialog_of(transcript: Transcript) -> LoggedDialog:
    """The assistant's turns on the active path."""
    turns = turns_of(exchanges_of(transcript.path))
    prompt = "\n\n".join(_prompts(transcript.path))
    return LoggedDialog(transcript.source, prompt, turns, transcript)


def turns_of(
    exchanges: Iterable[LoggedExchange], earlier: tuple[ToolCall, ...] = (), previous: str = ""
) -> tuple[LoggedTurn, ...]:
    """The assistant's turns in exchanges that have any.

    Args:
        earlier: the tool calls before them.
        previous: the assistant's text before them.
    """
    turns: list[LoggedTurn] = []
    for exchange in exchanges:
        replies = exchange.replies
        if replies:
            split = [split_reasoning(event.text) for event in replies]
            text = "\n\n".join(reply for _, reply in split if reply.strip())
            calls = tuple(event.call for event in replies if event.call is not None)
            is_cut, user = replies[-1].is_cut, exchange.user
            turns.append(
                LoggedTurn(
                    len(turns) + 1,
                    exchange.user,
                    exchange.role,
                    exchange.size // _BYTES_PER_TOKEN,
                    AssistantTurn(text, calls, earlier, is_cut, user, previous),
                    "\n\n".join(reasoning for reasoning, _ in split if reasoning.strip()),
                    frozenset(event.id for event in replies if event.id),
                    tuple(exchange.positions),
                )
            )
            earlier, previous = earlier + calls, text
    return tuple(turns)


def _prompts(path: Sequence[Event]) -> list[str]:
    """The system prompts, each once: an agent repeats them after a compaction."""
    prompts = (event.text for event in path if event.is_prompt and event.text.strip())
    return list(dict.fromkeys(prompts))


_NOT_SAID = (Kind.COMPACTION, Kind.REMINDER, Kind.INTERRUPTION)  # but in the model's context


def exchanges_of(path: Sequence[Event]) -> list[LoggedExchange]:
    """The exchanges of a path; the first one is without a message of the user."""
    prompts = sum(len(text.encode("utf-8", "replace")) for text in _prompts(path))
    size = prompts
    exchanges = [LoggedExchange("", size)]
    for position, event in enumerate(path):
        if event.is_prompt or event.kind is Kind.ERROR:
            continue
        size = (prompts if event.kind is Kind.COMPACTION else size) + size_of(event)
        if event.kind in _NOT_SAID:
            continue
        if not event.is_by_user:
            exchanges[-1].after.append(event)
            if event.is_by_assistant:
                exchanges[-1].positions.append(position)
        elif exchanges[-1].after or not exchanges[-1].user:
            exchanges.append(LoggedExchange(event.text, size, event))
        else:  # the user continues
            before = exchanges[-1]
            exchanges[-1] = LoggedExchange(f"{before.user}\n\n{event.text}", size, before.begins)
    return exchanges


def size_of(event: Event) -> int:
    """The size of an event in the context, in bytes."""
    arguments = json.dumps(dict(event.call.arguments)) if event.call is not None else ""
    return len(event.text.encode("utf-8", "replace")) + len(arguments.encode("utf-8", "replace"))
