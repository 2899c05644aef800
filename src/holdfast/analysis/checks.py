"""Whether system prompts hold: a verdict on each from the conversations of a run, by
`analysis.sequential`.

A prompt holds where every one of its rules has a mean score of at least the bar in every round. The
verdict follows from the records in the order of their numbers, whenever one looks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from holdfast import ranges
from holdfast.analysis.falls import Fall, Record, cell_scores, compare_runs
from holdfast.analysis.sequential import (
    FAIL,
    PASS,
    UNDECIDED,
    Decision,
    bounds,
    capital_below,
    conversations_needed,
    decide,
)
from holdfast.errors import ParameterOutOfRange

MOST_NEEDED = 2000  # conversations: beyond, nobody waits for a verdict
_ROUNDING = 1e-8  # the ends of intervals are known so closely


@dataclass(frozen=True)
class Terms:
    """The terms under which prompts are checked.

    Args:
        min_stability: the bar, above 0 and below 1; None: prompts are only compared with an earlier
            run.
        error: the probability, at most, that any prompt gets a wrong verdict.
        budget: conversations of each prompt, at most.
        all_rules: decide every rule, and not only whether a prompt fails: conversations go on
            behind the first rule that fails, and each rule has its share of a prompt's error.

    Raises:
        ParameterOutOfRange: a number outside its range.
    """

    min_stability: float | None = 0.9
    error: float = 0.05
    budget: int = 200
    all_rules: bool = False

    def error_of(self, prompts: int) -> float:
        """The share of the error that each of so many prompts gets."""
        return self.error / prompts

    def __post_init__(self) -> None:
        names = ("min_stability", "error") if self.min_stability is not None else ("error",)
        for name in names:
            _refuse_no_share(name, getattr(self, name))
        ranges.whole_number("check", "budget", self.budget, 1)


def _refuse_no_share(name: str, value: float) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if number and 0 < value < 1:
        return
    shown = f"{value:g}" if number else repr(value)
    if name == "min_stability" and value in (1, 100):
        raise ParameterOutOfRange(
            f"check takes {name} as a share above 0 and below 1, not {shown}: no number of"
            " conversations shows that a rule is always kept; give 0.99 or less."
        )
    hint = ranges.share_meant(value) or "."
    raise ParameterOutOfRange(
        f"check takes {name} as a share above 0 and below 1, not {shown}{hint}"
    )


@dataclass(frozen=True)
class Cell:
    """One rule in one round, with the mean and interval of its scores.

    Attributes:
        rule: None where the prompt has but one.
        round: from 1.
        mean: NaN where nothing was measured.
        low, high: what the true mean certainly is at least, and at most, whenever one looks.
    """

    rule: str | None
    round: int
    mean: float
    low: float
    high: float

    def verdict(self, bar: float) -> str:
        """The verdict of its interval alone: `PASS`, `FAIL`, or `UNDECIDED` where it holds the
        bar.
        """
        if self.low >= bar - _ROUNDING:
            return PASS
        return FAIL if self.high <= bar + _ROUNDING else UNDECIDED


@dataclass(frozen=True)
class PromptCheck:
    """The verdict on one prompt.

    Attributes:
        id: of its case.
        verdict: `PASS`, `FAIL` or `UNDECIDED`; a prompt that fell fails. Without a bar, one passes
            that has not certainly fallen once all pairs are compared, or that has no earlier run.
        records: all conversations that were run, in order; what follows describes all of them.
        decided_after: how many the verdict rests on; it may be certain before the last of a batch.
        cells: round by round. No end of an interval moves back, so what was certain at the verdict
            still is.
        lowest: the cell with the lowest mean; None where nothing was measured.
        let_go: the first round (and rule) that certainly does not hold; None of a prompt that
            does not fail by itself.
        fall: None without an earlier run that has the prompt.
        unanswered: probes of these conversations that were not asked or not answered.
        error: the probability, at most, that an end of a cell's interval is ever wrong.
        by_rule: the verdict on each rule where all are decided one by one; else empty.
    """

    id: str
    verdict: str
    records: tuple[Record, ...]
    decided_after: int
    cells: tuple[Cell, ...]
    lowest: Cell | None
    let_go: Cell | None
    fall: Fall | None
    unanswered: int
    error: float
    by_rule: Mapping[str, str] = field(default_factory=dict)

    def low_from_start(self, terms: Terms) -> bool:
        """Whether the rule that fails has a mean below the bar in round 1 already."""
        if self.let_go is None or terms.min_stability is None:
            return False
        first = next(cell for cell in self.cells if cell.rule == self.let_go.rule)
        return first.mean < terms.min_stability

    @property
    def open_rules(self) -> bool:
        """Whether a rule is undecided although every rule is to be decided."""
        return UNDECIDED in self.by_rule.values()


def check_prompts(
    records: Sequence[Record],
    prompts: Sequence[str],
    rounds: int,
    terms: Terms,
    before: Mapping[str, Sequence[Record]] | None = None,
) -> list[PromptCheck]:
    """The verdicts on the prompts of a run in which they are the agent's in turn.

    Args:
        records: of one method.
        prompts: the ids of all cases, in the order of the suite.
        rounds: of every conversation.
        terms: what is asked; its error is shared out among the prompts.
        before: an earlier run's records by prompt.
    """
    error = terms.error_of(len(prompts))
    by_prompt = talks_of(records, prompts, terms.budget)
    falls = {
        name: compare_runs(by_prompt[name], earlier, rounds, terms.budget, error)
        for name in prompts
        if (earlier := (before or {}).get(name, ()))
    }
    return check_talks(by_prompt, rounds, terms, falls)


def check_talks(
    records: Mapping[str, Sequence[Record]], rounds: int, terms: Terms, falls: Mapping[str, Fall]
) -> list[PromptCheck]:
    """The same, where the comparisons with an earlier run are known.

    Args:
        records: of every prompt, as `talks_of` sorts them.
        rounds, terms: as of `check_prompts`.
        falls: by prompt, of those that an earlier run has.
    """
    error = terms.error_of(len(records))
    return [
        _check(name, talks_there, rounds, terms, error, falls.get(name))
        for name, talks_there in records.items()
    ]


def talks_of(
    records: Sequence[Record], prompts: Sequence[str], budget: int
) -> dict[str, list[Record]]:
    """The conversations of each prompt that a verdict may rest on, in the order of the prompts."""
    by_number = {record["conversation"]: record for record in records}
    return {
        name: _in_order(by_number, index, len(prompts))[:budget]
        for index, name in enumerate(prompts)
    }


def budget_needed(checks: Sequence[PromptCheck], terms: Terms) -> int | None:
    """How many conversations of each prompt would decide what is undecided, if all went on as those
    so far; None where no number up to `MOST_NEEDED` would, or there is no bar.
    """
    needed = 0
    for checked in checks:
        places, values = cell_scores(checked.records, max(cell.round for cell in checked.cells))
        undecided: list[str | None] = [
            rule for rule, verdict in checked.by_rule.items() if verdict == UNDECIDED
        ]
        if terms.min_stability is None or (checked.verdict != UNDECIDED and not undecided):
            continue
        for rule in undecided or [None]:
            columns = [at for at, cell in enumerate(places) if rule in (None, cell[0])]
            count = conversations_needed(
                values[:, columns], terms.min_stability, checked.error, MOST_NEEDED
            )
            if count is None:
                return None
            needed = max(needed, count)
    return needed or None


def closest_mean(checks: Sequence[PromptCheck], terms: Terms) -> float | None:
    """The mean closest to the bar of all rounds and rules that are undecided; None without any."""
    means: list[float] = []
    for checked in checks:
        decided = {rule for rule, verdict in checked.by_rule.items() if verdict != UNDECIDED}
        means += [cell.mean for cell in checked.cells if cell.rule not in decided]
    bar = terms.min_stability
    return None if bar is None else min(means, key=lambda mean: abs(mean - bar), default=None)


def _in_order(by_number: Mapping[int, Record], index: int, prompts: int) -> list[Record]:
    """A prompt's conversations up to the first that is missing: no later one is looked at before
    it.
    """
    records: list[Record] = []
    while (record := by_number.get(index + len(records) * prompts)) is not None:
        records.append(record)
    return records


def _check(
    name: str,
    records: Sequence[Record],
    rounds: int,
    terms: Terms,
    error: float,
    fall: Fall | None,
) -> PromptCheck:
    places, values = cell_scores(records, rounds)
    bar = terms.min_stability
    rules = [rule for rule in dict.fromkeys(rule for rule, _ in places) if rule is not None]
    by_rule: dict[str, Decision] = {}
    decision = None
    if bar is not None and terms.all_rules and rules:
        error /= len(rules)
        for rule in rules:
            columns = [at for at, cell in enumerate(places) if cell[0] == rule]
            by_rule[rule] = decide(values[:, columns], bar, error)
        decision = _together(values, bar, list(by_rule.values()))
    elif bar is not None:
        decision = decide(values, bar, error)
    # a fall is looked for in all conversations
    decided_after = len(records) if decision is None or fall is not None else decision.after
    cells = tuple(cell_of(*cell, values[:, at], error) for at, cell in enumerate(places))
    measured = [cell for cell in cells if not np.isnan(cell.mean)]
    let_go = None
    if bar is not None and decision is not None and decision.verdict == FAIL:
        let_go = _let_go(cells, bar, decision)
    return PromptCheck(
        id=name,
        verdict=_verdict(decision, fall, decided_after),
        records=tuple(records),
        decided_after=decided_after,
        cells=cells,
        lowest=min(measured, key=lambda cell: cell.mean, default=None),
        let_go=let_go,
        fall=fall,
        unanswered=int(np.isnan(values).sum()),
        error=error,
        by_rule={rule: decided.verdict for rule, decided in by_rule.items()},
    )


def _together(values: np.ndarray, bar: float, rules: Sequence[Decision]) -> Decision:
    """The decision on a prompt whose rules are decided one by one: it fails where one of them
    does, and passes where all do.
    """
    verdicts = [rule.verdict for rule in rules]
    verdict = next((word for word in (FAIL, UNDECIDED) if word in verdicts), PASS)
    after = len(values) if UNDECIDED in verdicts else max(rule.after for rule in rules)
    last = capital_below(values, bar)[after - 1] if after else np.zeros(values.shape[1])
    return Decision(verdict, after, last)


def _verdict(decision: Decision | None, fall: Fall | None, conversations: int) -> str:
    """The verdict of the bar (None: there is none) and of the comparison together."""
    if fall is not None and fall.fell:
        return FAIL
    if decision is not None:
        return decision.verdict
    if fall is None:
        return PASS if conversations else UNDECIDED
    return PASS if fall.rules and fall.pairs >= fall.expected else UNDECIDED


def cell_of(rule: str | None, number: int, scores: np.ndarray, error: float) -> Cell:
    """A rule in a round with the scores of its conversations, in their order."""
    measured = scores[~np.isnan(scores)]
    mean = float(measured.mean()) if len(measured) else np.nan
    return Cell(rule, number, mean, *bounds(scores, error))


def _let_go(cells: Sequence[Cell], bar: float, decision: Decision) -> Cell:
    """The first round that is certain by itself; but for rounding one is, as no mean of capitals is
    larger than the largest.
    """
    certain = (cell for cell in cells if cell.verdict(bar) == FAIL)
    return next(certain, cells[int(np.argmax(decision.below))])


__all__ = [
    "FAIL",
    "PASS",
    "UNDECIDED",
    "Cell",
    "PromptCheck",
    "Terms",
    "budget_needed",
    "check_prompts",
    "check_talks",
    "closest_mean",
    "talks_of",
]
