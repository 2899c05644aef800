"""Rows of a user's file, JSON lines or CSV, gzipped or not; each knows the line it stands in."""

from __future__ import annotations

import csv
import gzip
import io
import json
import unicodedata
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.errors import UsageError

SHOWN = 60  # characters of a value in a message


@dataclass(frozen=True)
class Row:
    """One row of a file.

    Attributes:
        place: file and line, as messages name them.
        fields: what the row holds, by name; texts are in the Unicode form NFC.
    """

    place: str
    fields: dict[str, Any]

    def text(self, name: str) -> str:
        """A field that holds a text with something in it."""
        return text_in(self.fields, name, self.place)

    def key(self) -> str:
        """The row's `key`, a number or a text, as a text."""
        key = self.fields.get("key")
        if isinstance(key, bool) or not isinstance(key, int | str) or not str(key).strip():
            raise UsageError(
                f"{self.place}: the key is {shown(key)}, neither a number nor a text; give the"
                " published file."
            )
        return str(key).strip()


def text_in(fields: dict[str, Any], name: str, place: str) -> str:
    """A text with something in it, or a `UsageError` that names place, value and cure."""
    if name not in fields:
        raise UsageError(f"{place} lacks the field {name!r}; give the published file.")
    value = fields[name]
    if not isinstance(value, str) or not value.strip():
        raise UsageError(
            f"{place}: the field {name!r} is {shown(value)}, not a text; give the published file."
        )
    return value.strip()


def shown(value: Any) -> str:
    """A value as a message shows it."""
    text = repr(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


def read_text(path: Path) -> str:
    """The text of a file; one that ends in .gz is unpacked."""
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path} is not UTF-8 text (byte {error.start}); give the published file."
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UsageError(
            f"{path} cannot be unpacked ({error}); give it whole, or without .gz if it is not"
            " gzipped."
        ) from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}); check the path.") from error


def read_jsonl(path: Path) -> Iterator[Row]:
    """The rows of a file with a JSON object in each line; blank lines are skipped.

    Raises:
        UsageError: the file cannot be read, or a line is no JSON object.
    """
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            place = f"{path}, line {number}"
            fields = parse(line, place)
            if not isinstance(fields, dict):
                raise UsageError(
                    f"{place} is {shown(fields)}, not a JSON object; give the published file."
                )
            yield Row(place, fields)


def read_csv(path: Path) -> Iterator[Row]:
    """The rows of a CSV file whose first line names the fields.

    Raises:
        UsageError: the file cannot be read, or is not CSV.
    """
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        for fields in reader:
            place = f"{path}, line {reader.line_num}"  # where the row ends
            if None in fields or None in fields.values():
                raise UsageError(
                    f"{place} has not as many fields as the first line names"
                    f" ({len(reader.fieldnames or ())}); give the published file."
                )
            yield Row(place, normalised(fields))
    except csv.Error as error:
        raise UsageError(
            f"{path}, line {reader.line_num} is not CSV ({error}); give the published file."
        ) from error


def parse(text: str, place: str) -> Any:
    """JSON as data, its texts in the form NFC, or a `UsageError` that names the place."""
    try:
        return normalised(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{place} is not JSON ({error}): {shown(text.strip())}; give the published file."
        ) from error


def normalised(value: Any) -> Any:
    """JSON data with all texts in the form NFC, as measures read replies."""
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, list):
        return [normalised(item) for item in value]
    if isinstance(value, dict):
        return {key: normalised(item) for key, item in value.items()}
    return value
