"""Biographies and changed facts from files or the hub.

Bias in Bios is released as a pickle, which may run any code when it is read; it is never read here.
Its records are taken from JSON, JSON lines, CSV or Parquet.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import random
import re
import zlib
from pathlib import Path
from typing import Any

from holdfast.errors import HoldfastError, UsageError
from holdfast.seeds import seed_of
from holdfast.tasks.data import OCCUPATIONS, Data
from holdfast.tasks.rows import Row, format_of, refuse_surrogates
from holdfast.tasks.sample import SPLITS

HUB = "hub:"
_SUFFIXES = (".json", ".jsonl", ".csv", ".parquet")
_SPLIT_NAMES = {
    "train": "train",
    "dev": "validation",
    "valid": "validation",
    "val": "validation",
    "test": "test",
}


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
    items: dict[str, list[Any]] = {split: [] for split in SPLITS}
    kind, digest = "", hashlib.sha256()
    for path in files:
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
        kind, split = kind_here, _named_split(path)
        for number, row in enumerate(rows, 1):
            place = f"{path}, row {number}"
            refuse_surrogates(row, place)
            for key, item in parse(Row(row, place)):
                items[split or _split_of(key)].append(item)
        digest.update(path.read_bytes())
    for split in SPLITS:
        random.Random(seed_of("order", seed, split)).shuffle(items[split])
    return Data(where, digest.hexdigest()[:16], {kind: items}, OCCUPATIONS)


def _named_split(path: Path) -> str | None:
    """The split that a file's name says; None where it says none."""
    name = path.name.lower()
    named = (to for word, to in _SPLIT_NAMES.items() if re.search(rf"(?<![a-z]){word}", name))
    return next(named, None)


def _split_of(key: str) -> str:
    """The split of what a row is about, where its file does not say."""
    return SPLITS[min(seed_of("split", key) % 7, 2)]


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        readable = sorted(file for file in path.iterdir() if _suffix(file) in _SUFFIXES)
        if not readable:
            raise UsageError(
                f"{path} holds no {', '.join(_SUFFIXES)} file; give a folder with the splits, or"
                " one file."
            )
        return readable
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
        listed = HfApi().list_repo_files(name, repo_type="dataset")
        readable = sorted(file for file in listed if _suffix(Path(file)) in _SUFFIXES)
        files = [Path(hf_hub_download(name, file, repo_type="dataset")) for file in readable]
    except Exception as error:  # the hub raises dozens of types; all mean that there is no file
        raise HoldfastError(
            f"The hub dataset {name!r} could not be fetched ({type(error).__name__}); check its"
            " name and the network, or download it and give --data PATH."
        ) from error
    if not files:
        raise UsageError(
            f"The hub dataset {name!r} holds no {', '.join(_SUFFIXES)} file; give another one."
        )
    return files
