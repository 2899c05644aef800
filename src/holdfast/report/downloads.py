"""Data that a page carries: files inside links, so that they travel with it."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

_FORMULA = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
)  # what a spreadsheet runs; such a text gets an apostrophe


@dataclass(frozen=True)
class Download:
    """A file in a link: its name, what it holds, and its content as a data address."""

    name: str
    what: str
    address: str


def csv_file(name: str, what: str, rows: Iterable[Sequence[Any]]) -> Download:
    """Rows as CSV, the head first; None is an empty cell."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([_cell(value) for value in row] for row in rows)
    return Download(name, what, _address("text/csv;charset=utf-8", out.getvalue()))


def json_file(name: str, what: str, text: str) -> Download:
    """A text of JSON."""
    return Download(name, what, _address("application/json", text))


def table_files(name: str, what: str, rows: Sequence[Sequence[Any]]) -> list[Download]:
    """A table, its first row the head, as CSV and as JSON: a list of objects."""
    head, *body = rows
    objects = [dict(zip(head, row, strict=True)) for row in body]
    text = json.dumps(objects, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    return [csv_file(f"{name}.csv", what, rows), json_file(f"{name}.json", what, text)]


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _address(kind: str, text: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(text.encode('utf-8', 'replace')).decode()}"
