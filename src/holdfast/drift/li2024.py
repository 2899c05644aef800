"""The hundred system prompts of Li et al. 2024, read from the published file.

The file `hundred_system_prompts.py` carries no licence, so its texts are not part of this package:
they are read from the user's copy or from the hub. It is a Python program that downloads on import;
here it is only ever read as text. Each entry is bound to a measure by a hash of its words
(`assets/suites/li2024.json`), once as published and once with the known defects mended.
"""

import ast
import hashlib
import json
import re
import unicodedata
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from holdfast.drift.cases import Case, Suite, generic_starters
from holdfast.errors import HoldfastError, UsageError
from holdfast.files import asset
from holdfast.measures import build

PREFIX = "li2024"
SCORINGS = ("strict", "released")
HUB_DATASET = "Naomibas/llm-system-prompts-benchmark"
FILE_NAME = "hundred_system_prompts.py"


@dataclass(frozen=True)
class Binding:
    """The table's row for one entry; `mends` says what strict scoring corrects, or is empty."""

    id: str
    category: str
    released: dict[str, Any]
    strict: dict[str, Any]
    mends: str


def load_li2024(where: str, scoring: str = "strict") -> Suite:
    """Loads the published file from a path or the `hub`; `released` keeps its defects."""
    path = fetch() if where == "hub" else Path(where)
    try:
        source = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read ({error.strerror}); give the path of {FILE_NAME}, or"
            " li2024:hub."
        ) from error
    entries = read_entries(source, str(path))
    cases = []
    for key, binding in bindings().items():
        prompt, probe = entries[key]
        measure = build(getattr(binding, scoring))
        cases.append(Case(binding.id, binding.category, prompt, (probe,), measure))
    return Suite(f"{PREFIX}-{scoring}", tuple(cases), generic_starters(), notes(scoring))


def notes(scoring: str) -> tuple[str, ...]:
    """Notes for readers of the results."""
    mended = sum(bool(binding.mends) for binding in bindings().values())
    summary = {
        "released": f"Scored as published: {mended} of the 100 measures have known defects, which"
        " strict scoring mends.",
        "strict": f"Scored strictly: {mended} of the 100 published measures are mended; an empty"
        " reply follows nothing.",
    }
    return (
        "System prompts and probes of Li et al. 2024; the conversation starters are Holdfast's"
        " own.",
        summary[scoring],
        "Word lists, tagger and sentence splitter are Holdfast's, and languages are identified by"
        " py3langid and wordfreq: offline and deterministic.",
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


def read_entries(source: bytes, name: str) -> dict[str, tuple[str, str]]:
    """The published system prompts and probes by their keys, from the file's syntax tree."""
    cure = f"give the published {FILE_NAME}."
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the published file has invalid escapes in its helpers
            tree = ast.parse(source)
    except SyntaxError as error:
        where = f"line {error.lineno}: {error.msg}"
        raise UsageError(f"{name} is not Python ({where}); {cure}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"{name} cannot be parsed ({error}); {cure}") from error
    entries: dict[str, tuple[str, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List) and len(node.elts) > 1:
            prompt, probe = map(text_of, node.elts[:2])
            if prompt is not None and probe is not None:
                entries.setdefault(key_of(prompt, probe), (prompt, probe))
    table = bindings()
    if missing := [binding.id for key, binding in table.items() if key not in entries]:
        raise UsageError(
            f"{name} lacks {len(missing)} of the {len(table)} published entries"
            f" ({', '.join(missing[:5])}{', ...' if missing[5:] else ''}); {cure}"
        )
    return entries


def text_of(node: ast.expr) -> str | None:
    """The text of a string, possibly joined with '+'; None for anything that would need running."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left = text_of(node.left)
        right = text_of(node.right)
        return None if left is None or right is None else left + right
    if isinstance(node, ast.JoinedStr) and all(
        isinstance(part, ast.Constant) for part in node.values
    ):
        return "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
    return None


def key_of(system_prompt: str, probe: str) -> str:
    """SHA-256 of an entry's words: prompt and probe, as two entries share a system prompt."""
    joined = " | ".join(
        " ".join(re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text).casefold()))
        for text in (system_prompt, probe)
    )
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()


@cache
def bindings() -> dict[str, Binding]:
    """The shipped table of measures, by the hash of each published entry, in the paper's order."""
    table = {}
    for row in json.loads(asset("suites/li2024.json"))["entries"]:
        key = row.pop("key")
        table[key] = Binding(**{"strict": row["released"], "mends": "", **row})
    return table
