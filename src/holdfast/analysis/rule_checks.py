"""The verdict of a check on each rule of a prompt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.analysis.checks import FAIL, PASS, UNDECIDED, Cell, PromptCheck
from holdfast.analysis.falls import RuleFall


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
