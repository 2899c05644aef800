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
from holdfast.records.run_summary import (
    CheckedCell,
    CheckedPrompt,
    CheckedRule,
    CheckSummary,
    FallenRule,
    FallSummary,
)

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


def summary_of_check(check: Check) -> CheckSummary:
    """A check as in `summary.json`: its terms, and the verdict on every prompt and rule."""
    return CheckSummary(
        method=check.method,
        **asdict(check.terms),
        prompts=tuple(map(_prompt, check.prompts)),
    )


def _prompt(checked: PromptCheck) -> CheckedPrompt:
    return CheckedPrompt(
        id=checked.id,
        verdict=checked.verdict,
        conversations=checked.decided_after,
        described=len(checked.records),
        unanswered=checked.unanswered,
        let_go=_cell(checked.first_failure),
        lowest=_cell(checked.lowest),
        fall=_fall(checked.fall),
        rules=tuple(
            CheckedRule(rule=rule.rule, verdict=rule.verdict, decided_by=_cell(rule.cell))
            for rule in checked.rules
        ),
        cells=tuple(CheckedCell(**_plain(cell)) for cell in checked.cells),
    )


def _cell(cell: Cell | None) -> CheckedCell | None:
    return None if cell is None else CheckedCell(**_plain(cell))


def _fall(fall: Fall | None) -> FallSummary | None:
    if fall is None:
        return None
    rules = tuple(FallenRule(**_plain(rule)) for rule in fall.rules)
    return FallSummary(
        pairs=fall.pairs,
        expected=fall.expected,
        alike=fall.alike,
        fell=fall.fell,
        rules=rules,
        not_compared=fall.not_compared,
    )


def _plain(item: Cell | RuleFall) -> dict[str, Any]:
    """Its fields, rounded, with None for what was not measured."""
    values = {name: None if value != value else value for name, value in asdict(item).items()}
    return {
        name: round(value, _DIGITS) + 0.0 if isinstance(value, float) else value
        for name, value in values.items()
    }
