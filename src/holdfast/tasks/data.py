"""Biographies and changed facts: Bias in Bios, CounterFact in ROME's format, the CounterFact core,
from files or the hub.

Bias in Bios is released as a pickle, which may run any code when it is read; it is never read here.
Its records are taken from JSON, JSON lines, CSV or Parquet, with the release's field names
(https://github.com/microsoft/biosbias) or their short forms: `raw` or `text`, `title` or `p`,
`start_pos` or `start`, and, if present, `name`."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import random
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.errors import HoldfastError, UsageError
from holdfast.seeds import seed_of
from holdfast.tasks.sample import BIOGRAPHIES, FACTS, SPLITS

# The 28 occupations of the release, in the order of the numbers that converted copies give them.
OCCUPATIONS = tuple(
    name.replace("_", " ")
    for name in """accountant architect attorney chiropractor comedian composer dentist
dietitian dj filmmaker interior_designer journalist model nurse painter paralegal pastor
personal_trainer photographer physician poet professor psychologist rapper software_engineer
surgeon teacher yoga_teacher""".split()
)
HUB = "hub:"
_SURROGATE = re.compile("[\ud800-\udfff]")
_SUFFIXES = (".json", ".jsonl", ".csv", ".parquet")
_SPLIT_NAMES = {
    "train": "train",
    "dev": "validation",
    "valid": "validation",
    "val": "validation",
    "test": "test",
}


@dataclass(frozen=True)
class Biography:
    """A person and what is told about them.

    Args:
        name: by which the questions call the person.
        occupation: the right answer.
        first: the sentence that names the occupation.
        text: all of it, `first` included.
        changed: the text with she and he, and what goes with them, changed to they.
    """

    name: str
    occupation: str
    first: str
    text: str
    changed: str


@dataclass(frozen=True)
class ChangedFact:
    """A fact that was true and another that is.

    Args:
        subject: whom it is about.
        relation: with "{}" where the subject stands; the target follows it ("{} plays the").
        old, new: the targets.
        paraphrases: questions in other words, subject included, to be continued by the target.
        aside: what is told between the facts and the question.
    """

    subject: str
    relation: str
    old: str
    new: str
    paraphrases: tuple[str, ...] = ()
    aside: str = ""

    @property
    def question(self) -> str:
        """The relation and its subject, to be continued by the target."""
        return self.relation.replace("{}", self.subject)

    def statement(self, target: str) -> str:
        """The fact with that target, without a full stop."""
        return f"{self.question} {target}"


@dataclass(frozen=True)
class Data:
    """What samples are made of.

    Args:
        name: for people.
        fingerprint: another one when the samples differ.
        items: per kind (BIOGRAPHIES, FACTS) and split, in the order they are taken.
        candidates: the occupations to choose from.
    """

    name: str
    fingerprint: str
    items: Mapping[str, Mapping[str, Sequence[Any]]]
    candidates: tuple[str, ...] = ()


def load_files(where: str, seed: int = 0) -> Data:
    """Reads a file, a folder of files, or a dataset of the hub.

    Files whose names say train, dev, valid or test are those splits; the rows of others are divided
    1 : 1 : 5 by whom they are about (the paper's proportions, Table 6). The order of a split is
    drawn from `seed`.

    Args:
        where: a path, or hub:OWNER/NAME.
        seed: of the order.

    Raises:
        UsageError: nothing that can be read, a pickle, or a row that lacks a field (row and field
            are named).
        HoldfastError: the hub cannot be reached, or Parquet cannot be read here.
    """
    files = _fetch(where.removeprefix(HUB)) if where.startswith(HUB) else _files(Path(where))
    kind, items, digest = None, {split: [] for split in SPLITS}, hashlib.sha256()
    for path in files:
        rows = _read(path)
        if not rows:
            raise UsageError(
                f"{path} holds no rows; give a file with biographies or changed facts."
            )
        found, parse = _format(rows[0], path)
        if kind not in (None, found):
            raise UsageError(
                f"{path} holds {found} and the files before it {kind}; give them as two --data."
            )
        kind = found
        split = next(
            (
                to
                for word, to in _SPLIT_NAMES.items()
                if re.search(rf"(?<![a-z]){word}", path.name.lower())
            ),
            None,
        )
        for number, row in enumerate(rows, 1):
            _refuse_surrogates(row, f"{path}, row {number}")
            for key, item in parse(_Row(row, f"{path}, row {number}")):
                items[split or _split_of(key)].append(item)
        digest.update(path.read_bytes())
    for split in SPLITS:
        random.Random(seed_of("order", seed, split)).shuffle(items[split])
    return Data(where, digest.hexdigest()[:16], {kind: items}, OCCUPATIONS)


def _refuse_surrogates(row: Any, place: str) -> None:
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


def change_pronouns(text: str) -> str:
    """A text with she and he, and what goes with them, changed to they; verbs stay as they are, as
    in the paper's demonstrations.

    "her" becomes "their" before a word that can be owned and "them" elsewhere, which is a guess
    about the word's kind."""

    def change(found: re.Match) -> str:
        word = found[0].lower()
        if word == "her":
            ahead = re.match(r"[ \n]+([A-Za-z][\w-]*)", text[found.end() :])
            made = "their" if ahead and ahead[1].lower() not in _NOT_OWNED else "them"
        else:
            made = _PLURAL[word]
        return made.capitalize() if found[0][0].isupper() else made

    return re.sub(
        r"\b(?:she|he|hers|her|him|his|herself|himself)\b", change, text, flags=re.IGNORECASE
    )


_PLURAL = {
    "she": "they",
    "he": "they",
    "him": "them",
    "his": "their",
    "hers": "theirs",
    "herself": "themselves",
    "himself": "themselves",
}
_NOT_OWNED = frozenset(
    """a an the and or but to for from in on at by with of about as that which who when where
while because if so than then after before into over under is was are were be has had will would
can could may might should this these those not again too also here there well today now she he
they it""".split()
)


def _split_of(key: str) -> str:
    return SPLITS[min(seed_of("split", key) % 7, 2)]


@dataclass(frozen=True)
class _Row:
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


def _format(row: Any, path: Path) -> tuple[str, Callable[[_Row], Iterable[tuple[str, Any]]]]:
    """What a file holds, by the fields of its first row, and how to read a row."""
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


def _rome(row: _Row) -> Iterable[tuple[str, ChangedFact]]:
    subject = row.text("requested_rewrite.subject")
    asked = row.get("paraphrase_prompts")
    if not isinstance(asked, list) or not all(
        isinstance(one, str) and one.strip() for one in asked
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
            tuple(one.strip() for one in asked),
        ),
    )


