"""Rule by rule, where a prompt gives several: how well each was kept, and when it was lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.report.scores import Series
from holdfast.report.statistics import Estimate, change, estimate_columns
from holdfast.report.verdicts import LEAST, tell

KEPT = 0.5  # the least score of a reply that keeps to a rule


@dataclass(frozen=True)
class RuleRow:
    """One rule of one system prompt in one series.

    Attributes:
        name: the rule's id; behind that of its prompt where several prompts have rules.
        series: the series.
        n: conversations in which the agent had the prompt.
        points: stability by round.
        changes: paired changes from round 1, by round; the first is 0.
        broken: how many conversations first scored below `KEPT` in each round.
        kept: how many never did.
    """

    name: str
    series: Series
    n: int
    points: tuple[Estimate, ...]
    changes: tuple[Estimate, ...]
    broken: tuple[int, ...]
    kept: int


def rule_rows(series: Sequence[Series]) -> list[RuleRow]:
    """A row per rule and series, in the order of asking; empty where prompts have no rules."""
    records = [record for item in series for record in item.records]
    rules = list(dict.fromkeys(rule for record in records for rule in _rules(record)))
    several = len({case for case, _ in rules}) > 1
    rows = []
    for case, rule in rules:
        for item in series:
            values = _scores(item, case, rule)
            if not np.isnan(values).all():
                rows.append(_row(f"{case}, {rule}" if several else rule, item, values))
    return rows


def first_broken(values: np.ndarray) -> list[int]:
    """Of [conversation, round], the first round, from 1, below `KEPT`; 0 where there is none."""
    with np.errstate(invalid="ignore"):
        below = values < KEPT
    return [int(row.argmax()) + 1 if row.any() else 0 for row in below]


def fall(row: RuleRow) -> str:
    """From which round on stability is below that of round 1, as far as the intervals tell."""
    if row.n < LEAST:
        return f"n = {row.n} is too few to tell a fall (that takes {LEAST})"
    if len(row.changes) < 2:
        return "one round cannot show a fall"
    below = [tell(point).sign < 0 for point in row.changes]
    if not below[-1]:
        return "no fall that this run can tell"
    start = max((number for number, fell in enumerate(below, start=1) if not fell), default=0) + 1
    last = start == len(below)
    return f"below round 1 in round {start}" if last else f"below round 1 from round {start} on"


def broken_text(row: RuleRow) -> str:
    """'first broken in round 1: 2, round 3: 5; kept throughout: 33 of 40'."""
    numbered = enumerate(row.broken, start=1)
    counts = [f"round {number}: {count}" for number, count in numbered if count]
    start = f"first broken in {', '.join(counts)}; " if counts else ""
    return f"{start}kept throughout: {row.kept} of {row.n}"


def _row(name: str, item: Series, values: np.ndarray) -> RuleRow:
    broken = first_broken(values)
    counts = tuple(broken.count(number) for number in range(1, item.rounds + 1))
    changes = tuple(change(values, 0, last) for last in range(item.rounds))
    points = tuple(estimate_columns(values))
    return RuleRow(name, item, len(values), points, changes, counts, broken.count(0))


def _rules(record: dict) -> list[tuple[str, str]]:
    """The (case, rule) pairs that the agent of a record was probed for."""
    stability = (probe for probe in record["probes"] if probe["kind"] == "stability")
    rules = (probe["rule"] for probe in stability if probe.get("rule"))
    return list(dict.fromkeys((record["agent"]["id"], rule) for rule in rules))


def _scores(item: Series, case: str, rule: str) -> np.ndarray:
    """[conversation, round] of the conversations in which the agent was probed for the rule."""
    records = [record for record in item.records if (case, rule) in _rules(record)]
    shape = (len(records), item.rounds)
    sums, counts = np.zeros(shape), np.zeros(shape)
    for row, record in enumerate(records):
        for probe in record["probes"]:
            if probe["kind"] == "stability" and probe.get("rule") == rule:
                sums[row, probe["round"] - 1] += probe["score"]
                counts[row, probe["round"] - 1] += 1
    means: np.ndarray = np.divide(sums, counts, out=np.full(shape, np.nan), where=counts > 0)
    return means
