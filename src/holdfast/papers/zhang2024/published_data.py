"""Files with biographies or changed facts: JSON, JSON lines or CSV, with or without gzip.

Bias in Bios's release is a pickle, which can run any code when it is read, and so is refused.
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

from holdfast.errors import UsageError, json_type_in_words, option, shortened
from holdfast.files import read_json_lines, read_text
from holdfast.papers.zhang2024 import data
from holdfast.seeds import seed_of

_SUFFIXES = (".json", ".jsonl", ".csv")
_VALIDATION = dict.fromkeys(("dev", "valid", "val"), "validation")
_SPLIT_NAMES = {"train": "train", **_VALIDATION, "test": "test"}


def load_files(where: str, seed: int = 0) -> data.Data:
    """Reads a file or a folder of files, and shuffles each split by the seed.

    A file with train, dev, valid or test in its name is that split. The rows of any other file are
    divided 1 : 1 : 5 by a hash of their subject or text (the paper's proportions, Table 6).
    """
    items: dict[str, list[Any]] = {split: [] for split in data.SPLITS}
    kind = ""
    digest = hashlib.sha256()
    for path in _files(Path(where)):
        rows = _read(path)
        if not rows:
            raise UsageError(
                f"{path} holds no rows; give a file with biographies or changed facts."
            )
        kind_of_file, parse = row_format(rows[0], path)
        if kind and kind != kind_of_file:
            raise UsageError(
                f"{path} holds {kind_of_file} and the files before it {kind}; give them as two"
                f" values of {option('data')}."
            )
        kind = kind_of_file
        split_of_file = _split_in(path.name)
        for number, row in enumerate(rows, 1):
            location = f"{path}, row {number}"
            refuse_surrogates(row, location)
            for key, item in parse(DataRow(row, location)):
                items[split_of_file or _split_by_hash(key)].append(item)
        digest.update(path.read_bytes())
    for split in data.SPLITS:
        random.Random(seed_of("order", seed, split)).shuffle(items[split])
    return data.Data(where, digest.hexdigest()[:16], {kind: items}, data.OCCUPATIONS)


def _split_in(name: str) -> str | None:
    """The split that the name of a file contains; None if it contains none."""
    for word, split in _SPLIT_NAMES.items():
        if re.search(rf"(?<![a-z]){word}", name.lower()):
            return split
    return None


def _split_by_hash(key: str) -> str:
    """The split of a row with this subject or text; rows are divided 1 : 1 : 5."""
    return data.SPLITS[min(seed_of("split", key) % 7, 2)]


def _files(path: Path) -> list[Path]:
    """The file itself, or the files of a folder; refuses formats that cannot be read."""
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if _suffix(file) in _SUFFIXES)
        if files:
            return files
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
            f"{path} is not a {', '.join(_SUFFIXES)} file; convert it to JSON lines, one record per"
            " line."
        )
    return [path]


def _suffix(path: Path) -> str:
    """The suffix in lower case, without that of gzip."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _read(path: Path) -> list[Any]:
    """The rows of a file."""
    suffix = _suffix(path)
    if suffix == ".jsonl":
        return [row for _, row in read_json_lines(path)]
    text = read_text(path)
    try:
        if suffix == ".csv":
            return list(csv.DictReader(io.StringIO(text, newline="")))
        rows = json.loads(text)
    except (ValueError, csv.Error, RecursionError) as error:
        raise UsageError(
            f"{path} cannot be read ({error}); give a whole {suffix} file in UTF-8."
        ) from error
    if not isinstance(rows, list):
        raise UsageError(f"{path} holds {json_type_in_words(rows)}, and a list of rows is needed.")
    return rows


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
        """The whole number of a field."""
        value = self.get(name)
        if isinstance(value, bool) or not re.fullmatch(r"\d{1,15}", str(value)):
            raise UsageError(
                f"{self.where}: {name!r} is {shortened(value)}, and a whole number of at most"
                " 15 digits is needed."
            )
        return int(value)

    def get(self, name: str) -> Any:
        """The value of a field; a `UsageError` if the row has none."""
        value = self.values
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is None:
            raise UsageError(f"{self.where} has no {name!r}; every row needs one.")
        return value


PublishedItem = data.Biography | data.ChangedFact
# yields the items of a row, each with the subject or text whose hash decides its split
RowParser = Callable[[DataRow], Iterable[tuple[str, PublishedItem]]]


def row_format(row: Any, path: Path) -> tuple[str, RowParser]:
    """The kind of items in a file, BIOGRAPHIES or FACTS, and the parser of its rows.

    Args:
        row: the first row of the file, whose fields show the kind.
        path: the file, for messages.

    Raises:
        UsageError: the fields are not in a known form.
    """
    fields = set(row) if isinstance(row, Mapping) else set()
    if "requested_rewrite" in fields:
        return data.FACTS, _parse_rome_fact
    if {"relation", "true_target"} & fields:
        return data.FACTS, _parse_labelled_fact
    if "raw" in fields:
        return data.BIOGRAPHIES, _parse_biography
    raise UsageError(
        f"{path} holds neither CounterFact nor Bias in Bios (its first row has"
        f" {', '.join(sorted(map(str, fields))[:6]) or 'no fields'}); give requested_rewrite and"
        " paraphrase_prompts, or relation, subject, target, true_target and label, or raw, title"
        " and start_pos."
    )


def _parse_rome_fact(row: DataRow) -> Iterable[tuple[str, PublishedItem]]:
    """Reads a row of CounterFact in the form of ROME's code."""
    subject = row.text("requested_rewrite.subject")
    texts = row.get("paraphrase_prompts")
    are_texts = isinstance(texts, list) and all(
        isinstance(text, str) and text.strip() for text in texts
    )
    if not are_texts:
        raise UsageError(
            f"{row.where}: 'paraphrase_prompts' is {shortened(texts)}, and a list of texts is"
            " needed."
        )
    relation = _relation(row, "requested_rewrite.prompt")
    old = row.text("requested_rewrite.target_true.str")
    new = row.text("requested_rewrite.target_new.str")
    paraphrases = tuple(text.strip() for text in texts)
    yield subject, data.ChangedFact(subject, relation, old, new, paraphrases)


def _parse_labelled_fact(row: DataRow) -> Iterable[tuple[str, PublishedItem]]:
    """Reads a row of CounterFact with a label: 0 for a false target; 1, a true one, is left out."""
    subject = row.text("subject")
    relation = _relation(row, "relation")
    new = row.text("target")
    old = row.text("true_target")
    if row.number("label") == 0:
        yield subject, data.ChangedFact(subject, relation, old, new)


def _relation(row: DataRow, name: str) -> str:
    """The field of that name, which has {} in place of the subject."""
    relation = row.text(name)
    if relation.count("{}") != 1:
        raise UsageError(
            f"{row.where}: {name!r} is {shortened(relation)}, and needs one {{}} where the subject"
            " goes."
        )
    return relation


def _parse_biography(row: DataRow) -> Iterable[tuple[str, PublishedItem]]:
    """Reads a biography, and cuts off its first sentence, which names the occupation."""
    text = row.get("raw")
    start = row.number("start_pos")
    if not isinstance(text, str) or not text[:start].strip() or start > len(text):
        raise UsageError(
            f"{row.where}: 'start_pos' is {start}, which cuts no first sentence off"
            f" {shortened(text)}."
        )
    occupation = _occupation(row)
    name = row.values.get("name")
    if isinstance(name, list):
        name = next((part for part in name if part), None)
    # the release has only texts that begin with the name
    name = str(name).strip() if name else text.split()[0].strip(",.")
    first = text[:start].strip()
    whole = text.strip()
    yield text, data.Biography(name, occupation, first, whole, data.change_pronouns(whole))


def _occupation(row: DataRow) -> str:
    value = row.get("title")
    occupation = str(value).strip().lower().replace("_", " ")
    if occupation not in data.OCCUPATIONS:
        raise UsageError(
            f"{row.where}: 'title' is {shortened(value)}, which is not one of the 28 occupations"
            " of Bias in Bios."
        )
    return occupation


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
