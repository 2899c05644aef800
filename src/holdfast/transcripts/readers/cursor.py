"""Cursor's chats.

They are read from the Markdown that Cursor exports, from its database `state.vscdb`, from its
agent's databases (`~/.cursor/chats/*/*/store.db`) and transcripts
(`~/.cursor/projects/*/agent-transcripts/`), and from the output of
`cursor-agent --output-format stream-json`.

In `state.vscdb`, a dialog has the messages that Cursor shows, and often the context of the agent as
well: the same messages with the system prompt and what Cursor added to them. The context is read if
it has all messages and calls that are shown.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from holdfast.errors import shortened
from holdfast.measures.agent_acts.agent_tools import script_of
from holdfast.plurals import count_of
from holdfast.transcripts.chat_messages import read_message
from holdfast.transcripts.content_blocks import read_call, text_of
from holdfast.transcripts.injected import element_text, remove_elements
from holdfast.transcripts.json_fields import (
    at,
    decode_json,
    list_or_empty,
    optional_list,
    require_object,
)
from holdfast.transcripts.reader import Format, Located, Markdown, Unread, Values, file_of
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Malformed,
    Transcript,
    call_events,
    linear_transcript,
    message_events,
    with_unread,
)
from holdfast.validation.json_values import fields_of

_EXPORT = re.compile(r"\A\s*# [^\n]*\n_Exported on [^\n]* from Cursor \([^\n]*\)_\s*\n")
_SPEAKER = re.compile(r"^---\n\n\*\*(User|Cursor)\*\*\n\n", re.MULTILINE)
# by an export's speaker, a message's type in the database, and its type before the composer
_ROLES: dict[int | str, str] = {
    **{"User": "user", "Cursor": "assistant"},
    **{1: "user", 2: "assistant"},
    **{"user": "user", "ai": "assistant"},
}
# the fields of the result of a call that the user or the permissions refused
_REFUSALS = ("rejected", "permissionDenied")
# types of lines outside the dialog: in the agent's output, and in its transcripts
_OTHER_TYPES = frozenset(("system", "thinking", "result", "interaction_query", "turn_ended"))
_INJECTED = (
    *("timestamp", "user_info", "system_reminder", "open_and_recently_viewed_files", "git_status"),
    *("attached_files", "cursor_rules", "rules", "agent_transcripts", "project_layout"),
)


@dataclass(frozen=True)
class _Context:
    """The context of an agent, put together from its state (transcripts/cursor_databases.py).

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


def _context_in(value: Any) -> _Context | None:
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
        return _Context(messages, missing, unread, turns)
    return None


def _recognises(value: Any) -> bool:
    if isinstance(value, Markdown):
        return bool(_EXPORT.match(value.text))
    fields = fields_of(value)
    if isinstance(fields.get("composerData"), Mapping) or _context_in(value) is not None:
        return True
    if isinstance(fields.get("tabs"), list):
        return any("bubbles" in fields_of(tab) for tab in fields["tabs"])
    return _is_of_agent(value) or _is_of_output(value)


def _is_of_output(value: Any) -> bool:
    """Whether a value is a line of the agent's output.

    Claude Code's output has similar messages, but these have ids, and tool calls and results among
    their blocks.
    """
    fields = fields_of(value)
    if "session_id" not in fields or {"uuid", "parent_tool_use_id"} & fields.keys():
        return False
    if fields.get("type") == "tool_call":
        return isinstance(fields.get("tool_call"), Mapping)
    message = fields_of(fields.get("message"))
    blocks = list_or_empty(message.get("content"))
    is_text = all(at(block, "type") == "text" for block in blocks)
    is_plain = message.keys() == {"role", "content"} and is_text
    return fields.get("type") in ("user", "assistant") and is_plain and bool(blocks)


def _is_of_agent(value: Any) -> bool:
    """Whether a value is a line of an agent's transcript."""
    fields = fields_of(value)
    names = fields.keys()
    is_message = "role" in names and isinstance(fields.get("message"), Mapping)
    return is_message and not names & {"type", "sessionId", "session_id", "uuid", "author"}


