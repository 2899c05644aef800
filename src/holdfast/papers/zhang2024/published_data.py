"""Biographies and changed facts from files: Bias in Bios, CounterFact in ROME's form or its core.

Rows have the field names of Bias in Bios's release (https://github.com/microsoft/biosbias): `raw`,
`title`, `start_pos` and, if present, `name`. The release is a pickle, which can run any code when
read; here, records are read from JSON, JSON lines or CSV.
"""

import csv
import hashlib
import io
import json
import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.errors import UsageError, json_type_in_words, shortened
from holdfast.files import read_json_lines, read_text
from holdfast.papers.zhang2024 import data
from holdfast.seeds import seed_of


@dataclass(frozen=True)
class DataRow:
    """A row of a file, with its location for messages."""

    values: Any
    where: str

    def text(self, name: str) -> str:
        """The text of a field; a dot in the name descends into an object."""
        value = self.get(name)
        if not isinstance(value, str) or not value.strip():
            raise UsageError(
                f"{self.where}: {name!r} is {shortened(value)}, and a text is needed; give each"
                " row one."
            )
        return value.strip()

    def number(self, name: str) -> int:
        value = self.get(name)
        if isinstance(value, bool) or not re.fullmatch(r"\d{1,15}", str(value)):
            raise UsageError(
                f"{self.where}: {name!r} is {shortened(value)}, and a whole number of at most"
                " 15 digits is needed."
            )
        return int(value)

    def get(self, name: str) -> Any:
        value = self.values
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is None:
            raise UsageError(f"{self.where} has no {name!r}; every row needs one.")
        return value


def format_of(row: Any, path: Path) -> tuple[str, Callable[[DataRow], Iterable[tuple[str, Any]]]]:
    """The kind of items in a file, by the fields of its first row, and the parser of a row."""
    fields = set(row) if isinstance(row, Mapping) else set()
    if "requested_rewrite" in fields:
        return data.FACTS, _rome
    if {"relation", "true_target"} & fields:
        return data.FACTS, _core
    if "raw" in fields:
        return data.BIOGRAPHIES, _biography
    raise UsageError(
        f"{path} holds neither CounterFact nor Bias in Bios (its first row has"
        f" {', '.join(sorted(map(str, fields))[:6]) or 'no fields'}); give requested_rewrite and"
        " paraphrase_prompts, or relation, subject, target, true_target and label, or raw, title"
        " and start_pos."
    )


def _rome(row: DataRow) -> Iterable[tuple[str, data.ChangedFact]]:
    subject = row.text("requested_rewrite.subject")
    texts = row.get("paraphrase_prompts")
    if not isinstance(texts, list) or not all(isinstance(t, str) and t.strip() for t in texts):
        raise UsageError(
            f"{row.where}: 'paraphrase_prompts' is {shortened(texts)}, and a list of texts is"
            " needed."
        )
    relation = _relation(row, "requested_rewrite.prompt")
    old = row.text("requested_rewrite.target_true.str")
    new = row.text("requested_rewrite.target_new.str")
    yield subject, data.ChangedFact(subject, relation, old, new, tuple(t.strip() for t in texts))


def _core(row: DataRow) -> Iterable[tuple[str, data.ChangedFact]]:
    """The core lists each fact with its true target (label 1) and with a false one (label 0)."""
    subject, relation = row.text("subject"), _relation(row, "relation")
    new, old = row.text("target"), row.text("true_target")
    if row.number("label") == 0:
        yield subject, data.ChangedFact(subject, relation, old, new)


def _relation(row: DataRow, name: str) -> str:
    relation = row.text(name)
    if relation.count("{}") != 1:
        raise UsageError(
            f"{row.where}: {name!r} is {shortened(relation)}, and needs one {{}} where the subject"
            " stands."
        )
    return relation


def _biography(row: DataRow) -> Iterable[tuple[str, data.Biography]]:
    text, start = row.get("raw"), row.number("start_pos")
    if not isinstance(text, str) or not text[:start].strip() or start > len(text):
        raise UsageError(
            f"{row.where}: 'start_pos' is {start}, which cuts no first sentence off"
            f" {shortened(text)}."
        )
    occupation, name, first = _occupation(row), row.values.get("name"), text[:start]
    if isinstance(name, list):
        name = next((part for part in name if part), None)
    # the release has only texts that begin with the name
    name = str(name).strip() if name else text.split()[0].strip(",.")
    whole = text.strip()
    yield text, data.Biography(name, occupation, first.strip(), whole, data.change_pronouns(whole))


