"""Dialogs in Cursor's database, and the messages in the context of its agent.

In `state.vscdb`, a dialog ("composer") has the messages that Cursor shows ("bubbles"), and often
the context of the agent as well: the same messages with the system prompt and what Cursor added to
them. The context is read if it has all messages and calls that are shown.

A value, shortened, as `databases/cursor_database.py` puts it together:

    {"composerData": {"fullConversationHeadersOnly": [{"bubbleId": "b1"}]},
     "bubbles": {"b1": {"type": 1, "text": "Hi"}},
     "context": {"messages": [...], "missing": 0, "unread": 0, "turns": 1}}
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from holdfast.errors import shortened
from holdfast.measures.agent_acts.agent_tools import script_of
from holdfast.plurals import count_of
from holdfast.transcripts.chat_messages import read_message
from holdfast.transcripts.injected import element_text, remove_elements
from holdfast.transcripts.json_fields import (
    at,
    decode_json,
    list_or_empty,
    optional_list,
    require_object,
)
from holdfast.transcripts.reader import Unread
from holdfast.transcripts.tools import read_call
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Malformed,
    Transcript,
    linear_transcript,
    message_events,
    with_unread,
)
from holdfast.validation.json_values import fields_of

# by the type of a message, and by its type in versions without a composer
_ROLES: dict[int | str, str] = {1: "user", 2: "assistant", "user": "user", "ai": "assistant"}
# elements that Cursor writes into messages of the user
_INJECTED = (
    *("timestamp", "user_info", "system_reminder", "open_and_recently_viewed_files", "git_status"),
    *("attached_files", "cursor_rules", "rules", "agent_transcripts", "project_layout"),
)


@dataclass(frozen=True)
class AgentContext:
    """The context of an agent, put together from its state (databases/cursor_state.py).

    Args:
        messages: those that the database has.
        missing: how many the database does not have.
        unread: how many are in no known form.
        turns: how many the dialog has, including those that a summary has replaced.
    """

    messages: list[Any]
    missing: int
    unread: int
    turns: int


def context_in(value: Any) -> AgentContext | None:
    """Returns the context in a value; None if it has none, or something else by that name."""
    fields = fields_of(fields_of(value).get("context"))
    messages = fields.get("messages")
    missing, unread, turns = (fields.get(name) for name in ("missing", "unread", "turns"))
    if (
        isinstance(messages, list)
        and isinstance(missing, int)
        and isinstance(unread, int)
        and isinstance(turns, int)
    ):
        return AgentContext(messages, missing, unread, turns)
    return None


def read_composer(
    source: str, value: Mapping[str, Any], context: AgentContext | None
) -> Iterator[Transcript | Unread]:
    """Reads a dialog of the database: its messages ("bubbles"), in the order that it lists."""
    data = require_object(value["composerData"])
    bubbles = fields_of(value.get("bubbles"))
    headers = optional_list(data.get("fullConversationHeadersOnly"))
    headers = headers or optional_list(data.get("conversation"))
    shown = [_find_bubble(header, bubbles) for header in headers]
    events = _read_bubbles(bubble for bubble in shown if bubble is not None)
    if missing_messages := sum(bubble is None for bubble in shown):
        count = count_of(missing_messages, "message")
        yield Unread(f"{source}: left out {count} that the database does not have")
    if abandoned := bubbles.keys() - {str(at(header, "bubbleId")) for header in headers}:
        count = count_of(len(abandoned), "message")
        yield Unread(f"{source}: left out {count} of abandoned branches (a restored checkpoint)")
    if context is not None and not events:
        yield from read_context_alone(source, context)
    elif context is not None and (events_in_context := _whole_context(context, events)):
        yield linear_transcript(source, events_in_context)
    elif events:
        if context is not None and (context.messages or context.missing):
            yield Unread(
                f"{source}: left out the agent's context, which does not have all messages of the"
                " dialog (after a summary, for example)"
            )
        yield linear_transcript(source, events)


def _find_bubble(header: Any, bubbles: Mapping[str, Any]) -> Any:
    """Returns the message that a header names; None if neither it nor the header has the text."""
    return bubbles.get(str(at(header, "bubbleId")), header if "text" in fields_of(header) else None)


def _whole_context(context: AgentContext, shown: Sequence[Event]) -> list[Event]:
    """Returns the events of a context that has everything that is shown; [] if it has not."""
    if context.missing or context.unread:
        return []
    try:
        events = [*chain.from_iterable(map(read_agent_message, context.messages))]
    except Malformed:
        return []
    if _words_of_user(events) != _words_of_user(shown):
        return []
    turns = zip(_turns(events), _turns(shown), strict=True)
    return events if all(_has_all(turn, turn_shown) for turn, turn_shown in turns) else []


def _turns(events: Iterable[Event]) -> list[list[Event]]:
    """Returns what follows each message of the user; first, what precedes all of them."""
    turns: list[list[Event]] = [[]]
    for event in events:
        if event.is_by_user:
            turns.append([])
        else:
            turns[-1].append(event)
    return turns


def _has_all(turn: Sequence[Event], shown: Sequence[Event]) -> bool:
    """Whether a turn of the context has the texts and the calls that are shown of it.

    The context may divide a text otherwise, and tools may have other names there, so calls are
    compared by the shell commands in them, and the others by their number.
    """
    text = "".join(_texts_of_assistant(turn))
    position = 0
    for text_shown in _texts_of_assistant(shown):
        start = text.find(text_shown, position)
        if start < 0:
            return False
        position = start + len(text_shown)
    return _scripts(shown) <= _scripts(turn)


def _texts_of_assistant(events: Iterable[Event]) -> list[str]:
    """Returns the texts of the assistant's messages, without white space."""
    return ["".join(event.text.split()) for event in events if event.role == "assistant"]


