"""OpenTelemetry's spans in OTLP's JSON, which has lists of names and typed values.

The messages of a call may be log records, beside its span or without one. The records of a slow
call are in several batches, so calls are put together from log records only at the end of a file.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from holdfast.plurals import count_of
from holdfast.transcripts.calls import Call, grouped_call_reader
from holdfast.transcripts.json_fields import optional_list, require_field, require_object
from holdfast.transcripts.reader import Format, Located, Unread
from holdfast.transcripts.readers import otel, phoenix
from holdfast.transcripts.trace_spans import is_gen_ai
from holdfast.transcripts.transcript import Malformed
from holdfast.validation.json_values import fields_of

# the names of fields in today's exports, and before version 0.15 of the protocol
_SPANS = ("scopeSpans", "instrumentationLibrarySpans")
_LOGS = ("scopeLogs", "instrumentationLibraryLogs")
_OPERATION = "gen_ai.operation.name"
_INPUT = "gen_ai.input.messages"
_OUTPUT = "gen_ai.output.messages"


def _recognises(value: Any) -> bool:
    return not {"resourceSpans", "resourceLogs"}.isdisjoint(_batch_in(value))


def _batch_in(value: Any) -> Mapping[str, Any]:
    """Returns a batch in a value, which the APIs of Grafana Tempo and Jaeger wrap or rename."""
    fields = fields_of(value)
    for name in ("trace", "result"):
        if "resourceSpans" in fields_of(fields.get(name)):
            return fields_of(fields[name])
    batches = fields.get("batches")
    if isinstance(batches, list) and any(name in fields_of(b) for b in batches for name in _SPANS):
        return {"resourceSpans": batches}
    return fields


class _Ids(NamedTuple):
    """The ids in a span or a log record; "" for one that is missing."""

    trace_id: str
    span_id: str


class _LogRecord(NamedTuple):
    """A log record about a call of a model."""

    source: str
    ids: _Ids  # of the call's span
    time: Any
    event: str
    attributes: dict[str, Any]  # with the fields of its body

    @property
    def has_input(self) -> bool:
        return otel.is_message_event(self.event) or _INPUT in self.attributes

    @property
    def has_answer(self) -> bool:
        return self.event == otel.CHOICE or _OUTPUT in self.attributes


@dataclass
class _File:
    """The batches of a file that have been read so far.

    Args:
        answered: the ids of the spans that have an answer.
        notes: notes on spans without messages, by the spans' ids.
        records: log records, by the ids of their spans.
    """

    answered: set[_Ids] = field(default_factory=set)
    notes: dict[_Ids, Unread] = field(default_factory=dict)
    records: dict[_Ids, list[_LogRecord]] = field(default_factory=dict)

    def calls_in_spans(self, source: str, batch: Mapping[str, Any]) -> Iterator[Call | Unread]:
        """Reads the spans of a batch."""
        for span in _spans(batch):
            ids = _ids_of(span)
            reader = otel if is_gen_ai(span) else phoenix
            try:
                for call in reader.calls_in_span(source, span):
                    if call.output:
                        self.answered.add(ids)
                    yield call
            except otel.WithoutMessages as error:  # a later batch may have them as log records
                note = Unread(f"{source}: {error}")
                if ids.span_id:
                    self.notes.setdefault(ids, note)
                else:
                    yield note
            except Malformed as error:  # the other spans of the batch may be readable
                yield Unread(f"{source}: {error}")

    def calls_in_records(self) -> Iterator[Call | Unread]:
        """Reads calls whose messages are log records; notes the ones without messages."""
        for ids, note in self.notes.items():
            if not any(r.has_input or r.has_answer for r in self.records.get(ids, [])):
                yield note
        for ids, records in self.records.items():
            if ids not in self.answered:
                yield from _logged_call(records, is_noted=ids in self.notes)


def _calls(values: Iterable[Located]) -> Iterator[Call | Unread]:
    """Reads the calls in the batches of a file."""
    file = _File()
    unassigned: list[_LogRecord] = []
    for source, value in values:
        try:
            batch = _batch_in(require_object(value))
            yield from file.calls_in_spans(source, batch)
            for record in _records(source, batch):
                if record.ids.span_id:
                    file.records.setdefault(record.ids, []).append(record)
                elif record.has_input and record.has_answer:
                    yield from _logged_call([record])
                elif record.has_input or record.has_answer:
                    unassigned.append(record)
        except Malformed as error:
            yield Unread(f"{source}: {error}")
    yield from file.calls_in_records()
    if unassigned:
        count = count_of(len(unassigned), "message")
        owner = "it belongs" if len(unassigned) == 1 else "they belong"
        yield Unread(
            f"{unassigned[0].source}: from here on, left out {count} in log records without a"
            f" spanId, as nothing tells which call {owner} to"
        )


def _logged_call(records: Sequence[_LogRecord], is_noted: bool = False) -> Iterator[Call | Unread]:
    """Reads the call that log records are about, as a span whose events they are.

    Args:
        is_noted: whether a note says already that the call's span has no messages.
    """
    first = records[0]
    operations = (record.attributes.get(_OPERATION) for record in records)
    operation = next(filter(None, operations), None)
    span = {
        "traceId": first.ids.trace_id,
        "spanId": first.ids.span_id,
        "startTimeUnixNano": first.time,
        "attributes": {_OPERATION: operation},
        "events": [{"name": r.event, "attributes": r.attributes} for r in records],
    }
    has_input = any(record.has_input for record in records)
    has_answer = any(record.has_answer for record in records)
    if has_input is not has_answer and otel.is_generating(operation):
        contents = "messages and no answer" if has_input else "an answer and no messages"
        name = f"span {first.ids.span_id}" if first.ids.span_id else "a call"
        yield Unread(
            f"{first.source}: left out a call, as the log records of {name} have {contents}"
        )
        return
    try:
        yield from otel.calls_in_span(first.source, span)
    except Malformed as error:
        if not (is_noted and isinstance(error, otel.WithoutMessages)):
            yield Unread(f"{first.source}: {error}")


def _ids_of(fields: Mapping[str, Any]) -> _Ids:
    return _Ids(str(fields.get("traceId") or ""), str(fields.get("spanId") or ""))


def _spans(batch: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the spans of a batch, with plain attributes."""
    for span in _members(batch.get("resourceSpans"), _SPANS, "spans"):
        events = [
            {**require_object(event), "attributes": _plain(event.get("attributes"))}
            for event in optional_list(span.get("events"))
        ]
        yield {**span, "attributes": _plain(span.get("attributes")), "events": events}


