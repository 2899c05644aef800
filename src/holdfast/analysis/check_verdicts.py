"""Decides from the conversations of a run whether system prompts hold: a verdict on each prompt and
each of its rules, by `analysis.sequential`.

A prompt holds if every one of its rules has a mean score of at least the bar in every round. The
verdict is a function of the records in the order of their numbers, and may be read at any time.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from holdfast.analysis.cell_scores import CellScores, RuleRound, cell_scores, compare_runs
from holdfast.analysis.sequential import (
    FAIL,
    PASS,
    UNDECIDED,
    CheckVerdict,
    Decision,
    bounds,
    capital_below,
    conversations_needed,
    decide,
    verdict_at,
)
from holdfast.records import Conversation
from holdfast.records.check_records import (
    CheckedCell,
    PromptAgainstEarlierRun,
    PromptCheck,
    RuleCheck,
    Terms,
    too_many_lost,
)

MAX_CONVERSATIONS_FORECAST = 2000  # larger needs are not reported: nobody waits that long


def check_prompts(
    records: Sequence[Conversation],
    prompts: Sequence[str],
    rounds: int,
    terms: Terms,
    before: Mapping[str, Sequence[Conversation]] | None = None,
) -> list[PromptCheck]:
    """Decides on all prompts, in order; `before` has an earlier run's conversations by prompt."""
    error = terms.error_each(len(prompts), compared=bool(before))
    comparisons: dict[str, PromptAgainstEarlierRun] = {}
    for name, current in _group_by_prompt(records, prompts, terms.budget).items():
        if before and before.get(name):
            comparisons[name] = compare_runs(current, before[name], rounds, terms.budget, error)
    return check_again(records, prompts, rounds, terms, comparisons)


def check_again(
    records: Sequence[Conversation],
    prompts: Sequence[str],
    rounds: int,
    terms: Terms,
    comparisons: Mapping[str, PromptAgainstEarlierRun],
) -> list[PromptCheck]:
    """Decides like `check_prompts`, given the comparisons with an earlier run by prompt."""
    error = terms.error_each(len(prompts), compared=bool(comparisons))
    return [
        _check_prompt(name, conversations, rounds, terms, error, comparisons.get(name))
        for name, conversations in _group_by_prompt(records, prompts, terms.budget).items()
    ]


def _group_by_prompt(
    records: Sequence[Conversation], prompts: Sequence[str], budget: int
) -> dict[str, list[Conversation]]:
    """Returns each prompt's conversations up to the first missing one, within the budget.

    Prompts take turns: conversation n is that of prompt n modulo their number.
    """
    record_by_number = {record.conversation: record for record in records}
    conversations_by_prompt: dict[str, list[Conversation]] = {}
    for number, name in enumerate(prompts):
        conversations = conversations_by_prompt[name] = []
        while len(conversations) < budget and number in record_by_number:
            conversations.append(record_by_number[number])
            number += len(prompts)
    return conversations_by_prompt


def _check_prompt(
    name: str,
    records: Sequence[Conversation],
    rounds: int,
    terms: Terms,
    error: float,
    comparison: PromptAgainstEarlierRun | None,
) -> PromptCheck:
    """Decides on one prompt and its rules; `error` is the prompt's share of that of all tests."""
    scores = cell_scores(records, rounds)
    bar = terms.min_stability
    rules = [rule for rule in scores.rules if rule is not None]
    decision: Decision | None = None
    decision_by_rule: dict[str, Decision] = {}
    if bar is not None and terms.all_rules and rules:
        error /= len(rules)
        decision_by_rule = {rule: _decide(scores.of_rule(rule), bar, error) for rule in rules}
        decision = _combine(scores.at_best, bar, list(decision_by_rule.values()))
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
    prompt_check = PromptCheck(
        id=name,
        verdict=_verdict(decision, comparison, scores),
        decided_after=decided_after,
        described=len(records),
        unanswered=int(np.isnan(scores.values).sum()),
        lost=int(scores.lost.sum()),
        first_failure=_first_failure(cells, bar, decision),
        lowest=_lowest(cells),
        comparison=comparison,
        rules=(),
        cells=tuple(cells),
        records=tuple(records),
        error=error,
    )
    checks = [
        _check_rule(
            rule,
            prompt_check,
            bar,
            decision_by_rule.get(rule),
            is_measured=_is_measured(scores.of_rule(rule)),
        )
        for rule in rules
    ]
    return prompt_check.model_copy(update={"rules": tuple(checks)})


def cell_verdict(cell: CheckedCell, bar: float) -> CheckVerdict:
    """Returns the verdict by a cell's interval alone; `UNDECIDED` if it contains the bar."""
    return verdict_at(bar, cell.low, cell.high)


def _first_failure(
    cells: Sequence[CheckedCell], bar: float | None, decision: Decision | None
) -> CheckedCell | None:
    """Returns the first cell that certainly fails; None if the prompt does not fail its bar."""
    if bar is None or decision is None or decision.verdict != FAIL:
        return None
    # A prompt fails by the mean of its cells' capitals, and no mean exceeds the largest of them. So
    # some cell fails by itself; if rounding hides that, the one with the largest capital counts.
    certain = (cell for cell in cells if cell_verdict(cell, bar) == FAIL)
    return next(certain, cells[int(np.argmax(decision.below))])


def _decide(scores: CellScores, bar: float, error: float) -> Decision:
    return decide(scores.values, bar, error, scores.at_best)