def _core(row: _Row) -> Iterable[tuple[str, ChangedFact]]:
    """The core lists each fact with its true target (label 1) and with a false one (label 0): the
    latter are the changes.
    """
    subject, relation = row.text("subject"), _relation(row, "relation")
    new, old = row.text("target"), row.text("true_target")
    if row.number("label") == 0:
        yield subject, ChangedFact(subject, relation, old, new)


def _relation(row: _Row, name: str) -> str:
    relation = row.text(name)
    if relation.count("{}") != 1:
        raise UsageError(
            f"{row.place}: {name!r} is {_short(relation)}, and needs one {{}} where the subject"
            " stands."
        )
    return relation


def _biography(row: _Row) -> Iterable[tuple[str, Biography]]:
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


def _occupation(row: _Row) -> str:
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


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        found = sorted(one for one in path.iterdir() if _suffix(one) in _SUFFIXES)
        if not found:
            raise UsageError(
                f"{path} holds no {', '.join(_SUFFIXES)} file; give a folder with the splits, or"
                " one file."
            )
        return found
    if not path.is_file():
        raise UsageError(
            f"{path} does not exist; give a file, a folder, {HUB}OWNER/NAME, or synthetic."
        )
    if _suffix(path) not in _SUFFIXES:
        if _suffix(path) in (".pkl", ".pickle"):
            raise UsageError(
                f"{path} is a pickle, which may run any code when it is read and so is never read;"
                " convert it to JSON lines."
            )
        raise UsageError(
            f"{path} is no {', '.join(_SUFFIXES)} file; convert it to JSON lines, one record per"
            " line."
        )
    return [path]


def _suffix(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _read(path: Path) -> list[Any]:
    kind = _suffix(path)
    if kind == ".parquet":
        return _read_parquet(path)
    try:
        with (gzip.open if path.name.endswith(".gz") else open)(
            path, "rt", encoding="utf-8", newline=""
        ) as file:
            if kind == ".csv":
                return list(csv.DictReader(file))
            if kind == ".json":
                rows = json.load(file)
                if not isinstance(rows, list):
                    raise UsageError(
                        f"{path} holds a JSON {type(rows).__name__}, and a list of rows is needed."
                    )
                return rows
            return [
                _json_line(line, f"{path}, row {number}")
                for number, line in enumerate(file, 1)
                if line.strip()
            ]
    except (OSError, EOFError, ValueError, csv.Error, zlib.error, RecursionError) as error:
        raise UsageError(
            f"{path} cannot be read ({error}); give a whole {kind} file in UTF-8."
        ) from error


def _json_line(line: str, place: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{place} is not JSON ({error}); write one object per line.") from error


def _read_parquet(path: Path) -> list[Any]:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise HoldfastError(
            f"{path} is Parquet, which needs pyarrow; `pip install pyarrow`, or convert it to JSON"
            " lines."
        ) from error
    try:
        return pyarrow.parquet.read_table(path).to_pylist()
    except (OSError, pyarrow.ArrowException) as error:
        raise UsageError(f"{path} cannot be read ({error}); give a whole Parquet file.") from error


def _fetch(name: str) -> list[Path]:
    """Downloads the readable files of a hub dataset, or finds them in the hub's cache."""
    from huggingface_hub import HfApi, hf_hub_download

    try:
        names = [
            one
            for one in HfApi().list_repo_files(name, repo_type="dataset")
            if _suffix(Path(one)) in _SUFFIXES
        ]
        found = [Path(hf_hub_download(name, one, repo_type="dataset")) for one in sorted(names)]
    except Exception as error:  # the hub raises dozens of types; all mean that there is no file
        raise HoldfastError(
            f"The hub dataset {name!r} could not be fetched ({type(error).__name__}); check its"
            " name and the network, or download it and give --data PATH."
        ) from error
    if not found:
        raise UsageError(
            f"The hub dataset {name!r} holds no {', '.join(_SUFFIXES)} file; give another one."
        )
    return found