def _read(values: Iterable[Located]) -> Iterator[Transcript | Unread]:
    transcript_lines: Values = []
    output_lines: dict[str, Values] = {}  # by session
    for source, value in values:
        if _is_of_output(value):
            session = str(value["session_id"])
            output_lines.setdefault(session, []).append(Located(source, value))
            continue
        if _is_of_agent(value):
            transcript_lines.append(Located(source, value))
            continue
        fields = fields_of(value)
        context = _context_in(value)
        try:
            if isinstance(value, Markdown):
                yield from _read_export(source, value.text)
            elif isinstance(fields.get("composerData"), Mapping):
                yield from _read_composer(source, fields, context)
            elif context is not None and not fields.get("tabs"):
                yield from _read_context_alone(source, context)
            elif "composerData" in fields and not fields.get("tabs"):
                raise Malformed(f"its dialog is {shortened(fields['composerData'])}")
            else:
                yield from _read_tabs(source, require_object(value))
        except Malformed as error:
            yield Unread(f"{source}: {error}")
    if transcript_lines:
        yield from _read_agent_transcript(transcript_lines)
    for session, lines in output_lines.items():
        yield from _read_output(f"{file_of(lines[0].source)}, session {session}", lines)


def _read_export(source: str, text: str) -> Iterator[Transcript | Unread]:
    """Reads a chat that was exported as Markdown."""
    preface, *turns = _SPEAKER.split(_EXPORT.sub("", text.replace("\r\n", "\n")))
    if preface.strip():
        yield Unread(f"{source}: left out the text before its first message")
    events: list[Event] = []
    for speaker, words in zip(turns[::2], turns[1::2], strict=True):
        text = words.strip().removesuffix("\n\n---").strip()
        events += message_events(_ROLES[speaker], text)
    yield linear_transcript(file_of(source), events)


def _read_agent_transcript(lines: Values) -> Iterator[Transcript | Unread]:
    """Reads a transcript of the agent, which is a single session."""
    events: list[Event] = []
    for source, line in lines:
        try:
            events += _read_with_additions({"role": line.get("role"), **line["message"]})
        except Malformed as error:
            yield Unread(f"{source}: {error}")
    yield linear_transcript(file_of(lines[0].source), events)


def _read_output(name: str, lines: Values) -> Iterator[Transcript | Unread]:
    """Reads a session in the agent's output.

    With `--stream-partial-output`, a reply is printed in parts, which have times, and then again as
    a whole.
    """
    is_in_parts = any(_is_part(line) for _, line in lines)
    events: list[Event] = []
    call_ids: set[str] = set()  # of the calls so far
    for source, line in lines:
        try:
            if line["type"] == "tool_call":
                events += _read_output_call(line, call_ids)
            elif line["type"] == "user":
                events += _read_with_additions(line["message"])
            elif not is_in_parts:
                events += read_message(line["message"])
            elif _is_part(line):
                text = text_of(line["message"]["content"])
                if events and events[-1].role == "assistant":  # the part before it
                    text = events.pop().text + text
                events += message_events("assistant", text)
        except Malformed as error:
            yield Unread(f"{source}: {error}")
    yield linear_transcript(name, events)


def _is_part(line: Mapping[str, Any]) -> bool:
    """Whether a line is a part of a reply, rather than a whole one."""
    return "timestamp_ms" in line and "model_call_id" not in line and line["type"] == "assistant"


