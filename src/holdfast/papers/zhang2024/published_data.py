"""Files with biographies or changed facts: JSON, JSON lines or CSV, with or without gzip.

Bias in Bios's release is a pickle, which can run any code when it is read, and so is refused.
"""

import csv
import hashlib
import io
import json
import random
import re
from pathlib import Path
from typing import Any

from holdfast.errors import UsageError, json_type_in_words
from holdfast.files import read_json_lines, read_text
from holdfast.papers.zhang2024 import data
from holdfast.papers.zhang2024.published_rows import DataRow, refuse_surrogates, row_format
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
                " --data."
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
