"""The hundred system prompts of Li et al. 2024, read from the published file.

The file `hundred_system_prompts.py` carries no licence, so its texts are not part of this package:
they are read from the user's copy or from the hub. It is a Python program that downloads on import;
here it is only ever read as text. Each entry is bound to a measure by a hash of its words
(`assets/suites/li2024.json`), once as published and once with the known defects mended.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import unicodedata
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from holdfast.drift.cases import Case, Suite, generic_starters
from holdfast.errors import HoldfastError, UsageError
from holdfast.measures import build

PREFIX = "li2024"
SCORINGS = ("strict", "released")
HUB_DATASET = "Naomibas/llm-system-prompts-benchmark"
FILE_NAME = "hundred_system_prompts.py"
LISTS = (
    "pattern_system_prompts",
    "persona_system_prompts",
    "multiple_choice_system_prompts",
    "memorization_system_prompts",
    "language_system_prompts",
)


@dataclass(frozen=True)
class PublishedEntry:
    """One tuple of the published file, without its lambda."""

    system_prompt: str
    probe: str
    line: int


@dataclass(frozen=True)
class Binding:
    """The table's row for one entry; `mends` says what strict scoring sets right, or is
    empty.
    """

    id: str
    category: str
    released: dict[str, Any]
    strict: dict[str, Any]
    mends: str


def load_li2024(where: str, scoring: str = "strict") -> Suite:
    """Loads the published benchmark.

    Args:
        where: the path of `hundred_system_prompts.py`, or `hub` to fetch it from the hub.
        scoring: `released` scores as published, defects included; `strict` mends the defects.

    Raises:
        UsageError: the file cannot be read, or its entries are not the published hundred.
        HoldfastError: the hub could not be reached.
    """
    path = fetch() if where == "hub" else Path(where)
    try:
        source = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read ({error.strerror}); give the path of {FILE_NAME}, or"
            " li2024:hub."
        ) from error
    bound = bind(read_entries(source, str(path)), str(path))
    cases = tuple(
        Case(
            b.id,
            b.category,
            bound[key].system_prompt,
            (bound[key].probe,),
            build(getattr(b, scoring)),
        )
        for key, b in bindings().items()
    )
    return Suite(f"{PREFIX}-{scoring}", cases, generic_starters(), notes(scoring))


def notes(scoring: str) -> tuple[str, ...]:
    """A note on the scoring, for readers of the results."""
    mended = sum(bool(b.mends) for b in bindings().values())
    summary = {
        "released": (
            f"Scored as published: {mended} of the 100 measures have known defects, which strict"
            " scoring mends."
        ),
        "strict": (
            f"Scored strictly: {mended} of the 100 published measures are mended; an empty reply"
            " follows nothing."
        ),
    }[scoring]
    return (
        (
            "System prompts and probes of Li et al. 2024; the conversation starters are Holdfast's"
            " own."
        ),
        summary,
        (
            "Word lists, tagger and sentence splitter are Holdfast's, and languages are told by"
            " py3langid and wordfreq: offline and deterministic."
        ),
    )


def fetch() -> Path:
    """Downloads the published file, or finds it in the hub's cache."""
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(HUB_DATASET, FILE_NAME, repo_type="dataset"))
    except Exception as error:  # the hub raises dozens of types; all mean that there is no file
        raise HoldfastError(
            f"{FILE_NAME} could not be fetched from the hub dataset {HUB_DATASET}"
            f" ({type(error).__name__}); check the network, or download it and pass li2024:PATH."
        ) from error