def _records(source: str, batch: Mapping[str, Any]) -> Iterator[_LogRecord]:
    """Yields the log records of a batch that are about calls of models."""
    for record in _members(batch.get("resourceLogs"), _LOGS, "logRecords"):
        attributes = _plain(record.get("attributes"))
        name = str(record.get("eventName") or attributes.get("event.name") or "")
        if name.startswith("gen_ai."):
            attributes = {**attributes, **fields_of(_plain_value(record.get("body")))}
            time = record.get("timeUnixNano")
            yield _LogRecord(source, _ids_of(record), time, name, attributes)


def _members(resources: Any, scope_fields: Sequence[str], name: str) -> Iterator[Mapping[str, Any]]:
    """Yields the spans or log records in the scopes of all resources."""
    for resource in optional_list(resources):
        fields = require_object(resource)
        scopes = next((fields[key] for key in scope_fields if key in fields), None)
        for scope in optional_list(scopes):
            yield from map(require_object, optional_list(require_object(scope).get(name)))


def _plain(attributes: Any) -> dict[str, Any]:
    """Turns OTLP's list of attributes into an object."""
    return {
        str(require_field(entry, "key")): _plain_value(entry.get("value"))
        for entry in optional_list(attributes)
    }


def _plain_value(value: Any) -> Any:
    """Returns a value without the object that names its type."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return value
    ((kind, inner),) = value.items()
    if kind == "arrayValue":
        return [_plain_value(entry) for entry in optional_list(require_object(inner).get("values"))]
    return _plain(require_object(inner).get("values")) if kind == "kvlistValue" else inner


_DESCRIPTION = "an OTLP batch with a model call"
FORMAT = Format("otlp", _recognises, grouped_call_reader(_calls, _DESCRIPTION), streams=True)
