"""Inspect AI's logs of evaluations, as `.json` or `.eval`: each sample is a dialog."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.errors import shortened
from holdfast.transcripts.chat_messages import is_cut, read_message
from holdfast.transcripts.json_fields import at, entries, field_of, fields_of, mapping
from holdfast.transcripts.reader import Format, Located, Unread
from holdfast.transcripts.transcript import Event, Kind, Malformed, Transcript, linear

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
    choices = at(sample, "output", "choices")
    last = choices[0] if isinstance(choices, list) and choices else None
    if events and events[-1].is_by_assistant and is_cut(last):
        events[-1] = replace(events[-1], is_cut=True)
    if failure := at(sample, "error", "message"):
        yield Unread(f"{where}: the sample ended with an error ({shortened(failure)})")
    yield linear(where, events)


def _events(messages: Sequence[Mapping[str, Any]]) -> list[Event]:
    """The events of the messages. A summary takes the place of all but the prompt and the input."""
    events: list[Event] = []
    for number, message in enumerate(messages, start=1):
        try:
            read = read_message(message)
        except Malformed as error:
            raise Malformed(f"message {number}: {error}") from error
        if "summary" in fields_of(message.get("metadata")):
            kept = frozenset(event.id for event in events) - {""}
            read = [Event(Kind.COMPACTION, event.text, keeps=kept) for event in read]
        elif _is_of_scaffold(message, read):
            read = [Event(Kind.REMINDER, event.text) for event in read]
        elif message.get("source") == "input":
            read = [replace(event, id=str(message.get("id") or "")) for event in read]
        events += read
    return events


def _is_of_scaffold(message: Mapping[str, Any], read: Sequence[Event]) -> bool:
    """Whether a message of the user is what Inspect's agents say to go on."""
    is_named = message.get("source") is not None  # as that of the input, or of an operator
    text = "".join(event.text for event in read).lstrip()
    return message.get("role") == "user" and not is_named and text.startswith(_SCAFFOLD)


def _message(message: Mapping[str, Any], attachments: Mapping[str, Any]) -> dict[str, Any]:
    """A message as OpenAI writes it, with the texts that Inspect keeps beside the sample."""
    whole = _resolved(message, attachments)
    if failure := at(whole, "error", "message"):  # of a tool
        whole = {**whole, "content": whole.get("content") or failure}
    calls = [_call(mapping(call)) for call in entries(whole.get("tool_calls"))]
    return {**whole, "tool_calls": calls} if calls else whole


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