def _scripts(events: Iterable[Event]) -> Counter[str]:
    """Counts the calls by the script that each runs; "" for those that run none."""
    return Counter(script_of(event.call).strip() for event in events if event.call is not None)


def read_context_alone(source: str, context: AgentContext) -> Iterator[Transcript | Unread]:
    """Reads a dialog of which there is only the context, and says what that lacks."""
    events: list[Event] = []
    for message in context.messages:
        try:
            events += read_agent_message(message)
        except Malformed as error:
            yield Unread(f"{source}: {error}")
    if context.missing:
        count = count_of(context.missing, "message")
        yield Unread(f"{source}: left out {count} that the database does not have")
    if context.unread:
        yield Unread(f"{source}: left out {count_of(context.unread, 'message')} in no known form")
    earlier = context.turns - len(_words_of_user(events))
    if context.messages and earlier > 0:
        count = count_of(earlier, "turn")
        yield Unread(f"{source}: left out {count} that the agent's context does not have")
    if events:
        yield linear_transcript(source, events)


def _words_of_user(events: Iterable[Event]) -> list[str]:
    """Returns the user's messages, with each run of white space as one space."""
    return [" ".join(event.text.split()) for event in events if event.is_by_user]


def read_tabs(source: str, value: Mapping[str, Any]) -> Iterator[Transcript | Unread]:
    """Reads the chats of versions that had no composer yet."""
    for number, tab in enumerate(optional_list(value.get("tabs")), start=1):
        try:
            bubbles = optional_list(at(tab, "bubbles"))
            events = _read_bubbles(bubbles)
        except Malformed as error:
            yield Unread(f"{source}, chat {number}: {error}")
            continue
        if events:
            yield linear_transcript(f"{source}, chat {number}", events)


def _read_bubbles(bubbles: Iterable[Any]) -> list[Event]:
    return [event for bubble in bubbles for event in _read_bubble(require_object(bubble))]


def _read_bubble(bubble: Mapping[str, Any]) -> list[Event]:
    """Reads a message of the database, which has at most one tool call."""
    kind = bubble.get("type")
    role = _ROLES.get(kind) if isinstance(kind, (int, str)) else None
    if role is None:
        raise Malformed(f"it has a message of the type {shortened(kind)}, which is not known")
    text = bubble.get("text") or bubble.get("rawText") or ""
    if not isinstance(text, str):
        raise Malformed(f"the text of a message is {shortened(text)}")
    images = ("image",) * len(list_or_empty(bubble.get("images")))
    tool = bubble.get("toolFormerData")
    if role == "user" or not isinstance(tool, Mapping) or not isinstance(tool.get("name"), str):
        return message_events(role, text, unread=images) if text or images else []
    call_id = str(tool.get("toolCallId") or "")
    arguments = decode_json(tool.get("rawArgs")) or decode_json(tool.get("params"))
    call = read_call({"name": tool["name"], "arguments": arguments, "id": call_id})
    events = message_events(role, text, [call], unread=images)
    is_refusal = "rejected" in (tool.get("userDecision"), tool.get("status"))
    if is_refusal or tool.get("result") is not None:
        text = str(tool.get("result") or "")
        events.append(Event(EventKind.TOOL_RESULT, text, call_id=call_id, is_refusal=is_refusal))
    return events


def read_agent_message(message: Any) -> list[Event]:
    return [part for event in read_message(message) for part in _without_additions(event)]


def _without_additions(event: Event) -> list[Event]:
    """Separates what Cursor wrote into a message of the user; other events stay as they are."""
    if not event.is_by_user:
        return [event]
    words = element_text(event.text, "user_query")
    rest = remove_elements(event.text, ("user_query",)) if words else event.text
    if not words:
        words = remove_elements(event.text, _INJECTED)
        rest = event.text.replace(words, "", 1).strip() if words else event.text
    events = [Event(EventKind.REMINDER, rest)] if rest else []
    if words:
        events.append(Event(EventKind.MESSAGE, words, "user"))
    return with_unread(events, event.unread)
