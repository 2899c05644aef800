"""What `summary.json` holds of a check."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from holdfast.analysis.check_file import Check
from holdfast.analysis.checks import Cell, PromptCheck
from holdfast.analysis.falls import Fall
from holdfast.analysis.rule_checks import rules_of

_DIGITS = 6  # as of all of the summary


def check_told(check: Check) -> dict[str, Any]:
    """A check as JSON: what was asked, and the verdict on every prompt and rule."""
    return {
        "method": check.method,
        **asdict(check.terms),
        "prompts": [_prompt(checked, check.terms.min_stability) for checked in check.prompts],
    }


def _prompt(checked: PromptCheck, bar: float | None) -> dict[str, Any]:
    return {
        "id": checked.id,
        "verdict": checked.verdict,
        "conversations": checked.decided_after,
        "described": len(checked.records),
        "unanswered": checked.unanswered,
        "let_go": _cell(checked.let_go),
        "lowest": _cell(checked.lowest),
        "fall": _fall(checked.fall),
        "rules": [
            {"rule": rule.rule, "verdict": rule.verdict, "decided_by": _cell(rule.cell)}
            for rule in rules_of(checked, bar)
        ],
        "cells": [_cell(cell) for cell in checked.cells],
    }


def _cell(cell: Cell | None) -> dict[str, Any] | None:
    return None if cell is None else {name: _plain(value) for name, value in asdict(cell).items()}


def _fall(fall: Fall | None) -> dict[str, Any] | None:
    if fall is None:
        return None
    rules = [{name: _plain(value) for name, value in asdict(rule).items()} for rule in fall.rules]
    return {**asdict(fall), "rules": rules, "not_compared": list(fall.not_compared)}


def _plain(value: Any) -> Any:
    """A value of JSON: numbers rounded, None for what was not measured."""
    if not isinstance(value, float):
        return value
    return None if math.isnan(value) else round(value, _DIGITS) + 0.0
