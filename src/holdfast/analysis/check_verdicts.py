"""Whether system prompts hold: a verdict on each prompt and each of its rules, from the
conversations of a run, using `analysis.sequential`.

A prompt holds if every one of its rules has a mean score of at least the bar in every round. The
verdict is a function of the records in the order of their numbers, and may be read at any time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from holdfast.analysis.cell_scores import CellScores, RuleRound, cell_scores
from holdfast.analysis.check_terms import Terms
from holdfast.analysis.prompt_comparison import compare_runs
from holdfast.analysis.sequential import (
    FAIL,
    PASS,
    UNDECIDED,
    Decision,
    bounds,
    capital_below,
    decide,
    verdict_at,
)
from holdfast.records import Conversation
from holdfast.records.run_summary import CheckedCell, PromptComparison, RuleComparison

MAX_LOST_SHARE = (
    0.1  # the share of replies that may be lost before an open verdict is put down to it
)


@dataclass(frozen=True)
class RuleCheck:
    """The verdict on one rule of a prompt, the cell that decides it (if none does, the one with
    the lowest mean; None if nothing was measured), and its comparison with an earlier run.

    It is `PASS` if every round certainly holds, and `FAIL` if the prompt fails and a round of this
    rule certainly does not hold, or if the rule has certainly fallen.
    """

    rule: str
    verdict: str
    cell: CheckedCell | None
    comparison: RuleComparison | None


@dataclass(frozen=True)
class PromptCheck:
    """The verdict on one prompt, and a description of all its conversations."""

    id: str
    # without a bar, a prompt passes that has not certainly fallen, if all its rules have scores and
    # few replies were lost
    verdict: str
    records: tuple[Conversation, ...]  # all conversations that were run, in order
    decided_after: int  # how many conversations the verdict rests on; may be fewer than all
    cells: tuple[CheckedCell, ...]  # round by round; certainty is never lost, as no end moves back
    lowest: CheckedCell | None  # the one with the lowest mean; None if nothing was measured
    first_failure: CheckedCell | None  # the first that certainly fails, if the prompt fails the bar
    comparison: PromptComparison | None  # None without an earlier run that has the prompt
    unanswered: int  # probes that were not asked or not answered
    lost: int  # scores that are missing because the server gave no reply
    error: float  # bound on the probability that an end of a cell's interval is ever wrong
    rules: tuple[RuleCheck, ...] = ()  # none if the prompt has only one

    @property
    def unavailable(self) -> bool:
        """Whether it is undecided, and the server left many of its probes without a reply."""
        asked = len(self.records) * len(self.cells)
        return self.verdict == UNDECIDED and _too_many_lost(self.lost, asked)

    def low_from_start(self, terms: Terms) -> bool:
        """Whether the failing rule's mean is already below the bar in round 1."""
        if self.first_failure is None or terms.min_stability is None:
            return False
        first = next(cell for cell in self.cells if cell.rule == self.first_failure.rule)
        return first.mean is not None and first.mean < terms.min_stability

    def undecided_rules(self, terms: Terms) -> list[str]:
        """The undecided rules, if every rule is to be decided; otherwise none."""
        undecided = [rule.rule for rule in self.rules if rule.verdict == UNDECIDED]
        return undecided if terms.all_rules else []


def check_prompts(
    records: Sequence[Conversation],
    prompts: Sequence[str],
    rounds: int,
    terms: Terms,
    before: Mapping[str, Sequence[Conversation]] | None = None,
) -> list[PromptCheck]:
    """The verdicts on all prompts, in order; `before` has an earlier run's records by prompt."""
    by_prompt = _by_prompt(records, prompts, terms.budget)
    error = terms.error_each(len(prompts), bool(before))
    comparisons = {
        name: compare_runs(current, earlier, rounds, terms.budget, error)
        for name, current in by_prompt.items()
        if (earlier := (before or {}).get(name, ()))
    }
    return check_again(records, prompts, rounds, terms, comparisons)


def check_again(
    records: Sequence[Conversation],
    prompts: Sequence[str],
    rounds: int,
    terms: Terms,
    comparisons: Mapping[str, PromptComparison],
) -> list[PromptCheck]:
    """Like `check_prompts`, with the comparisons with an earlier run already made, by prompt."""
    error = terms.error_each(len(prompts), bool(comparisons))
    return [
        _check(name, conversations, rounds, terms, error, comparisons.get(name))
        for name, conversations in _by_prompt(records, prompts, terms.budget).items()
    ]


def _by_prompt(
    records: Sequence[Conversation], prompts: Sequence[str], budget: int
) -> dict[str, list[Conversation]]:
    """Each prompt's conversations up to the first missing one, within the budget."""
    by_number = {record.conversation: record for record in records}
    by_prompt: dict[str, list[Conversation]] = {}
    for number, name in enumerate(prompts):
        conversations = by_prompt[name] = []
        while len(conversations) < budget and number in by_number:
            conversations.append(by_number[number])
            number += len(prompts)
    return by_prompt


