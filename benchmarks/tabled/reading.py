"""Reads records, and writes estimates and tables as Markdown. For example:

difference({"mean": -0.19, "low": -0.312, "high": -0.08})  ->  -0.190 [-0.312, -0.080]
markdown([["model", "score"], ["a", "1"]])  ->  | model | score |, | --- | --- |, | a | 1 |
"""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
RESULTS = ROOT / "benchmarks" / "results"
FIX = "split-softmax:exponent=0.5"  # the fix that default_model.py measures


def read(name: str) -> dict:
    """The record of this name."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def read_all(folder: str) -> list[dict]:
    """The records in a folder, one per model, by name."""
    return [json.loads(file.read_text()) for file in sorted((RESULTS / folder).glob("*.json"))]


def versions(record: dict) -> dict[str, str]:
    """The versions of the packages that a record was measured with."""
    return record["measured_on"]["versions"]


def processor_of(record: dict) -> str:
    """The processor that a record was measured on: "Intel Xeon 8488C"."""
    name = record["measured_on"]["machine"].partition(",")[0]
    return name.replace("(R)", "").removesuffix(" Processor")


def score(estimate: dict) -> str:
    """An estimate from 0 to 1 with its interval."""
    return f"{estimate['mean']:.2f} [{estimate['low']:.2f}, {estimate['high']:.2f}]"


def difference(estimate: dict, digits: int = 3) -> str:
    """A difference of scores with its interval."""
    mean, low, high = (f"{estimate[end]:+.{digits}f}" for end in ("mean", "low", "high"))
    return f"{mean} [{low}, {high}]"


def points(estimate: dict) -> str:
    """A difference in percentage points with its interval."""
    return difference(estimate, digits=1)


def markdown(rows: list[list[str]]) -> list[str]:
    """The lines of a table; the first row is its header."""
    header, *body = ("| " + " | ".join(row) + " |" for row in rows)
    return [header, "| --- " * len(rows[0]) + "|", *body]
