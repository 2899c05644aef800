"""Inspect AI's logs of evaluations, as `.json` or `.eval`: each sample is a dialog.

A value, shortened:

    {"eval": {...}, "samples": [{"id": 1, "messages": [{"role": "user", "content": "Hi"}, ...]}]}
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.errors import shortened
from holdfast.transcripts.chat_messages import is_cut, read_message
from holdfast.transcripts.json_fields import (
    at,
    list_or_empty,
    optional_list,
    require_field,
    require_object,
)
from holdfast.transcripts.reader import Format, Located, Unread
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Malformed,
    Transcript,
    linear_transcript,
)
from holdfast.validation.json_values import fields_of

_VERSIONS = (1, 2)  # the known versions of the format
# types of the errors of calls that never ran
_REFUSALS = ("approval", "parsing")
_ATTACHMENT = "attachment://"
# how messages begin that Inspect's agents write in place of a user
_SCAFFOLD = (
    "Please proceed to the next step using your best judgement.",
    "Context compaction approaching. Use memory()",
)


def _recognises(value: Any) -> bool:
    fields = fields_of(value)
    return _is_sample(value) or ({"eval", "status"} <= fields.keys() and "version" in fields)


def _is_sample(value: Any) -> bool:
    fields = fields_of(value)
    return {"id", "epoch", "input"} <= fields.keys() and "messages" in fields


def _read(values: Iterable[Located]) -> Iterator[Transcript | Unread]:
    for source, value in values:
        if _is_sample(value):
            yield from _sample(source, value)
            continue
        version = at(value, "version")
        if version not in _VERSIONS:
            yield Unread(
                f"{source}: the version {shortened(version)} of Inspect's logs is not known; it is"
                f" read as version {_VERSIONS[-1]}"
            )
        try:
            samples = optional_list(at(value, "samples"))
        except Malformed as error:
            yield Unread(f"{source}: {error}")
            continue
        # the header of an .eval archive has no samples: these are separate files
        for sample in samples:
            name = f"sample {at(sample, 'id')}, epoch {at(sample, 'epoch')}"
            yield from _sample(f"{source}, {name}", sample)


def _sample(source: str, sample: Any) -> Iterator[Transcript | Unread]:
    """Reads a sample, whose texts may be attachments."""
    try:
        attachments = fields_of(at(sample, "attachments"))
        entries = optional_list(require_field(sample, "messages"))
        events = _events([_message(require_object(entry), attachments) for entry in entries])
    except Malformed as error:
        yield Unread(f"{source}: {error}")
        return
    choices = list_or_empty(at(sample, "output", "choices"))
    if events and events[-1].is_by_assistant and choices and is_cut(choices[0]):
        events[-1] = replace(events[-1], is_cut=True)
    if failure := at(sample, "error", "message"):
        yield Unread(f"{source}: the sample ended with an error ({shortened(failure)})")
    yield linear_transcript(source, events)


def _events(messages: Sequence[Mapping[str, Any]]) -> list[Event]:
    """Reads the messages of a sample.

    A summary replaces all messages before it, except the system prompt and the input.
    """
    events: list[Event] = []
    for number, message in enumerate(messages, start=1):
        try:
            new_events = read_message(message)
        except Malformed as error:
            raise Malformed(f"message {number}: {error}") from error
        if at(message, "error", "type") in _REFUSALS:
            new_events = [replace(event, is_refusal=True) for event in new_events]
        if "summary" in fields_of(message.get("metadata")):
            keeps = frozenset(event.id for event in events) - {""}
            new_events = [Event(EventKind.COMPACTION, e.text, keeps=keeps) for e in new_events]
        elif _is_of_scaffold(message, new_events):
            new_events = [Event(EventKind.REMINDER, event.text) for event in new_events]
        elif message.get("source") == "input":
            identity = str(message.get("id") or "")
            new_events = [replace(event, id=identity) for event in new_events]
        events += new_events
    return events


def _is_of_scaffold(message: Mapping[str, Any], events: Sequence[Event]) -> bool:
    """Whether one of Inspect's agents wrote a message in the user's place."""
    is_named = message.get("source") is not None  # such as the input, or an operator's message
    text = "".join(event.text for event in events).lstrip()
    return message.get("role") == "user" and not is_named and text.startswith(_SCAFFOLD)


def _message(message: Mapping[str, Any], attachments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a message in OpenAI's form, with the texts that Inspect keeps beside the sample."""
    fields: dict[str, Any] = _resolve_attachments(message, attachments)
    if failure := at(fields, "error", "message"):  # the error of a tool
        fields["content"] = fields.get("content") or failure
    if calls := optional_list(fields.get("tool_calls")):
        fields["tool_calls"] = [_call(require_object(call)) for call in calls]
    return fields


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a tool call under the names that OpenAI's API uses."""
    return {"name": call.get("function"), "arguments": call.get("arguments"), "id": call.get("id")}


def _resolve_attachments(value: Any, attachments: Mapping[str, Any]) -> Any:
    """Puts the texts of attachments in place of the references to them, at any depth."""
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        return attachments.get(value.removeprefix(_ATTACHMENT), value)
    if isinstance(value, list):
        return [_resolve_attachments(entry, attachments) for entry in value]
    if isinstance(value, Mapping):
        return {name: _resolve_attachments(entry, attachments) for name, entry in value.items()}
    return value


FORMAT = Format("inspect", _recognises, _read, is_per_value=True)
