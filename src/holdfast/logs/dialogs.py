"""The turns of the assistant in transcripts (docs/logs.md), which rules and `when` are about.

For example:

    user "Hi", assistant "Hello", tool call, tool result, assistant "Done", user "Thanks"
    -> LoggedTurn(1, user="Hi", "Hello\\n\\nDone", one call)
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from holdfast.chat.reasoning import split_reasoning
from holdfast.logs.context import Contexts
from holdfast.measures.agent_acts.git.checked_out_branch import CurrentBranch, branch_after_call
from holdfast.measures.turns import AssistantTurn, ToolCall
from holdfast.transcripts.refused_calls import refused_calls
from holdfast.transcripts.transcript import Event, EventKind, Transcript
from holdfast.transcripts.user_answers import calls_with_answers

_BYTES_PER_TOKEN = 4  # of ordinary text; no tokenizer is available
# events that are no part of a turn, as nobody said or did anything
_OUTSIDE_TURNS = (
    EventKind.COMPACTION,
    EventKind.CLEARING,
    EventKind.REMINDER,
    EventKind.INTERRUPTION,
    EventKind.ERROR,
)


def estimated_tokens(texts: Iterable[str]) -> int:
    """About how many tokens some texts have, by their bytes."""
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    return -(-size // _BYTES_PER_TOKEN)


@dataclass(frozen=True)
class LoggedTurn:
    """A turn: everything that the assistant did between two messages of the user.

    Args:
        number: its number in the dialog, from 1.
        user: the user's message that it answers; "" if the assistant began the dialog.
        role: the role of the message that its last text answers, "user" or "tool"; "" for none.
        tokens: the size of the model's context before it, estimated from the bytes.
        reasoning: the part of its text between markers such as `<think>`, which is not scored.
        trace_span: the span that recorded its last call of a model, as `TRACE_ID/SPAN_ID`; "" if
            the log has none.
        positions: the positions of its events on the path of the transcript.
        refused: the positions among them of calls that never ran, which `done` does not have.
    """

    number: int
    user: str
    role: str
    tokens: int
    done: AssistantTurn
    reasoning: str = ""
    trace_span: str = ""
    positions: tuple[int, ...] = ()
    refused: frozenset[int] = frozenset()


@dataclass(frozen=True)
class LoggedDialog:
    """A logged dialog.

    Args:
        source: the file, and the line or the session in it.
        system: the system prompt; "" if the log has none.
        transcript: the transcript that the dialog was read from.
        ends: the position of the last event of each turn on the path of the transcript, including
            turns that are left out as copies.
        before: returns the last few transcripts before it in its file, without those of
            subagents.
    """

    source: str
    system: str
    turns: tuple[LoggedTurn, ...]
    transcript: Transcript
    ends: tuple[int, ...] = ()
    before: Callable[[], Sequence[Transcript]] = field(default=tuple, repr=False, compare=False)

    def turn_at(self, position: int) -> int:
        """The number of the turn that an event is in or precedes; the last one for an event after
        all turns.
        """
        return min(bisect_left(self.ends, position) + 1, len(self.ends))


@dataclass
class LoggedExchange:
    """A message of the user, and what the assistant and its tools did until the next message.

    Args:
        user: the text of the message; "" if the assistant began the dialog.
        size: the size of the dialog before the assistant's turn, in bytes.
        begins: the event of the user's message; None if the assistant began the dialog.
        after: the events after the user's message.
        positions: the positions of the assistant's events among them on the path.
        refused: the positions of calls among these that never ran.
    """

    user: str
    size: int
    begins: Event | None = None
    after: list[Event] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    refused: set[int] = field(default_factory=set)

    @property
    def replies(self) -> list[Event]:
        return [event for event in self.after if event.is_by_assistant]

    def calls(self, *, refused: bool) -> tuple[ToolCall, ...]:
        """Returns the assistant's tool calls that ran, with the user's answers to its questions; or
        those that were refused.
        """
        results = {e.call_id: e.text for e in self.after if e.kind is EventKind.TOOL_RESULT}
        results.pop("", None)
        answered = calls_with_answers(self.after)
        calls = [replace(call, result=results.get(call.id, "")) for call in answered]
        called = [n for n, reply in zip(self.positions, self.replies, strict=True) if reply.call]
        pairs = zip(called, calls, strict=True)
        return tuple(call for position, call in pairs if (position in self.refused) is refused)

    @property
    def role(self) -> str:
        """The role of the message that the assistant's last text answers; "" if it began."""
        last = max(n for n, event in enumerate(self.after) if event.is_by_assistant)
        if any(event.kind is EventKind.TOOL_RESULT for event in self.after[:last]):
            return "tool"
        return "user" if self.user else ""


