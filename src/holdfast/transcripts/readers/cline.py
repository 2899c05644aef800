"""Cline's and Roo Code's tasks (`api_conversation_history.json`), and Cline's newer sessions.

The messages are Anthropic's. A turn of the user has tool results, notes of the program on the
environment, and the user's words, which are in elements such as `<task>`. A model without native
tool calls writes a call into its text, as an element with the name of the tool.

    {"role": "user", "content": [{"type": "text", "text": "<task>Fix it</task>"}, ...]}
    -> Event(MESSAGE, "Fix it", "user")
    {"role": "assistant", "content": [{"type": "text", "text": "<read_file><path>a.py</path>..."}]}
    -> Event(TOOL_CALL, call=ToolCall("read_file", {"path": "a.py"}))
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.errors import shortened
from holdfast.transcripts.call_messages import system_prompt
from holdfast.transcripts.content_blocks import blocks_of
from holdfast.transcripts.content_texts import text_of
from holdfast.transcripts.json_fields import (
    at,
    list_or_empty,
    optional_list,
    require_field,
    require_object,
)
from holdfast.transcripts.part_blocks import UnreadPart
from holdfast.transcripts.reader import Format, Unread, Values, file_of
from holdfast.transcripts.readers.cline_assistant_turns import TaskState, events_of_assistant
from holdfast.transcripts.readers.cline_user_turns import (
    SPOKEN_ELEMENT,
    events_of_user,
    texts_in_place_of_files,
)
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Malformed,
    Transcript,
    linear_transcript,
    with_unread,
)
from holdfast.validation.json_values import fields_of

_VERSION = 1  # the known version of Cline's sessions
# in the metadata of a message with the user's role: a summary, and what the program put there
_SUMMARY_KIND = "compaction_summary"
_ROLES_OF_PROGRAM = ("system", "status", "error")
_KINDS_OF_PROGRAM = (
    *("completion_reminder", "loop_detection_notice", "mistake_stop_notice", "recovery_notice"),
    "compaction_budget_emergency",
)


def _recognises(value: Any) -> bool:
    fields = fields_of(value)
    if {"messages", "sessionId", "agent"} <= fields.keys() or _is_display(value):
        return True
    if not isinstance(value, list):
        return False
    # other programs may have put a system prompt before the messages of a task
    return any(_is_of_task(message) for message in value[:3])


def _is_display(value: Any) -> bool:
    """Whether a value is an entry of `ui_messages.json`, which Cline displays."""
    fields = fields_of(value)
    return fields.get("type") in ("ask", "say") and "ts" in fields and fields["type"] in fields


def _is_of_task(message: Any) -> bool:
    """Whether a message looks like one that Cline or Roo Code wrote."""
    fields = fields_of(message)
    if fields.get("role") not in ("user", "assistant"):
        return False
    content = fields.get("content")
    if isinstance(content, list) and isinstance(fields.get("ts"), int):
        return True
    return any("<environment_details>" in text for text in _texts_in(content))


def _texts_in(content: Any) -> list[str]:
    """Returns the texts in the content of a message."""
    parts = content if isinstance(content, list) else [content]
    texts = [part if isinstance(part, str) else at(part, "text") for part in parts]
    return [text for text in texts if isinstance(text, str)]


def _read(values: Values) -> Iterator[Transcript | Unread]:
    display_entries = [source for source, value in values if _is_display(value)]
    if display_entries:
        yield Unread(
            f"{file_of(display_entries[0])} is what Cline displays of a task, which is not read;"
            " give api_conversation_history.json beside it"
        )
    for source, value in values:
        if _is_display(value):
            continue
        try:
            if isinstance(value, list):
                messages = value
            else:
                messages = optional_list(require_field(require_object(value), "messages"))
            prompt = system_prompt(fields_of(value).get("system_prompt"))
            events = [*prompt, *_events(messages)]
        except Malformed as error:
            yield Unread(f"{source}: {error}")
            continue
        version = fields_of(value).get("version", _VERSION)
        if version != _VERSION:
            yield Unread(
                f"{source}: the version {shortened(version)} of Cline's sessions is not known; it"
                f" is read as version {_VERSION}"
            )
        is_of_subagent = fields_of(value).get("agent") in ("subagent", "teammate")
        yield replace(linear_transcript(source, events), is_of_subagent=is_of_subagent)


def _events(messages: Sequence[Any]) -> list[Event]:
    """Reads the messages of a task."""
    task = TaskState(
        has_native_calls=any(map(_has_call, messages)),
        marks_words=any(map(_has_marked_words, messages)),
    )
    truncations = _truncations(messages)
    events: list[Event] = []
    for number, message in enumerate(messages, start=1):
        if _is_truncation_marker(message):
            continue
        try:
            new_events = [*_events_of_message(require_object(message), task)]
        except Malformed as error:
            raise Malformed(f"message {number}: {error}") from error
        if parent := message.get("truncationParent"):
            new_events = [replace(event, id=str(parent)) for event in new_events]
        events += new_events
        if number in truncations:
            events.append(_clearing(truncations[number], events))
    return events


def _is_truncation_marker(message: Any) -> bool:
    return at(message, "isTruncationMarker") is True


def _truncations(messages: Sequence[Any]) -> dict[int, str]:
    """Returns the ids of truncations, each by the number of the last message that it removed.

    Roo Code removes half of the messages of a long context. Each of these names the truncation, and
    the marker of the truncation is written before them.
    """
    parents = [at(message, "truncationParent") for message in messages]
    sizes = Counter(str(parent) for parent in parents if parent)
    truncations: dict[int, str] = {}
    for number, message in enumerate(messages, start=1):
        if _is_truncation_marker(message):
            name = str(message.get("truncationId"))
            truncations[number + sizes[name]] = name
    return truncations


def _clearing(name: str, events: Sequence[Event]) -> Event:
    """Returns the event that clears the messages which a truncation removed from the context."""
    calls = {event.call_id for event in events if event.id == name} - {""}
    return Event(EventKind.CLEARING, clears=frozenset((name, *calls)))


def _has_call(message: Any) -> bool:
    """Whether a message has a native tool call."""
    return any(at(block, "type") == "tool_use" for block in list_or_empty(at(message, "content")))


def _has_marked_words(message: Any) -> bool:
    """Whether a message of the user has words in elements."""
    texts = _texts_in(at(message, "content")) if at(message, "role") == "user" else []
    return any(SPOKEN_ELEMENT.search(text) for text in texts)


def _events_of_message(message: Mapping[str, Any], task: TaskState) -> Iterator[Event]:
    if message.get("type") == "reasoning":  # an entry of Roo Code's between the messages
        return
    content = texts_in_place_of_files(message.get("content"))
    if message.get("isSummary") is True or at(message, "metadata", "kind") == _SUMMARY_KIND:
        yield Event(EventKind.COMPACTION, text_of(content))
    elif _is_by_program(message):
        yield Event(EventKind.REMINDER, text_of(content))
    elif message.get("role") == "user":
        blocks = [*blocks_of(content)]
        unread = tuple(block.kind for block in blocks if isinstance(block, UnreadPart))
        yield from with_unread([*events_of_user(blocks, task)], unread)
    else:
        yield from events_of_assistant(message, task)


def _is_by_program(message: Mapping[str, Any]) -> bool:
    """Whether the metadata of a message says that Cline wrote all of it.

    A compaction adds what was done since to a message of the user, which is not such a one.
    """
    kind = at(message, "metadata", "kind")
    is_for_program = at(message, "metadata", "displayRole") in _ROLES_OF_PROGRAM
    return kind in _KINDS_OF_PROGRAM or (is_for_program and kind != "compaction")


FORMAT = Format("cline", _recognises, _read)
