"""OpenTelemetry's spans as OTLP writes them in JSON: names and typed values in lists."""

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.transcripts.calls import Call, transcripts_of_calls
from holdfast.transcripts.reader import Format, entries, field_of, fields_of, mapping
from holdfast.transcripts.readers import otel, phoenix
from holdfast.transcripts.spans import is_gen_ai


def _recognises(value: Any) -> bool:
    return "resourceSpans" in fields_of(value)


# as today's exporters write it, and as those before version 0.15 of the protocol
_SCOPES = ("scopeSpans", "instrumentationLibrarySpans")


def _calls(where: str, value: Any) -> Iterator[Call]:
    for resource in entries(field_of(value, "resourceSpans")):
        scopes = next((resource[name] for name in _SCOPES if name in mapping(resource)), None)
        for scope in entries(scopes):
            for span in entries(mapping(scope).get("spans")):
                plain = {**mapping(span), "attributes": _plain(span.get("attributes"))}
                plain["events"] = [
                    {**mapping(event), "attributes": _plain(event.get("attributes"))}
                    for event in entries(span.get("events"))
                ]
                reader = otel if is_gen_ai(plain) else phoenix
                yield from reader.calls_in_span(where, plain)


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


_DESCRIPTION = "OTLP batches with a model call"
FORMAT = Format("otlp", _recognises, transcripts_of_calls(_calls, _DESCRIPTION), streams=True)
