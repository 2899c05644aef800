"""Parses rows of published data: biographies of Bias in Bios, and changed facts of CounterFact.

CounterFact may be in the form of ROME's code, or its core, which has no paraphrases. Biographies
have the field names of Bias in Bios's release, https://github.com/microsoft/biosbias: `raw`,
`title`, `start_pos` and, if present, `name`.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.errors import UsageError, shortened
from holdfast.papers.zhang2024 import data


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


Item = data.Biography | data.ChangedFact
# yields the items of a row, each with the subject or text whose hash decides its split
RowParser = Callable[[DataRow], Iterable[tuple[str, Item]]]


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


def _rome(row: DataRow) -> Iterable[tuple[str, Item]]:
    """CounterFact as ROME's code publishes it."""
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


def _core(row: DataRow) -> Iterable[tuple[str, Item]]:
    """Rows with label 0 have a false target; those with label 1, the true one, are left out."""
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


def _biography(row: DataRow) -> Iterable[tuple[str, Item]]:
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