def _combine(values: np.ndarray, bar: float, rules: Sequence[Decision]) -> Decision:
    """Combines the decisions on rules: the prompt fails if any fails, and passes if all pass."""
    verdicts = [rule.verdict for rule in rules]
    verdict: CheckVerdict = PASS
    if FAIL in verdicts:
        verdict = FAIL
    elif UNDECIDED in verdicts:
        verdict = UNDECIDED
    after = len(values) if UNDECIDED in verdicts else max(rule.after for rule in rules)
    final_capital = capital_below(values, bar)[after - 1] if after else np.zeros(values.shape[1])
    return Decision(verdict, after, final_capital)


def _verdict(
    decision: Decision | None, comparison: PromptAgainstEarlierRun | None, scores: CellScores
) -> CheckVerdict:
    """Returns the verdict on a prompt; without a bar there is no decision."""
    if comparison is not None and comparison.fell:
        return FAIL
    if decision is not None:
        return decision.verdict
    is_compared = comparison is None or (bool(comparison.rules) and comparison.complete)
    return PASS if is_compared and _is_measured(scores) else UNDECIDED


def _is_measured(scores: CellScores) -> bool:
    """Whether every rule has a score, and few replies were lost: an outage is no pass."""
    has_scores = all(not np.isnan(scores.of_rule(rule).values).all() for rule in scores.rules)
    return has_scores and not too_many_lost(int(scores.lost.sum()), scores.lost.size)


def _cell(cell: RuleRound, scores: np.ndarray, at_best: np.ndarray, error: float) -> CheckedCell:
    """Measures a cell from its scores, [conversation]; lost replies may have had the best one."""
    present = scores[~np.isnan(scores)]
    mean = float(present.mean()) if len(present) else None
    low, high = bounds(scores, error)
    if not np.array_equal(scores, at_best, equal_nan=True):
        high = max(high, bounds(at_best, error)[1])
    return CheckedCell(rule=cell.rule, round=cell.round, mean=mean, low=low, high=high)


def _lowest(cells: Sequence[CheckedCell]) -> CheckedCell | None:
    """Returns the cell with the lowest mean; None if none was measured."""
    cells_with_mean = [cell for cell in cells if cell.mean is not None]
    return min(cells_with_mean, key=lambda cell: cell.mean or 0.0, default=None)


def _check_rule(
    rule: str,
    prompt_check: PromptCheck,
    bar: float | None,
    decision: Decision | None,
    *,
    is_measured: bool,
) -> RuleCheck:
    """Decides on one rule.

    Args:
        prompt_check: the rule's prompt, with its own verdict but without those on its rules.
        decision: the decision on this rule, if every rule is to be decided.
        is_measured: whether the rule has scores, and few were lost.
    """
    cells = [cell for cell in prompt_check.cells if cell.rule == rule]
    lowest = _lowest(cells)
    comparison = prompt_check.comparison
    compared_rules = comparison.rules if comparison else ()
    fall = next((item for item in compared_rules if item.rule == rule), None)
    verdicts = [] if bar is None else [cell_verdict(cell, bar) for cell in cells]
    # one interval among many says too little by itself: the prompt or this rule has to fail too
    fails = prompt_check.first_failure is not None and (
        decision is None or decision.verdict == FAIL
    )
    decided_by = lowest
    verdict: CheckVerdict
    if fails and FAIL in verdicts:
        verdict = FAIL
        decided_by = cells[verdicts.index(FAIL)]
    elif fall is not None and fall.fell:
        verdict = FAIL
    elif decision is not None:
        verdict = decision.verdict
    elif bar is None:
        is_compared = comparison is None or (fall is not None and comparison.complete)
        verdict = PASS if is_compared and is_measured else UNDECIDED
    else:
        verdict = PASS if all(word == PASS for word in verdicts) else UNDECIDED
    return RuleCheck(rule=rule, verdict=verdict, decided_by=decided_by, comparison=fall)


def budget_needed(checks: Sequence[PromptCheck], terms: Terms) -> int | None:
    """Returns how many conversations per prompt would settle the check if scores stay as they are;
    None if nothing is undecided, if there is no bar, or if it would take too many.
    """
    bar = terms.min_stability
    largest_count = 0
    for prompt_check in checks:
        rules: list[str | None] = [*prompt_check.undecided_rules(terms)]
        if bar is None or (prompt_check.verdict != UNDECIDED and not rules):
            continue
        scores = cell_scores(prompt_check.records, max(cell.round for cell in prompt_check.cells))
        for rule in rules or [None]:
            values = scores.values if rule is None else scores.of_rule(rule).values
            count = conversations_needed(
                values, bar, prompt_check.error, MAX_CONVERSATIONS_FORECAST
            )
            if count is None:
                return None
            largest_count = max(largest_count, count)
    return largest_count or None


def closest_mean(checks: Sequence[PromptCheck], terms: Terms) -> float | None:
    """Returns the mean closest to the bar among the cells of the prompts, or of their undecided
    rules if every rule is to be decided; None if there are none, or no bar.
    """
    means: list[float] = []
    for prompt_check in checks:
        rules = prompt_check.undecided_rules(terms)
        cells = [cell for cell in prompt_check.cells if not rules or cell.rule in rules]
        means += [cell.mean for cell in cells if cell.mean is not None]
    bar = terms.min_stability
    return None if bar is None else min(means, key=lambda mean: abs(mean - bar), default=None)