def _read_output_call(line: Mapping[str, Any], call_ids: set[str]) -> list[Event]:
    """Reads the beginning of a call, or its end with the result.

    The fields are in an object named after the tool, such as `shellToolCall`.

    Args:
        call_ids: the calls so far; a new one is added.
    """
    wrapper = line["tool_call"]
    name = next((name for name in wrapper if isinstance(wrapper[name], Mapping)), "")
    fields = fields_of(wrapper.get(name))
    call_id = str(line.get("call_id") or "")
    events: list[Event] = []
    if call_id not in call_ids:
        call_ids.add(call_id)
        tool = fields.get("name") or name.removesuffix("ToolCall")
        arguments = decode_json(fields.get("args", fields.get("arguments")))
        call = read_call({"name": tool, "arguments": arguments, "id": call_id})
        events += call_events(call)
    result = fields.get("result")
    if line.get("subtype") == "completed" and result is not None:
        text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        is_refusal = not fields_of(result).keys().isdisjoint(_REFUSALS)
        events.append(Event(EventKind.TOOL_RESULT, text, call_id=call_id, is_refusal=is_refusal))
    return events


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


def _read_composer(
    source: str, value: Mapping[str, Any], context: _Context | None
) -> Iterator[Transcript | Unread]:
    """Reads a dialog of the database: its messages ("bubbles"), in the order that it lists."""
    data = require_object(value["composerData"])
    bubbles = fields_of(value.get("bubbles"))
    headers = optional_list(data.get("fullConversationHeadersOnly"))
    headers = headers or optional_list(data.get("conversation"))
    events: list[Event] = []
    missing_messages = 0
    for header in headers:
        name = str(at(header, "bubbleId"))
        bubble = bubbles.get(name, header if "text" in fields_of(header) else None)
        if bubble is None:
            missing_messages += 1
        else:
            events += _bubble(require_object(bubble))
    if missing_messages:
        count = count_of(missing_messages, "message")
        yield Unread(f"{source}: left out {count} that the database does not have")
    active = {str(at(header, "bubbleId")) for header in headers}
    if abandoned := bubbles.keys() - active:
        count = count_of(len(abandoned), "message")
        yield Unread(f"{source}: left out {count} of abandoned branches (a restored checkpoint)")
    if context is not None and not events:
        yield from _read_context_alone(source, context)
    elif context is not None and (events_in_context := _whole_context(context, events)):
        yield linear_transcript(source, events_in_context)
    elif events:
        if context is not None and (context.messages or context.missing):
            yield Unread(
                f"{source}: left out the agent's context, which does not have all messages of the"
                " dialog (after a summary, for example)"
            )
        yield linear_transcript(source, events)


def _whole_context(context: _Context, shown: Sequence[Event]) -> list[Event]:
    """Returns the events of a context that has everything that is shown; [] if it has not."""
    if context.missing or context.unread:
        return []
    try:
        events = [*chain.from_iterable(map(_read_with_additions, context.messages))]
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


def _read_context_alone(source: str, context: _Context) -> Iterator[Transcript | Unread]:
    """Reads a dialog of which there is only the context, and says what that lacks."""
    events: list[Event] = []
    for message in context.messages:
        try:
            events += _read_with_additions(message)
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


def _read_with_additions(message: Any) -> list[Event]:
    return [part for event in read_message(message) for part in _without_additions(event)]


def _words_of_user(events: Iterable[Event]) -> list[str]:
    """Returns the user's messages, with each run of white space as one space."""
    return [" ".join(event.text.split()) for event in events if event.is_by_user]


def _read_tabs(source: str, value: Mapping[str, Any]) -> Iterator[Transcript | Unread]:
    """Reads the chats of versions that had no composer yet."""
    for number, tab in enumerate(optional_list(value.get("tabs")), start=1):
        try:
            bubbles = optional_list(at(tab, "bubbles"))
            events = [*chain.from_iterable(_bubble(require_object(bubble)) for bubble in bubbles)]
        except Malformed as error:
            yield Unread(f"{source}, chat {number}: {error}")
            continue
        if events:
            yield linear_transcript(f"{source}, chat {number}", events)


def _bubble(bubble: Mapping[str, Any]) -> list[Event]:
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


FORMAT = Format(
    "cursor", _recognises, _read, has_events=True, other_types=_OTHER_TYPES, streams=True
)
