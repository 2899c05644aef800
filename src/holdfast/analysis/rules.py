"""Rule by rule, where a prompt gives several: how well each was kept, and when it was lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.analysis.series import Series, judge_of, probe_means
from holdfast.analysis.statistics import Estimate, change, estimate_columns
from holdfast.analysis.verdicts import tell

KEPT = 0.5  # the least score of a reply that keeps to a rule
PROMPTS_APART = 6  # the rules of more prompts are told by their ids alone, over all prompts


@dataclass(frozen=True)
class RuleRow:
    """One rule of one system prompt, or of all that have one of this id, in one series.

    Attributes:
        name: the rule's id; behind that of its prompt where two to `PROMPTS_APART` prompts have
            rules.
        series: the series.
        n: conversations in which the agent had such a prompt.
        points: stability by round.
        changes: paired changes from round 1, by round; the first is 0.
        broken: how many conversations first scored below `KEPT` in each round.
        kept: how many never did.
        judge: the model that scores it; "" where the score is a function of the text.
    """

    name: str
    series: Series
    n: int
    points: tuple[Estimate, ...]
    changes: tuple[Estimate, ...]
    broken: tuple[int, ...]
    kept: int
    judge: str

    @property
    def fell_in(self) -> int | None:
        """The round from which on stability is told to be below that of round 1, to the last; None
        where the last cannot be told to be.
        """
        below = [tell(point).sign < 0 for point in self.changes]
        if not below[-1]:
            return None
        return 1 + max((number for number, fell in enumerate(below, 1) if not fell), default=0)


def rule_rows(series: Sequence[Series]) -> list[RuleRow]:
    """A row per rule and series, in the order of asking; empty where prompts have no rules."""
    records = [record for item in series for record in item.records]
    rules: list[tuple[str | None, str]] = [rule for record in records for rule in _rules(record)]
    prompts = {case for case, _ in rules}
    if len(prompts) > PROMPTS_APART:
        rules = [(None, rule) for _, rule in rules]
    rows = []
    for case, rule in dict.fromkeys(rules):
        for item in series:
            values = _scores(item, case, rule)
            if not np.isnan(values).all():
                apart = case is not None and len(prompts) > 1
                judge = judge_of(_probed(item, case, rule), rule)
                rows.append(_row(f"{case}, {rule}" if apart else rule, item, values, judge))
    return rows


def first_broken(values: np.ndarray) -> list[int]:
    """Of [conversation, round], the first round, from 1, below `KEPT`; 0 where there is none."""
    with np.errstate(invalid="ignore"):
        below = values < KEPT
    return [int(row.argmax()) + 1 if row.any() else 0 for row in below]


def _row(name: str, item: Series, values: np.ndarray, judge: str) -> RuleRow:
    broken = first_broken(values)
    return RuleRow(
        name=name,
        series=item,
        n=len(values),
        points=tuple(estimate_columns(values)),
        changes=tuple(change(values, 0, last) for last in range(item.rounds)),
        broken=tuple(broken.count(number) for number in range(1, item.rounds + 1)),
        kept=broken.count(0),
        judge=judge,
    )


def _rules(record: dict[str, Any]) -> list[tuple[str | None, str]]:
    """The (case, rule) pairs that the agent of a record was probed for."""
    stability = (probe for probe in record["probes"] if probe["kind"] == "stability")
    rules = (probe["rule"] for probe in stability if probe.get("rule"))
    return list(dict.fromkeys((record["agent"]["id"], rule) for rule in rules))


def _probed(item: Series, case: str | None, rule: str) -> list[dict[str, Any]]:
    """The conversations in which the agent was probed for the rule of a case; None: of any."""
    return [
        record
        for record in item.records
        if any(id == rule and case in (None, agent) for agent, id in _rules(record))
    ]


def _scores(item: Series, case: str | None, rule: str) -> np.ndarray:
    """[conversation, round] of these conversations."""
    return probe_means(
        _probed(item, case, rule),
        item.rounds,
        lambda probe: probe["kind"] == "stability" and probe.get("rule") == rule,
    )
