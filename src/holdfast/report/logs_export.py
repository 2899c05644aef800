"""The scores of logs as files for other programs: a row or an event for each turn and rule.

- CSV and Parquet: a table.
- OTLP's JSON: the event `gen_ai.evaluation.result` of OpenTelemetry's semantic conventions for
  generative AI (open-telemetry/semantic-conventions-genai, model/gen-ai/events.yaml). If the log
  consists of spans, the event belongs to the span that the turn came from.

Rows are written while they are read, so a run may be larger than memory.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from types import NoneType
from typing import IO, Any, NamedTuple, get_args, get_type_hints

from holdfast.analysis.rule_scores import label_of
from holdfast.errors import UsageError
from holdfast.extras import import_extra
from holdfast.files import cannot_write
from holdfast.measures.scores import MIN_KEPT_SCORE
from holdfast.records import LogProbe, Probe, Run
from holdfast.records.export import csv_lines, write_parquet_rows
from holdfast.records.log_scores import rule_of
from holdfast.records.run_table import Column
from holdfast.version import __version__

KEPT_LABEL = "pass"
BROKEN_LABEL = "fail"
UNSCORED_LABEL = "not judged"
SUFFIXES = (".csv", ".parquet", ".json")
_ID_FORMATS = {"traceId": re.compile(r"[0-9a-f]{32}"), "spanId": re.compile(r"[0-9a-f]{16}")}


class ScoreRow(NamedTuple):
    """A turn, and its score under one of the rules that apply to it."""

    source: str
    dialog: int
    prompt: str
    category: str | None
    rule: str
    turn: int
    tokens: int
    score: float | None  # None if the turn was not judged
    label: str  # KEPT_LABEL, BROKEN_LABEL or UNSCORED_LABEL
    reason: str
    cause: str | None  # of a breach: why the rule was broken
    call: str | None  # of a breach: the tool call that broke the rule, if a single one did
    judge: str | None
    user: str
    reply: str
    tools: str
    span: str | None  # "TRACE/SPAN", if the log has spans


COLUMNS = tuple(
    Column(name, next(kind for kind in (*get_args(hint), hint) if kind is not NoneType))
    for name, hint in get_type_hints(ScoreRow).items()
)


def write_logs_export(run: Run, path: Path) -> Path:
    """Writes the scores of a run of `holdfast logs` in the format that the file's suffix names.

    Raises:
        UsageError: the suffix is not one of `SUFFIXES`, or pyarrow is needed and not installed.
        RecordsError: the file cannot be written.
    """
    check_export(path)
    write = _WRITERS[path.suffix]
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            write(run, file)
        os.replace(temporary, path)
    except OSError as error:
        raise cannot_write(path, error, "another file") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    return path


def check_export(path: Path) -> None:
    """Refuses a file whose suffix names no format, or whose format needs a missing package."""
    if path.suffix not in _WRITERS:
        raise UsageError(
            f"--export {path} is in no known format; let it end in .csv, .parquet, or .json for"
            " OpenTelemetry's events.",
            option="export",
            value=str(path),
            allowed=SUFFIXES,
        )
    if path.suffix == ".parquet":
        import_extra("pyarrow", "parquet", "A Parquet file")


def rows_of(run: Run) -> Iterator[ScoreRow]:
    """A row for each turn and rule that applies to it."""
    for record in run.dialogs:
        turns = {turn.round: turn for turn in record.turns}
        for score in sorted(record.answered, key=lambda item: item.round):
            turn = turns[score.round]
            value = score.score if isinstance(score, Probe) else None
            cause = score.cause if isinstance(score, LogProbe) else None
            step = cause.step if cause else None
            yield ScoreRow(
                source=record.source,
                dialog=record.conversation,
                prompt=record.agent.id,
                category=record.agent.category,
                rule=label_of(rule_of(record, score)),
                turn=score.round,
                tokens=turn.tokens,
                score=value,
                label=_label(value),
                reason=score.reason,
                cause=cause.cause if cause else None,
                call=" ".join(f"{step.tool} {step.text}".split()) if step else None,
                judge=score.judge if isinstance(score, Probe) else None,
                user=score.question,
                reply=turn.text,
                tools=", ".join(turn.tools),
                span=turn.span,
            )


def _label(score: float | None) -> str:
    if score is None:
        return UNSCORED_LABEL
    return KEPT_LABEL if score >= MIN_KEPT_SCORE else BROKEN_LABEL


def _write_csv(run: Run, file: IO[bytes]) -> None:
    file.writelines(csv_lines(COLUMNS, rows_of(run)))


def _write_parquet(run: Run, file: IO[bytes]) -> None:
    metadata = {"holdfast.identity": json.dumps(run.manifest.identity.to_json())}
    write_parquet_rows(file, COLUMNS, rows_of(run), metadata)


def _write_otlp(run: Run, file: IO[bytes]) -> None:
    """Writes one `ExportLogsServiceRequest` in OTLP's JSON."""
    scope = {"name": "holdfast", "version": __version__}
    resource = {"attributes": _attributes({"service.name": "holdfast"})}
    created = run.manifest.created or "1970-01-01T00:00:00+00:00"
    time = str(int(datetime.datetime.fromisoformat(created).timestamp()) * 1_000_000_000)
    head = f'{{"resourceLogs": [{{"resource": {json.dumps(resource)}, "scopeLogs": '
    file.write(f'{head}[{{"scope": {json.dumps(scope)}, "logRecords": ['.encode())
    for number, row in enumerate(rows_of(run)):
        file.write((",\n" if number else "\n").encode())
        file.write(json.dumps(_event(row, time)).encode())
    file.write(b"\n]}]}]}\n")


def _event(row: ScoreRow, time: str) -> dict[str, Any]:
    """An event of the conventions, with further attributes that say where it comes from."""
    trace, _, span = (row.span or "").partition("/")
    ids = {"traceId": trace.removeprefix("0x"), "spanId": span.removeprefix("0x")}
    is_linked = all(_ID_FORMATS[name].fullmatch(value) for name, value in ids.items())
    attributes = {
        "gen_ai.evaluation.name": row.rule,
        "gen_ai.evaluation.score.value": row.score,
        "gen_ai.evaluation.score.label": row.label,
        "gen_ai.evaluation.explanation": row.reason,
        "holdfast.source": row.source,
        "holdfast.turn": row.turn,
        "holdfast.cause": row.cause,
        # an id in another form than OpenTelemetry's does not fit its fields
        "holdfast.span": row.span if not is_linked else None,
    }
    return {
        "timeUnixNano": time,
        "observedTimeUnixNano": time,
        "eventName": "gen_ai.evaluation.result",
        "severityNumber": 9,
        "attributes": _attributes(attributes),
        **(ids if is_linked else {}),
    }


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Attributes in OTLP's form; ones without a value are left out."""
    return [
        {"key": name, "value": _otlp_value(value)}
        for name, value in values.items()
        if value is not None
    ]


def _otlp_value(value: str | int | float) -> dict[str, Any]:
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


_WRITERS: dict[str, Callable[[Run, IO[bytes]], None]] = {
    ".csv": _write_csv,
    ".parquet": _write_parquet,
    ".json": _write_otlp,
}
