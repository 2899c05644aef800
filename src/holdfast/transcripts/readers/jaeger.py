"""Traces as Jaeger writes them in JSON: spans with `tags`, and their events among the `logs`.

A trace, shortened:

    {"traceID": "1", "spans": [{"spanID": "2", "tags": [{"key": "gen_ai.system", "value": "m"}]}]}
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from holdfast.transcripts.json_fields import optional_list, require_object
from holdfast.transcripts.reader import Format, Located, Unread
from holdfast.transcripts.readers import otlp
from holdfast.transcripts.transcript import Malformed, Transcript
from holdfast.validation.json_values import fields_of

_NANOSECONDS = 1000  # in a microsecond, in which Jaeger has times


def _recognises(value: Any) -> bool:
    return {"traceID", "spans"} <= fields_of(value).keys()


def _transcripts(values: Iterable[Located]) -> Iterator[Transcript | Unread]:
    """Reads the calls of models in traces, as a batch of OTLP has them."""
    problems: list[Unread] = []

    def batches() -> Iterator[Located]:
        for source, value in values:
            try:
                spans = [_span(span) for span in optional_list(require_object(value).get("spans"))]
            except Malformed as error:
                problems.append(Unread(f"{source}: {error}"))
                continue
            yield Located(source, {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})

    yield from otlp.FORMAT.read(batches())  # type: ignore[arg-type]
    yield from problems


def _span(value: Any) -> dict[str, Any]:
    """Returns a span with the names that OTLP has for its fields."""
    span = require_object(value)
    start = span.get("startTime")
    return {
        "traceId": span.get("traceID"),
        "spanId": span.get("spanID"),
        "name": span.get("operationName"),
        "startTimeUnixNano": start * _NANOSECONDS if isinstance(start, int) else start,
        "attributes": span.get("tags"),
        "events": [_event(log) for log in optional_list(span.get("logs"))],
    }


def _event(value: Any) -> dict[str, Any]:
    fields = optional_list(require_object(value).get("fields"))
    names = (field.get("value") for field in fields if _key_of(field) in ("event", "name"))
    return {"name": next(names, ""), "attributes": fields}


def _key_of(field: Any) -> Any:
    return field.get("key") if isinstance(field, Mapping) else None


FORMAT = Format("jaeger", _recognises, _transcripts, streams=True)