def read_entries(source: bytes, name: str) -> list[PublishedEntry]:
    """The entries of the five lists, read from the syntax tree; nothing in the file is run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the published file has invalid escapes in its helpers
            tree = ast.parse(source)
    except SyntaxError as error:
        raise UsageError(
            f"{name} is not Python (line {error.lineno}: {error.msg}); give the published"
            f" {FILE_NAME}."
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise UsageError(
            f"{name} cannot be parsed ({error}); give the published {FILE_NAME}."
        ) from error
    lists: dict[str, ast.expr] = {}
    for target, value in assignments(tree):
        if target in lists:
            raise UsageError(
                f"{name}, line {value.lineno}: {target} is assigned twice; give the published"
                f" {FILE_NAME}."
            )
        if target in LISTS:
            lists[target] = value
    missing = [wanted for wanted in LISTS if wanted not in lists]
    if missing:
        raise UsageError(
            f"{name} has no list {', '.join(missing)}; give the published {FILE_NAME}."
        )
    return [entry for target in LISTS for entry in entries_of(lists[target], target, name)]


def assignments(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """The module-level `name = value` statements."""
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            yield from (
                (t.id, statement.value) for t in statement.targets if isinstance(t, ast.Name)
            )
        if (
            isinstance(statement, ast.AnnAssign)
            and statement.value
            and isinstance(statement.target, ast.Name)
        ):
            yield statement.target.id, statement.value


def entries_of(value: ast.expr, target: str, name: str) -> Iterator[PublishedEntry]:
    """The entries of one list."""
    if not isinstance(value, ast.List | ast.Tuple):
        raise UsageError(
            f"{name}, line {value.lineno}: {target} is not a list of tuples; give the published"
            f" {FILE_NAME}."
        )
    for number, item in enumerate(value.elts, start=1):
        parts = item.elts if isinstance(item, ast.Tuple | ast.List) else []
        read = [text_of(part) for part in parts[:2]]
        if len(read) < 2 or None in read:
            raise UsageError(
                f"{name}, line {item.lineno}: entry {number} of {target} does not begin with two"
                " plain texts, a system prompt and a probe; write it as (prompt, probe, measure)."
            )
        yield PublishedEntry(read[0] or "", read[1] or "", item.lineno)


def text_of(node: ast.expr) -> str | None:
    """The text of a string, joined with '+' or not; None for anything that would have to be run."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = text_of(node.left), text_of(node.right)
        return None if left is None or right is None else left + right
    if isinstance(node, ast.JoinedStr) and all(
        isinstance(part, ast.Constant) for part in node.values
    ):
        return "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
    return None


def key_of(system_prompt: str, probe: str) -> str:
    """SHA-256 of the words of an entry; case, spacing and punctuation do not count.

    Both texts are needed: two entries have the same system prompt and different probes.
    """
    joined = " | ".join(
        " ".join(re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text).casefold()))
        for text in (system_prompt, probe)
    )
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()


@cache
def bindings() -> dict[str, Binding]:
    """The shipped table: the hash of each published entry and its measures, in the paper's
    order.
    """
    text = (files("holdfast") / "assets" / "suites" / "li2024.json").read_text(encoding="utf-8")
    return {
        row["key"]: Binding(
            row["id"],
            row["category"],
            row["released"],
            row.get("strict", row["released"]),
            row.get("mends", ""),
        )
        for row in json.loads(text)["entries"]
    }


def bind(entries: list[PublishedEntry], name: str) -> dict[str, PublishedEntry]:
    """The entries by their keys, or an error that names each one that is strange, repeated or
    missing.
    """
    table = bindings()
    bound: dict[str, PublishedEntry] = {}
    strange, repeated = [], []
    for entry in entries:
        key = key_of(entry.system_prompt, entry.probe)
        shown = f"line {entry.line} ({entry.system_prompt[:40]!r} with probe {entry.probe[:40]!r})"
        if key not in table:
            strange.append(shown)
        elif key in bound:
            repeated.append(shown)
        bound[key] = entry
    missing = [binding.id for key, binding in table.items() if key not in bound]
    if len(missing) == len(table):
        raise UsageError(
            f"None of the {len(entries)} entries of {name} is one of the published {len(table)};"
            " give the published file."
        )
    problems = [
        f"{kind}: {', '.join(names)}"
        for kind, names in (("unknown", strange), ("repeated", repeated), ("missing", missing))
        if names
    ]
    if problems:
        raise UsageError(
            f"{name} does not hold the {len(table)} published entries, {'; '.join(problems)}; give"
            " the published file."
        )
    return bound
