"""Helpers of all tables, for reading records."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
RESULTS = ROOT / "benchmarks" / "results"
FIX = "split-softmax:exponent=0.5"


def read(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text())


def read_all(folder: str) -> list[dict]:
    """The records in a folder, one per model, by name."""
    return [json.loads(file.read_text()) for file in sorted((RESULTS / folder).glob("*.json"))]


def versions(record: dict) -> dict[str, str]:
    """The versions of the packages that a record was measured with."""
    return record["measured_on"]["versions"]


def interval(estimate: dict) -> str:
    return f"{estimate['mean']:+.3f} [{estimate['low']:+.3f}, {estimate['high']:+.3f}]"


def points(estimate: dict) -> str:
    return f"{estimate['mean']:+.1f} [{estimate['low']:+.1f}, {estimate['high']:+.1f}]"


def markdown(rows: list[list[str]]) -> list[str]:
    head, *body = ("| " + " | ".join(row) + " |" for row in rows)
    return [head, "| --- " * len(rows[0]) + "|", *body]
