"""A row of a file as a biography or a changed fact: Bias in Bios, CounterFact in ROME's format, the
CounterFact core.

Rows have the field names of Bias in Bios's release (https://github.com/microsoft/biosbias) or their
short forms: `raw` or `text`, `title` or `p`, `start_pos` or `start`, and, if present, `name`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.errors import UsageError
from holdfast.tasks.data import OCCUPATIONS, Biography, ChangedFact, change_pronouns
from holdfast.tasks.sample import BIOGRAPHIES, FACTS

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Row:
    """A row of a file, which knows where it stands."""

    values: Any
    place: str

    def text(self, *names: str) -> str:
        """The text under the first of the names that is there; a dotted name goes down into
        objects.
        """
        value = self.get(*names)
        if not isinstance(value, str) or not value.strip():
            raise UsageError(
                f"{self.place}: {names[0]!r} is {_short(value)}, and a text is needed; give each"
                " row one."
            )
        return value.strip()

    def number(self, *names: str) -> int:
        value = self.get(*names)
        if isinstance(value, bool) or not re.fullmatch(r"\d{1,15}", str(value)):
            raise UsageError(
                f"{self.place}: {names[0]!r} is {_short(value)}, and a whole number of at most 15"
                " digits is needed."
            )
        return int(value)

    def get(self, *names: str) -> Any:
        for name in names:
            value = self.values
            for part in name.split("."):
                value = value.get(part) if isinstance(value, Mapping) else None
            if value is not None:
                return value
        called = " or ".join(map(repr, names))
        raise UsageError(f"{self.place} has no {called}; every row needs one.")


def format_of(row: Any, path: Path) -> tuple[str, Callable[[Row], Iterable[tuple[str, Any]]]]:
    """The kind of items in a file, by the fields of its first row, and the reader of a row."""
    fields = set(row) if isinstance(row, Mapping) else set()
    if "requested_rewrite" in fields:
        return FACTS, _rome
    if {"relation", "true_target"} & fields:
        return FACTS, _core
    if {"raw", "text"} & fields:
        return BIOGRAPHIES, _biography
    if "hard_text" in fields:
        raise UsageError(
            f"{path} holds biographies without their first sentence (`hard_text`), the one that"
            " names the occupation and that the task is about; give the whole ones, with raw,"
            " title and start_pos."
        )
    raise UsageError(
        f"{path} holds neither CounterFact nor Bias in Bios (its first row has"
        f" {', '.join(sorted(map(str, fields))[:6]) or 'no fields'}); give requested_rewrite and"
        " paraphrase_prompts, or relation, subject, target, true_target and label, or raw, title"
        " and start_pos."
    )


def _rome(row: Row) -> Iterable[tuple[str, ChangedFact]]:
    subject = row.text("requested_rewrite.subject")
    asked = row.get("paraphrase_prompts")
    if not isinstance(asked, list) or not all(
        isinstance(text, str) and text.strip() for text in asked
    ):
        raise UsageError(
            f"{row.place}: 'paraphrase_prompts' is {_short(asked)}, and a list of texts is needed."
        )
    old, new = (
        row.text("requested_rewrite.target_true.str"),
        row.text("requested_rewrite.target_new.str"),
    )
    yield (
        subject,
        ChangedFact(
            subject,
            _relation(row, "requested_rewrite.prompt"),
            old,
            new,
            tuple(text.strip() for text in asked),
        ),
    )


def _core(row: Row) -> Iterable[tuple[str, ChangedFact]]:
    """The core lists each fact with its true target (label 1) and with a false one (label 0): the
    latter are the changes.
    """
    subject, relation = row.text("subject"), _relation(row, "relation")
    new, old = row.text("target"), row.text("true_target")
    if row.number("label") == 0:
        yield subject, ChangedFact(subject, relation, old, new)


def _relation(row: Row, name: str) -> str:
    relation = row.text(name)
    if relation.count("{}") != 1:
        raise UsageError(
            f"{row.place}: {name!r} is {_short(relation)}, and needs one {{}} where the subject"
            " stands."
        )
    return relation


def _biography(row: Row) -> Iterable[tuple[str, Biography]]:
    text, start = row.get("raw", "text"), row.number("start_pos", "start")
    if not isinstance(text, str) or not text[:start].strip() or start > len(text):
        raise UsageError(
            f"{row.place}: 'start_pos' is {start}, which cuts no first sentence off {_short(text)}."
        )
    occupation, name = _occupation(row), row.values.get("name")
    if isinstance(name, list):
        name = next((part for part in name if part), None)
    name = (
        str(name).strip() if name else text.split()[0].strip(",.")
    )  # the release takes texts that begin with the name
    yield (
        text,
        Biography(
            name, occupation, text[:start].strip(), text.strip(), change_pronouns(text.strip())
        ),
    )


def _occupation(row: Row) -> str:
    value = row.get("title", "p", "profession")
    if re.fullmatch(r"\d{1,3}", str(value)) and int(value) < len(OCCUPATIONS):
        value = OCCUPATIONS[int(value)]
    wanted = str(value).strip().lower().replace("_", " ")
    if wanted not in OCCUPATIONS:
        raise UsageError(
            f"{row.place}: 'title' is {_short(value)}, which is none of the 28 occupations of Bias"
            " in Bios."
        )
    return wanted


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def refuse_surrogates(row: Any, place: str) -> None:
    """Half a surrogate pair ("\\ud800") is no text: no tokenizer takes it and no file holds it."""
    waiting = [row]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            waiting.extend((*value.keys(), *value.values()))
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, str) and (half := _SURROGATE.search(value)):
            raise UsageError(
                f"{place} holds {half.group()!a}, half of a surrogate pair; write the character"
                " itself, or leave it out."
            )