def _check(
    name: str,
    records: Sequence[Conversation],
    rounds: int,
    terms: Terms,
    error: float,
    comparison: PromptComparison | None,
) -> PromptCheck:
    scores = cell_scores(records, rounds)
    bar = terms.min_stability
    rules = [rule for rule in scores.rules if rule is not None]
    decision: Decision | None = None
    by_rule: dict[str, Decision] = {}
    if bar is not None and terms.all_rules and rules:
        error /= len(rules)
        by_rule = {rule: _decide(scores.of_rule(rule), bar, error) for rule in rules}
        decision = _together(scores.at_best, bar, list(by_rule.values()))
    elif bar is not None:
        decision = _decide(scores, bar, error)
    cells = [
        _cell(cell, column, at_best, error)
        for cell, column, at_best in zip(
            scores.cells, scores.values.T, scores.at_best.T, strict=True
        )
    ]
    # falls are tested over all conversations
    decided_after = len(records) if decision is None or comparison is not None else decision.after
    checked = PromptCheck(
        id=name,
        verdict=_verdict(decision, comparison, scores),
        records=tuple(records),
        decided_after=decided_after,
        cells=tuple(cells),
        lowest=_lowest(cells),
        first_failure=_first_failure(cells, bar, decision),
        comparison=comparison,
        unanswered=int(np.isnan(scores.values).sum()),
        lost=int(scores.lost.sum()),
        error=error,
    )
    checks = (
        _check_rule(rule, checked, bar, by_rule.get(rule), _is_measured(scores.of_rule(rule)))
        for rule in rules
    )
    return replace(checked, rules=tuple(checks))


def cell_verdict(cell: CheckedCell, bar: float) -> str:
    """The verdict by a cell's interval alone; `UNDECIDED` if it contains the bar."""
    return verdict_at(bar, cell.low, cell.high)


def _first_failure(
    cells: Sequence[CheckedCell], bar: float | None, decision: Decision | None
) -> CheckedCell | None:
    """The first cell that certainly fails, if the prompt does."""
    if bar is None or decision is None or decision.verdict != FAIL:
        return None
    # up to rounding, some cell is certain by itself: no mean of capitals exceeds the largest
    certain = (cell for cell in cells if cell_verdict(cell, bar) == FAIL)
    return next(certain, cells[int(np.argmax(decision.below))])


def _decide(scores: CellScores, bar: float, error: float) -> Decision:
    return decide(scores.values, bar, error, scores.at_best)


def _together(values: np.ndarray, bar: float, rules: Sequence[Decision]) -> Decision:
    """Fails if any rule fails, and passes if all pass."""
    verdicts = [rule.verdict for rule in rules]
    verdict = next((word for word in (FAIL, UNDECIDED) if word in verdicts), PASS)
    after = len(values) if UNDECIDED in verdicts else max(rule.after for rule in rules)
    last = capital_below(values, bar)[after - 1] if after else np.zeros(values.shape[1])
    return Decision(verdict, after, last)


def _verdict(
    decision: Decision | None, comparison: PromptComparison | None, scores: CellScores
) -> str:
    if comparison is not None and comparison.fell:
        return FAIL
    if decision is not None:
        return decision.verdict
    is_compared = comparison is None or (bool(comparison.rules) and comparison.complete)
    return PASS if is_compared and _is_measured(scores) else UNDECIDED


def _is_measured(scores: CellScores) -> bool:
    """Whether every rule has a score, and few replies were lost: an outage is no pass."""
    has_scores = all(not np.isnan(scores.of_rule(rule).values).all() for rule in scores.rules)
    return has_scores and not _too_many_lost(int(scores.lost.sum()), scores.lost.size)


def _too_many_lost(lost: int, asked: int) -> bool:
    return lost > MAX_LOST_SHARE * asked


def _cell(cell: RuleRound, scores: np.ndarray, at_best: np.ndarray, error: float) -> CheckedCell:
    measured = scores[~np.isnan(scores)]
    mean = float(measured.mean()) if len(measured) else None
    low, high = bounds(scores, error)
    if not np.array_equal(scores, at_best, equal_nan=True):
        high = max(high, bounds(at_best, error)[1])
    return CheckedCell(rule=cell.rule, round=cell.round, mean=mean, low=low, high=high)


def _lowest(cells: Sequence[CheckedCell]) -> CheckedCell | None:
    measured = [cell for cell in cells if cell.mean is not None]
    return min(measured, key=lambda cell: cell.mean or 0.0, default=None)


def _check_rule(
    rule: str,
    checked: PromptCheck,
    bar: float | None,
    decision: Decision | None,
    is_measured: bool,
) -> RuleCheck:
    """The verdict on a rule of a prompt that is checked but for its rules.

    Args:
        decision: the rule's own, if every rule is to be decided.
        is_measured: whether the rule has scores, and few were lost.
    """
    cells = [cell for cell in checked.cells if cell.rule == rule]
    lowest = _lowest(cells)
    comparison = checked.comparison
    compared = comparison.rules if comparison else ()
    of_rule = next((item for item in compared if item.rule == rule), None)
    verdicts = [] if bar is None else [cell_verdict(cell, bar) for cell in cells]
    # one interval among many says too little by itself: the prompt or this rule has to fail too
    fails = checked.first_failure is not None and (decision is None or decision.verdict == FAIL)
    if fails and FAIL in verdicts:
        return RuleCheck(rule, FAIL, cells[verdicts.index(FAIL)], of_rule)
    if of_rule is not None and of_rule.fell:
        return RuleCheck(rule, FAIL, lowest, of_rule)
    if decision is not None:
        return RuleCheck(rule, decision.verdict, lowest, of_rule)
    if bar is None:
        is_compared = comparison is None or (of_rule is not None and comparison.complete)
        passes = is_compared and is_measured
    else:
        passes = all(verdict == PASS for verdict in verdicts)
    return RuleCheck(rule, PASS if passes else UNDECIDED, lowest, of_rule)
