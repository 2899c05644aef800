"""OpenTelemetry's spans as OTLP writes them in JSON: names and typed values in lists.

The messages of a call may be written as log records beside its span, or without it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.transcripts.calls import Call, transcripts_of_calls
from holdfast.transcripts.reader import Format, Unread, entries, field_of, fields_of, mapping
from holdfast.transcripts.readers import otel, phoenix
from holdfast.transcripts.spans import is_gen_ai
from holdfast.transcripts.transcript import Malformed

# as today's exporters write it, and as those before version 0.15 of the protocol
_SPANS = ("scopeSpans", "instrumentationLibrarySpans")
_LOGS = ("scopeLogs", "instrumentationLibraryLogs")
_OPERATION = "gen_ai.operation.name"


def _recognises(value: Any) -> bool:
    return not {"resourceSpans", "resourceLogs"}.isdisjoint(fields_of(value))


def _calls(where: str, value: Any) -> Iterator[Call | Unread]:
    for span in (*_spans(value), *_logged_calls(value)):
        reader = otel if is_gen_ai(span) else phoenix
        try:
            yield from reader.calls_in_span(where, span)
        except Malformed as error:  # the other spans of the batch can be read
            yield Unread(f"{where}: {error}")


def _spans(batch: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for span in _members(batch.get("resourceSpans"), _SPANS, "spans"):
        events = [
            {**mapping(event), "attributes": _plain(event.get("attributes"))}
            for event in entries(span.get("events"))
        ]
        yield {**span, "attributes": _plain(span.get("attributes")), "events": events}


def _logged_calls(batch: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The calls whose messages are log records, as spans that have these as their events."""
    spans: dict[str, dict[str, Any]] = {}
    for number, record in enumerate(_members(batch.get("resourceLogs"), _LOGS, "logRecords")):
        attributes = _plain(record.get("attributes"))
        name = str(record.get("eventName") or attributes.get("event.name") or "")
        if not name.startswith("gen_ai."):
            continue
        said = fields_of(_plain_value(record.get("body")))
        span = spans.setdefault(
            str(record.get("spanId") or number),
            {
                "traceId": record.get("traceId"),
                "spanId": record.get("spanId"),
                "startTimeUnixNano": record.get("timeUnixNano"),
                "attributes": {_OPERATION: attributes.get(_OPERATION)},
                "events": [],
            },
        )
        span["events"].append({"name": name, "attributes": {**attributes, **said}})
    return [*spans.values()]


def _members(resources: Any, scopes: Sequence[str], name: str) -> Iterator[Mapping[str, Any]]:
    for resource in entries(resources):
        listed = next((resource[scope] for scope in scopes if scope in mapping(resource)), None)
        for scope in entries(listed):
            yield from map(mapping, entries(mapping(scope).get(name)))


def _plain(listed: Any) -> dict[str, Any]:
    """OTLP's attributes as an object."""
    return {
        str(field_of(entry, "key")): _plain_value(entry.get("value")) for entry in entries(listed)
    }


def _plain_value(value: Any) -> Any:
    if not isinstance(value, Mapping) or len(value) != 1:
        return value
    ((kind, inner),) = value.items()
    if kind == "arrayValue":
        return [_plain_value(entry) for entry in entries(mapping(inner).get("values"))]
    return _plain(mapping(inner).get("values")) if kind == "kvlistValue" else inner


_DESCRIPTION = "an OTLP batch with a model call"
FORMAT = Format("otlp", _recognises, transcripts_of_calls(_calls, _DESCRIPTION), streams=True)