def _occupation(row: DataRow) -> str:
    value = row.get("title")
    wanted = str(value).strip().lower().replace("_", " ")
    if wanted not in data.OCCUPATIONS:
        raise UsageError(
            f"{row.where}: 'title' is {shortened(value)}, which is none of the 28 occupations of"
            " Bias in Bios."
        )
    return wanted


def refuse_surrogates(row: Any, where: str) -> None:
    """Refuses half a surrogate pair ("\\ud800"), which tokenizers and files cannot represent."""
    try:
        json.dumps(row, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise UsageError(
            f"{where} holds {half!a}, half of a surrogate pair; write the character itself, or"
            " leave it out."
        ) from None


_SUFFIXES = (".json", ".jsonl", ".csv")
_VALIDATION = dict.fromkeys(("dev", "valid", "val"), "validation")
_SPLIT_NAMES = {"train": "train", **_VALIDATION, "test": "test"}


def load_files(where: str, seed: int = 0) -> data.Data:
    """Reads a file or a folder of files; `seed` shuffles each split.

    Files with train, dev, valid or test in their names are those splits; the rows of other files
    are divided 1 : 1 : 5 by a hash of their subject or text (the paper's proportions, Table 6).
    """
    items: dict[str, list[Any]] = {split: [] for split in data.SPLITS}
    kind, digest = "", hashlib.sha256()
    for path in _files(Path(where)):
        rows = _read(path)
        if not rows:
            raise UsageError(
                f"{path} holds no rows; give a file with biographies or changed facts."
            )
        kind_here, parse = format_of(rows[0], path)
        if kind and kind != kind_here:
            raise UsageError(
                f"{path} holds {kind_here} and the files before it {kind}; give them as two --data."
            )
        name = path.name.lower()
        named = (to for word, to in _SPLIT_NAMES.items() if re.search(rf"(?<![a-z]){word}", name))
        kind, split = kind_here, next(named, None)
        for number, row in enumerate(rows, 1):
            at = f"{path}, row {number}"
            refuse_surrogates(row, at)
            for key, item in parse(DataRow(row, at)):
                # if the file name does not say, by a hash of the subject or text
                items[split or data.SPLITS[min(seed_of("split", key) % 7, 2)]].append(item)
        digest.update(path.read_bytes())
    for split in data.SPLITS:
        random.Random(seed_of("order", seed, split)).shuffle(items[split])
    return data.Data(where, digest.hexdigest()[:16], {kind: items}, data.OCCUPATIONS)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        if readable := sorted(file for file in path.iterdir() if _suffix(file) in _SUFFIXES):
            return readable
        raise UsageError(
            f"{path} holds no {', '.join(_SUFFIXES)} file; give a folder with the splits, or one"
            " file."
        )
    if not path.is_file():
        raise UsageError(
            f"{path} does not exist; give a file, a folder, or synthetic (data sets of the hub have"
            " to be downloaded first)."
        )
    if _suffix(path) in (".pkl", ".pickle"):
        raise UsageError(
            f"{path} is a pickle, which may run any code when it is read and so is never read;"
            " convert it to JSON lines."
        )
    if _suffix(path) not in _SUFFIXES:
        raise UsageError(
            f"{path} is no {', '.join(_SUFFIXES)} file; convert it to JSON lines, one record per"
            " line."
        )
    return [path]


def _suffix(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _read(path: Path) -> list[Any]:
    kind = _suffix(path)
    if kind == ".jsonl":
        return [row for _, row in read_json_lines(path)]
    text = read_text(path)
    try:
        if kind == ".csv":
            return list(csv.DictReader(io.StringIO(text, newline="")))
        rows = json.loads(text)
    except (ValueError, csv.Error, RecursionError) as error:
        raise UsageError(
            f"{path} cannot be read ({error}); give a whole {kind} file in UTF-8."
        ) from error
    if not isinstance(rows, list):
        raise UsageError(f"{path} holds {json_type_in_words(rows)}, and a list of rows is needed.")
    return rows
