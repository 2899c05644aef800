"""Writes tables to files for spreadsheets and other tools, such as that of a run (docs/runs.md)."""

import csv
import importlib
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

from holdfast.extras import import_extra
from holdfast.files import write_whole
from holdfast.records.manifest import SCHEMA
from holdfast.records.run import Run
from holdfast.records.run_table import Column

# the last four are full-width forms, which some spreadsheets treat alike
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_ROW_GROUP = 50_000  # rows of a Parquet file that are written together
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")


def write_csv(run: Run, path: Path | str) -> Path:
    """Writes the table of a run as CSV.

    Raises:
        RecordsError: the file cannot be written.
    """
    table = run.to_table()
    return write_whole(path, b"".join(csv_lines(table.columns, table.rows)), "another file")


def csv_lines(columns: Sequence[Column], rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    """Yields a table as lines of CSV (UTF-8, RFC 4180), the header first; None is an empty field.

    A text that a spreadsheet would run as a formula has an apostrophe before it.
    """
    yield _csv_line([column.name for column in columns])
    for row in rows:
        cells = zip(columns, row, strict=True)
        yield _csv_line(
            [_without_formula(value) if column.type is str else value for column, value in cells]
        )


def _csv_line(row: Sequence[Any]) -> bytes:
    """Returns a row of CSV, ending with a line feed.

    The writer quotes a field only for characters that are in its line terminator. So the terminator
    is CR LF here, or else a carriage return in a text would stay unquoted, and readers would take
    it for the end of the row.
    """
    line = io.StringIO(newline="")
    csv.writer(line, lineterminator="\r\n").writerow(row)
    text = line.getvalue().removesuffix("\r\n")
    return f"{text}\n".encode("utf-8", "replace")


def _without_formula(text: str | None) -> str | None:
    """Returns a text that no spreadsheet takes for a formula, by an apostrophe before one that it
    would; a number stays as it is.
    """
    if text is None or not text.startswith(_FORMULA_STARTS) or _NUMBER.fullmatch(text):
        return text
    return f"'{text}"


def write_parquet(run: Run, path: Path | str) -> Path:
    """Writes the table of a run as Parquet; the schema holds the identity of the run as JSON.

    Raises:
        UsageError: pyarrow is not installed.
        RecordsError: the file cannot be written.
    """
    metadata = {
        "holdfast.identity": json.dumps(run.manifest.identity.to_json()),
        f"holdfast.{SCHEMA}": str(run.manifest.version),
    }
    table = run.to_table()
    content = io.BytesIO()
    write_parquet_rows(content, table.columns, table.rows, metadata)
    return write_whole(path, content.getvalue(), "another file")


def write_parquet_rows(
    file: IO[bytes],
    columns: Sequence[Column],
    rows: Iterable[Sequence[Any]],
    metadata: Mapping[str, str],
) -> None:
    """Writes a table as Parquet; few of its rows are in memory at a time.

    Raises:
        UsageError: pyarrow is not installed.
    """
    arrow = import_extra("pyarrow", "parquet", "A Parquet file")
    parquet = importlib.import_module("pyarrow.parquet")
    types = {str: arrow.string(), int: arrow.int64(), float: arrow.float64()}
    fields = [(column.name, types[column.type]) for column in columns]
    schema = arrow.schema(fields, metadata=metadata)
    remaining = iter(rows)
    with parquet.ParquetWriter(file, schema) as writer:
        while group := list(islice(remaining, _ROW_GROUP)):
            by_column = zip(columns, zip(*group, strict=True), strict=True)
            values = {
                column.name: list(map(_without_surrogates, cells)) for column, cells in by_column
            }
            writer.write_table(arrow.table(values, schema=schema))


def _without_surrogates(value: Any) -> Any:
    """Replaces the lone surrogates in a text, which Parquet refuses.

    Returns other values as they are.
    """
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