def dialog_of(transcript: Transcript) -> LoggedDialog:
    """Reads the assistant's turns on the active path of a transcript."""
    turns = turns_of(exchanges_of(transcript.path))
    prompt = "\n\n".join(_prompts(transcript.path))
    ends = tuple(turn.positions[-1] for turn in turns)
    return LoggedDialog(transcript.source, prompt, turns, transcript, ends)


def turns_of(
    exchanges: Iterable[LoggedExchange], earlier: tuple[ToolCall, ...] = (), previous: str = ""
) -> tuple[LoggedTurn, ...]:
    """The assistant's turns in exchanges; an exchange without a reply has none.

    Args:
        earlier: the tool calls before the exchanges.
        previous: the assistant's last text before the exchanges.
    """
    turns: list[LoggedTurn] = []
    branch = CurrentBranch(branch_after_call(earlier[-1]) if earlier else "")
    for exchange in exchanges:
        replies = exchange.replies
        if not replies:
            continue
        texts = [split_reasoning(event.text) for event in replies]
        done = AssistantTurn(
            text="\n\n".join(text.reply for text in texts if text.reply.strip()),
            calls=tuple(map(branch.before, exchange.calls(refused=False))),
            earlier=earlier,
            is_cut=replies[-1].is_cut,
            user=exchange.user,
            previous=previous,
            refused=exchange.calls(refused=True),
        )
        turns.append(
            LoggedTurn(
                number=len(turns) + 1,
                user=exchange.user,
                role=exchange.role,
                tokens=exchange.size // _BYTES_PER_TOKEN,
                done=done,
                reasoning="\n\n".join(text.reasoning for text in texts if text.reasoning.strip()),
                trace_span=next((e.trace_span for e in reversed(replies) if e.trace_span), ""),
                positions=tuple(exchange.positions),
                refused=frozenset(exchange.refused),
            )
        )
        earlier = (*earlier, *done.calls)
        previous = done.text
    return tuple(turns)


def _prompts(path: Sequence[Event]) -> list[str]:
    """The system prompts; one that an agent repeats after a compaction is there once."""
    prompts = (event.text for event in path if event.is_prompt and event.text.strip())
    return list(dict.fromkeys(prompts))


def exchanges_of(path: Sequence[Event]) -> list[LoggedExchange]:
    """The exchanges on a path; the first one has no message of the user."""
    contexts = Contexts(path)
    refused = refused_calls(path)
    size_of_prompts = sum(len(text.encode("utf-8", "replace")) for text in _prompts(path))
    exchanges = [LoggedExchange("", size_of_prompts)]
    for position, event in enumerate(path):
        last = exchanges[-1]
        if event.is_by_user:
            size = size_of_prompts + contexts.before(position + 1).size_since(0)
            if last.user and not last.after:  # a second message before any reply
                exchanges[-1] = LoggedExchange(f"{last.user}\n\n{event.text}", size, last.begins)
            else:
                exchanges.append(LoggedExchange(event.text, size, event))
        elif not event.is_prompt and event.kind not in _OUTSIDE_TURNS:
            last.after.append(event)
            if event.is_by_assistant:
                last.positions.append(position)
                last.refused |= {position} & refused
    return exchanges
