"""Writes the table of a run to a file, for spreadsheets and other tools (docs/runs.md)."""

import csv
import importlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.extras import import_extra
from holdfast.files import write_whole
from holdfast.records.earlier import SCHEMA
from holdfast.records.run import Run
from holdfast.records.run_table import Column

# the last four are full-width forms, which some spreadsheets treat alike
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")


def write_csv(run: Run, path: Path | str) -> Path:
    """Writes the table of a run as CSV (UTF-8, RFC 4180); None is an empty field.

    A text that a spreadsheet would run as a formula has an apostrophe before it.

    Raises:
        RecordsError: the file cannot be written.
    """
    table = run.to_table()
    cells = [
        [without_formula(value) for value in table.values[column.name]]
        if column.type is str
        else table.values[column.name]
        for column in table.columns
    ]
    header = [column.name for column in table.columns]
    lines = [csv_line(row) for row in (header, *zip(*cells, strict=True))]
    return write_whole(path, "".join(lines), "another file")


def csv_line(row: Sequence[Any]) -> str:
    """Returns a row of CSV, ending with a line feed.

    The writer quotes a field only for characters that are in its line terminator. So the terminator
    is CR LF here, or else a carriage return in a text would stay unquoted, and readers would take
    it for the end of the row.
    """
    line = io.StringIO(newline="")
    csv.writer(line, lineterminator="\r\n").writerow(row)
    return line.getvalue().removesuffix("\r\n") + "\n"


def without_formula(text: str | None) -> str | None:
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
    arrow = import_extra("pyarrow", "parquet", "A Parquet file")
    parquet = importlib.import_module("pyarrow.parquet")
    metadata = {
        "holdfast.identity": json.dumps(run.manifest.identity.to_json()),
        f"holdfast.{SCHEMA}": str(run.manifest.version),
    }
    table = run.to_table()
    schema = arrow_schema(table.columns, metadata)
    values = {
        name: [without_surrogates(value) for value in column]
        for name, column in table.values.items()
    }
    content = io.BytesIO()
    parquet.write_table(arrow.table(values, schema=schema), content)
    return write_whole(path, content.getvalue(), "another file")


def arrow_schema(columns: Sequence[Column], metadata: Mapping[str, str]) -> Any:
    """Returns the columns as a `pyarrow.Schema`."""
    arrow = importlib.import_module("pyarrow")
    types = {str: arrow.string(), int: arrow.int64(), float: arrow.float64()}
    fields = [(column.name, types[column.type]) for column in columns]
    return arrow.schema(fields, metadata=metadata)


def without_surrogates(value: Any) -> Any:
    """Replaces the lone surrogates in a text, which Parquet refuses; returns other values as they
    are.
    """
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
