"""The hundred system prompts of Li et al. 2024, read from the published file.

The file `hundred_system_prompts.py` has no licence, so its texts are not part of this package: they
are read from the user's copy, or from the hub. The file is a Python program that downloads when it
is imported; here it is only parsed, never run. Each entry is matched with a measure by a hash of
its words (`assets/suites/li2024.json`): once as published, and once with known defects corrected.
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
from typing import Any, NamedTuple

from holdfast.drift.cases import Case, Suite, generic_starters
from holdfast.errors import HoldfastError, UsageError
from holdfast.files import asset
from holdfast.measures import build

PREFIX = "li2024"
SCORINGS = ("strict", "released")
HUB_DATASET = "Naomibas/llm-system-prompts-benchmark"
FILE_NAME = "hundred_system_prompts.py"


class PublishedEntry(NamedTuple):
    """An entry of the published file, whose measure is not read."""

    system_prompt: str
    probe: str

    @property
    def key(self) -> str:
        """The SHA-256 of its words; of the probe's too, as two entries share a system prompt."""
        joined = " | ".join(
            " ".join(re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text).casefold()))
            for text in self
        )
        return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class EntryMeasures:
    """The measures that this package has for an entry."""

    id: str  # of the case that is made of the entry
    category: str
    released: dict[str, Any]  # the spec of the measure as published
    strict: dict[str, Any]  # the spec of the corrected measure
    mends: str  # what the correction changes; "" if nothing


def load_li2024(where: str, scoring: str = "strict") -> Suite:
    """Loads the published suite.

    Args:
        where: the path of the file, or "hub" to download it.
        scoring: "strict", or "released", which keeps the known defects.
    """
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
    for key, measures in measures_by_key().items():
        system_prompt, probe = entries[key]
        measure = build(getattr(measures, scoring))
        cases.append(Case(measures.id, measures.category, system_prompt, (probe,), measure))
    return Suite(f"{PREFIX}-{scoring}", tuple(cases), generic_starters(), notes(scoring))


def notes(scoring: str) -> tuple[str, ...]:
    """Notes for readers of the results."""
    mended = sum(bool(measures.mends) for measures in measures_by_key().values())
    summary = {
        "released": f"Scored as published: {mended} of the 100 measures have known defects, which"
        " strict scoring corrects.",
        "strict": f"Scored strictly: {mended} of the 100 published measures are corrected; an empty"
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


def read_entries(source: bytes, name: str) -> dict[str, PublishedEntry]:
    """Reads the published entries, by their keys, from the syntax tree of the file.

    Args:
        source: the content of the file.
        name: what to call the file in messages.
    """
    cure = f"give the published {FILE_NAME}."
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the published file contains invalid escapes
            tree = ast.parse(source)
    except SyntaxError as error:
        where = f"line {error.lineno}: {error.msg}"
        raise UsageError(f"{name} is not Python ({where}); {cure}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"{name} cannot be parsed ({error}); {cure}") from error
    entries: dict[str, PublishedEntry] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List) and len(node.elts) > 1:
            prompt, probe = map(_literal_text, node.elts[:2])
            if prompt is not None and probe is not None:
                entry = PublishedEntry(prompt, probe)
                entries.setdefault(entry.key, entry)
    table = measures_by_key()
    if missing := [measures.id for key, measures in table.items() if key not in entries]:
        raise UsageError(
            f"{name} lacks {len(missing)} of the {len(table)} published entries"
            f" ({', '.join(missing[:5])}{', ...' if missing[5:] else ''}); {cure}"
        )
    return entries


def _literal_text(node: ast.expr) -> str | None:
    """The text of a string literal, or of several joined with "+"; None for any other code."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left = _literal_text(node.left)
        right = _literal_text(node.right)
        return None if left is None or right is None else left + right
    if isinstance(node, ast.JoinedStr) and all(
        isinstance(part, ast.Constant) for part in node.values
    ):
        return "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
    return None


@cache
def measures_by_key() -> dict[str, EntryMeasures]:
    """The measures of each entry by its key, in the paper's order."""
    measures = {}
    for row in json.loads(asset("suites/li2024.json"))["entries"]:
        key = row.pop("key")
        measures[key] = EntryMeasures(**{"strict": row["released"], "mends": "", **row})
    return measures
