"""Published instructions as measures: an id and its arguments become a measure's spec."""

from __future__ import annotations

import csv
import difflib
import io
import json
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.common.files import read_text
from holdfast.common.validation import shortened
from holdfast.errors import UsageError
from holdfast.measures import Measure, build, catalogue


@dataclass(frozen=True)
class FileRow:
    """One row of a file."""

    where: str  # file and line, as messages name them
    fields: dict[str, Any]  # what the row holds, by name; texts are in the Unicode form NFC

    def text(self, name: str) -> str:
        """A field that holds a text with something in it."""
        return text_in(self.fields, name, self.where)

    def key(self) -> str:
        """The row's `key`, a number or a text, as a text."""
        key = self.fields.get("key")
        if isinstance(key, bool) or not isinstance(key, int | str) or not str(key).strip():
            raise UsageError(
                f"{self.where}: the key is {shortened(key)}, neither a number nor a text; give the"
                " published file."
            )
        return str(key).strip()


def text_in(fields: dict[str, Any], name: str, where: str) -> str:
    """A text with something in it, or a `UsageError` that names place, value and cure."""
    if name not in fields:
        raise UsageError(f"{where} lacks the field {name!r}; give the published file.")
    value = fields[name]
    if not isinstance(value, str) or not value.strip():
        raise UsageError(
            f"{where}: the field {name!r} is {shortened(value)}, not a text; give the published"
            " file."
        )
    return value.strip()


def read_jsonl(path: Path) -> Iterator[FileRow]:
    """The rows of a file with a JSON object in each line; blank lines are skipped."""
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if line.strip():
            where = f"{path}, line {number}"
            fields = parse(line, where)
            if not isinstance(fields, dict):
                raise UsageError(
                    f"{where} is {shortened(fields)}, not a JSON object; give the published file."
                )
            yield FileRow(where, fields)


def read_csv(path: Path) -> Iterator[FileRow]:
    """The rows of a CSV file whose first line names the fields."""
    reader = csv.DictReader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        for fields in reader:
            where = f"{path}, line {reader.line_num}"  # where the row ends
            if None in fields or None in fields.values():
                raise UsageError(
                    f"{where} has not as many fields as the first line names"
                    f" ({len(reader.fieldnames or ())}); give the published file."
                )
            yield FileRow(where, normalised(fields))
    except csv.Error as error:
        raise UsageError(
            f"{path}, line {reader.line_num} is not CSV ({error}); give the published file."
        ) from error


def parse(text: str, where: str) -> Any:
    """JSON as data, its texts in the form NFC, or a `UsageError` that names the place."""
    try:
        return normalised(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{where} is not JSON ({error}): {shortened(text.strip())}; give the published file."
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


SCORINGS = ("strict", "loose")


@dataclass(frozen=True)
class Instruction:
    """One verifiable instruction of a row."""

    id: str  # as published, such as "punctuation:no_comma"
    measure: Measure  # scores a reply 0 or 1, strictly

    def argument(self, name: str) -> Any:
        """An argument of the instruction, None where it has none of the name."""
        return self.measure.arguments.get(name)

    def scored(self, scoring: str) -> Measure:
        """The measure under a scoring: `strict`, or `loose` as Zhou et al. 2023 define it."""
        if scoring == "strict":
            return self.measure
        return build({"name": "loosely", "measure": self.measure.spec})


def measure_name(id: str, prefix: str) -> str:
    """The measure of an instruction: "punctuation:no_comma" is `ifeval_punctuation_no_comma`."""
    return f"{prefix}_{id.replace(':', '_').replace('-', '_')}"


def read_instructions(
    ids: Any, arguments: Any, where: str, prefix: str, beyond: Collection[str] = ()
) -> list[Instruction | str]:
    """The instructions of a row, in its order, from its `instruction_id_list` and `kwargs`.

    `prefix` is of the measures, `ifeval` or `ifbench`; ids `beyond` all measures are returned as
    they are.
    """
    if not isinstance(ids, list) or not isinstance(arguments, list) or len(ids) != len(arguments):
        raise UsageError(
            f"{where}: 'instruction_id_list' is {shortened(ids)} and 'kwargs'"
            f" {shortened(arguments)}, not"
            " two lists of one length; give the published file."
        )
    return [
        id if id in beyond else read_instruction(id, given, where, prefix)
        for id, given in zip(ids, arguments, strict=True)
    ]


def read_instruction(id: Any, given: Any, where: str, prefix: str) -> Instruction:
    """One instruction, or a `UsageError` about its id or arguments."""
    known = {
        name.removeprefix(f"{prefix}_"): name
        for name, _, _ in catalogue()
        if name.startswith(f"{prefix}_")
    }
    name = measure_name(id, prefix) if isinstance(id, str) else ""
    if name not in known.values():
        near = difflib.get_close_matches(name.removeprefix(f"{prefix}_"), known, n=1)
        cure = f"did you mean {known[near[0]]!r}?" if near else "give the published file."
        raise UsageError(f"{where}: no measure scores the instruction {shortened(id)}; {cure}")
    if not isinstance(given, Mapping):
        raise UsageError(
            f"{where}: the arguments of {id!r} are {shortened(given)}, not a mapping; give the"
            " published file."
        )
    if "name" in given:  # which names the measure in a spec, and is no argument of one
        raise UsageError(f"{where}: {id!r} has no argument 'name'; give the published file.")
    try:
        return Instruction(id, build({"name": name, **arguments_of(given)}))
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error


def arguments_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that are given; a whole number may be written as 5.0."""
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in given.items()
        if value is not None
    }
