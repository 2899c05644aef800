"""A check as JSON: `check.json`, its terms, from which page and summary derive the verdicts again;
and its part of `summary.json`.

The records alone do not say it: another bar or error may be asked of the same conversations, and an
earlier run that they were compared with may be gone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from holdfast.analysis.checks import (
    FAIL,
    PASS,
    UNDECIDED,
    Cell,
    PromptCheck,
    Terms,
    check_talks,
    talks_of,
)
from holdfast.analysis.falls import Fall, RuleFall
from holdfast.errors import HoldfastError, RecordsError
from holdfast.files import write_whole
from holdfast.records import RunData


@dataclass(frozen=True)
class RuleCheck:
    """The verdict on one rule of a prompt.

    Attributes:
        rule: its id.
        verdict: `PASS` where every round certainly holds; `FAIL` where the prompt fails and a round
            of this rule certainly does not hold, or the rule has certainly fallen; else
            `UNDECIDED`. Without a bar, `PASS` where no fall is certain after all pairs. Where
            every rule is decided, that decision.
        cell: the first such round, else the one with the lowest mean; None where nothing was
            measured.
        fall: the comparison with an earlier run; None without one that has the rule.
    """

    rule: str
    verdict: str
    cell: Cell | None
    fall: RuleFall | None


def rules_of(checked: PromptCheck, bar: float | None) -> list[RuleCheck]:
    """The verdict on every rule of a prompt, never more than the intervals beside it; [] where the
    prompt has but one.
    """
    rules = dict.fromkeys(cell.rule for cell in checked.cells if cell.rule is not None)
    return [
        _rule_check(checked, rule, [cell for cell in checked.cells if cell.rule == rule], bar)
        for rule in rules
    ]


def _rule_check(
    checked: PromptCheck, rule: str, cells: Sequence[Cell], bar: float | None
) -> RuleCheck:
    measured = [cell for cell in cells if not math.isnan(cell.mean)]
    lowest = min(measured, key=lambda cell: cell.mean, default=None)
    compared = checked.fall.rules if checked.fall is not None else ()
    fall = next((item for item in compared if item.rule == rule), None)
    verdicts = [] if bar is None else [cell.verdict(bar) for cell in cells]
    decided = checked.by_rule.get(rule)
    # one interval of many says too little by itself: the prompt, or this rule, has to fail too
    fails = checked.let_go is not None and (decided or checked.verdict) == FAIL
    if fails and FAIL in verdicts:
        return RuleCheck(rule, FAIL, cells[verdicts.index(FAIL)], fall)
    if fall is not None and fall.fell:
        return RuleCheck(rule, FAIL, lowest, fall)
    if decided is not None:
        return RuleCheck(rule, decided, lowest, fall)
    if bar is None:
        whole = checked.fall is not None and checked.fall.pairs >= checked.fall.expected
        passes = checked.fall is None or (fall is not None and whole)
    else:
        passes = all(verdict == PASS for verdict in verdicts)
    return RuleCheck(rule, PASS if passes else UNDECIDED, lowest, fall)


FILE = "check.json"
SCHEMA = 1
_DIGITS = 6  # as of all of the summary


@dataclass(frozen=True)
class Check:
    """A check of a run.

    Attributes:
        method: under which the prompts were checked.
        terms: what was asked.
        prompts: the verdicts, in the order of the suite.
    """

    method: str
    terms: Terms
    prompts: tuple[PromptCheck, ...]


def write_check(
    folder: Path, method: str, terms: Terms, checks: Sequence[PromptCheck], rounds: int
) -> Path:
    """Writes what was asked of the prompts of a run into its folder, whole or not at all.

    Raises:
        RecordsError: it cannot be written.
    """
    falls = {checked.id: checked.fall for checked in checks if checked.fall is not None}
    stored = {
        "schema": SCHEMA,
        "method": method,
        "rounds": rounds,
        **asdict(terms),
        "prompts": [checked.id for checked in checks],
        "falls": {name: asdict(fall) for name, fall in falls.items()},
    }
    text = json.dumps(stored, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    return write_whole(folder / FILE, text, "another folder with --out")


def read_check(run: RunData) -> Check | None:
    """The check of a run; None where none was made.

    Raises:
        RecordsError: its file is damaged, or of a later version.
    """
    path = run.folder / FILE
    if not path.is_file():
        return None
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["schema"] != SCHEMA:
            raise ValueError(f"its schema is {stored['schema']!r}, and this version reads {SCHEMA}")
        terms = Terms(
            stored["min_stability"],
            stored["error"],
            stored["budget"],
            stored.get("all_rules", False),  # files of 0.2 do not have it
        )
        falls = {name: _fall_of(fall) for name, fall in stored["falls"].items()}
        method, rounds, prompts = (
            str(stored["method"]),
            int(stored["rounds"]),
            list(stored["prompts"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, HoldfastError) as error:
        raise RecordsError(
            f"{path} cannot be read ({error}); repeat the check that wrote it, or remove it."
        ) from error
    records = [record for record in run.records if record["method"] == method]
    records_by_prompt = talks_of(records, prompts, terms.budget)
    return Check(method, terms, tuple(check_talks(records_by_prompt, rounds, terms, falls)))


def _fall_of(stored: Mapping[str, Any]) -> Fall:
    rules = tuple(RuleFall(**rule) for rule in stored["rules"])
    return Fall(**{**stored, "rules": rules, "not_compared": tuple(stored["not_compared"])})


# --- summary.json


def check_json(check: Check) -> dict[str, Any]:
    """A check as JSON: what was asked, and the verdict on every prompt and rule."""
    return {
        "method": check.method,
        **asdict(check.terms),
        "prompts": [_prompt_json(checked, check.terms.min_stability) for checked in check.prompts],
    }


def _prompt_json(checked: PromptCheck, bar: float | None) -> dict[str, Any]:
    return {
        "id": checked.id,
        "verdict": checked.verdict,
        "conversations": checked.decided_after,
        "described": len(checked.records),
        "unanswered": checked.unanswered,
        "let_go": _cell_json(checked.let_go),
        "lowest": _cell_json(checked.lowest),
        "fall": _fall_json(checked.fall),
        "rules": [
            {"rule": rule.rule, "verdict": rule.verdict, "decided_by": _cell_json(rule.cell)}
            for rule in rules_of(checked, bar)
        ],
        "cells": [_cell_json(cell) for cell in checked.cells],
    }


def _cell_json(cell: Cell | None) -> dict[str, Any] | None:
    return None if cell is None else {name: _plain(value) for name, value in asdict(cell).items()}


def _fall_json(fall: Fall | None) -> dict[str, Any] | None:
    if fall is None:
        return None
    rules = [{name: _plain(value) for name, value in asdict(rule).items()} for rule in fall.rules]
    return {**asdict(fall), "rules": rules, "not_compared": list(fall.not_compared)}


def _plain(value: Any) -> Any:
    """A value of JSON: numbers rounded, None for what was not measured."""
    if not isinstance(value, float):
        return value
    return None if math.isnan(value) else round(value, _DIGITS) + 0.0
