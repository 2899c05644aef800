"""Inspect AI's logs of evaluations, as `.json` or `.eval`: each sample is a dialog."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.errors import shortened
from holdfast.transcripts.chat_messages import is_cut, read_message
from holdfast.transcripts.json_fields import at, entries, field_of, list_of, mapping
from holdfast.transcripts.reader import Format, Located, Unread
from holdfast.transcripts.transcript import Event, Kind, Malformed, Transcript, linear
from holdfast.validation.json_values import fields_of

_VERSIONS = (1, 2)
_ATTACHMENT = "attachment://"
_SCAFFOLD = (  # how what Inspect's agents say in place of a user begins
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
    for where, value in values:
        if _is_sample(value):
            yield from _sample(where, value)
            continue
        version = at(value, "version")
        if version not in _VERSIONS:
            yield Unread(
                f"{where}: the version {shortened(version)} of Inspect's logs is not known; it is"
                f" read as version {_VERSIONS[-1]}"
            )
        try:
            samples = entries(at(value, "samples"))
        except Malformed as error:
            yield Unread(f"{where}: {error}")
            continue
        # the header of a .eval archive has none: its samples are files of their own
        for sample in samples:
            name = f"sample {at(sample, 'id')}, epoch {at(sample, 'epoch')}"
            yield from _sample(f"{where}, {name}", sample)


def _sample(where: str, sample: Any) -> Iterator[Transcript | Unread]:
    try:
        attachments = fields_of(at(sample, "attachments"))
        messages = [mapping(message) for message in entries(field_of(sample, "messages"))]
        events = _events([_message(message, attachments) for message in messages])
    except Malformed as error:
        yield Unread(f"{where}: {error}")
        return
    choices = list_of(at(sample, "output", "choices"))
    if events and events[-1].is_by_assistant and choices and is_cut(choices[0]):
        events[-1] = replace(events[-1], is_cut=True)
    if failure := at(sample, "error", "message"):
        yield Unread(f"{where}: the sample ended with an error ({shortened(failure)})")
    yield linear(where, events)


def _events(messages: Sequence[Mapping[str, Any]]) -> list[Event]:
    """The events of the messages. A summary takes the place of all but the prompt and the input."""
    events: list[Event] = []
    for number, message in enumerate(messages, start=1):
        try:
            new_events = read_message(message)
        except Malformed as error:
            raise Malformed(f"message {number}: {error}") from error
        if "summary" in fields_of(message.get("metadata")):
            keeps = frozenset(event.id for event in events) - {""}
            new_events = [Event(Kind.COMPACTION, e.text, keeps=keeps) for e in new_events]
        elif _is_of_scaffold(message, new_events):
            new_events = [Event(Kind.REMINDER, event.text) for event in new_events]
        elif message.get("source") == "input":
            identity = str(message.get("id") or "")
            new_events = [replace(event, id=identity) for event in new_events]
        events += new_events
    return events


def _is_of_scaffold(message: Mapping[str, Any], events: Sequence[Event]) -> bool:
    """Whether a message of the user is what Inspect's agents say to go on."""
    is_named = message.get("source") is not None  # as that of the input, or of an operator
    text = "".join(event.text for event in events).lstrip()
    return message.get("role") == "user" and not is_named and text.startswith(_SCAFFOLD)


def _message(message: Mapping[str, Any], attachments: Mapping[str, Any]) -> dict[str, Any]:
    """A message as OpenAI writes it, with the texts that Inspect keeps beside the sample."""
    resolved: dict[str, Any] = _resolved(message, attachments)
    if failure := at(resolved, "error", "message"):  # of a tool
        resolved["content"] = resolved.get("content") or failure
    if calls := entries(resolved.get("tool_calls")):
        resolved["tool_calls"] = [_call(mapping(call)) for call in calls]
    return resolved


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": call.get("function"), "arguments": call.get("arguments"), "id": call.get("id")}


def _resolved(value: Any, attachments: Mapping[str, Any]) -> Any:
    """A value with the texts of the attachments that it names."""
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        return attachments.get(value.removeprefix(_ATTACHMENT), value)
    if isinstance(value, list):
        return [_resolved(entry, attachments) for entry in value]
    if isinstance(value, Mapping):
        return {name: _resolved(entry, attachments) for name, entry in value.items()}
    return value


FORMAT = Format("inspect", _recognises, _read, is_per_value=True)
