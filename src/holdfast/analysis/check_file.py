"""A check as JSON: `check.json`, its terms, from which page and summary derive the verdicts again;
and its part of `summary.json`.

The records do not contain the terms: the same conversations may be checked with another bar or
error, and the earlier run that they were compared with may be gone.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from holdfast.analysis.check_verdicts import Cell, PromptCheck, Terms, check_again
from holdfast.analysis.falls import Fall, RuleFall
from holdfast.common.files import write_whole
from holdfast.errors import HoldfastError, RecordsError, reason_of
from holdfast.records import Run

FILE = "check.json"
SCHEMA = 1
_DIGITS = 6  # as everywhere in the summary


@dataclass(frozen=True)
class Check:
    """The check of a run; verdicts are in suite order."""

    method: str
    terms: Terms
    prompts: tuple[PromptCheck, ...]


def write_check(
    folder: Path, method: str, terms: Terms, checks: Sequence[PromptCheck], rounds: int
) -> Path:
    """Writes a check's terms and comparisons into the run's folder, whole or not at all."""
    stored = {
        "schema": SCHEMA,
        "method": method,
        "rounds": rounds,
        **asdict(terms),
        "prompts": [checked.id for checked in checks],
        "falls": {checked.id: asdict(checked.fall) for checked in checks if checked.fall},
    }
    text = json.dumps(stored, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    return write_whole(folder / FILE, text, "another folder with --out")


def read_check(run: Run) -> Check | None:
    path = run.folder / FILE
    if not path.is_file():
        return None
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["schema"] != SCHEMA:
            raise ValueError(f"its schema is {stored['schema']!r}, and this version reads {SCHEMA}")
        all_rules = stored.get("all_rules", False)  # files of 0.2 do not have it
        terms = Terms(stored["min_stability"], stored["error"], stored["budget"], all_rules)
        falls = {name: _fall_of(fall) for name, fall in stored["falls"].items()}
        method, rounds = str(stored["method"]), int(stored["rounds"])
        prompts = list(stored["prompts"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, HoldfastError) as error:
        raise RecordsError(
            f"{path} cannot be read ({reason_of(error)}); repeat the check that wrote it, or"
            " remove it."
        ) from error
    records = [record for record in run.conversations if record.method == method]
    return Check(method, terms, tuple(check_again(records, prompts, rounds, terms, falls)))


def _fall_of(stored: Mapping[str, Any]) -> Fall:
    rules = tuple(RuleFall(**rule) for rule in stored["rules"])
    return Fall(**{**stored, "rules": rules, "not_compared": tuple(stored["not_compared"])})


def check_json(check: Check) -> dict[str, Any]:
    """A check as in `summary.json`: its terms, and the verdict on every prompt and rule."""
    return {
        "method": check.method,
        **asdict(check.terms),
        "prompts": [_prompt_json(checked) for checked in check.prompts],
    }


def _prompt_json(checked: PromptCheck) -> dict[str, Any]:
    return {
        "id": checked.id,
        "verdict": checked.verdict,
        "conversations": checked.decided_after,
        "described": len(checked.records),
        "unanswered": checked.unanswered,
        "let_go": _plain(checked.first_failure),
        "lowest": _plain(checked.lowest),
        "fall": _fall_json(checked.fall),
        "rules": [
            {"rule": rule.rule, "verdict": rule.verdict, "decided_by": _plain(rule.cell)}
            for rule in checked.rules
        ],
        "cells": [_plain(cell) for cell in checked.cells],
    }


def _fall_json(fall: Fall | None) -> dict[str, Any] | None:
    if fall is None:
        return None
    rules = [_plain(rule) for rule in fall.rules]
    return {**asdict(fall), "rules": rules, "not_compared": list(fall.not_compared)}


def _plain(item: Cell | RuleFall | None) -> dict[str, Any] | None:
    if item is None:
        return None
    values = {name: None if value != value else value for name, value in asdict(item).items()}
    return {
        name: round(value, _DIGITS) + 0.0 if isinstance(value, float) else value
        for name, value in values.items()
    }
