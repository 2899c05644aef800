"""Decides from the conversations of a run whether system prompts hold: a verdict on each prompt and
each of its rules, by `analysis.sequential`.

A prompt holds if every one of its rules has a mean score of at least the bar in every round. The
verdict is a function of the records in the order of their numbers, and may be read at any time.

    conversations of the prompt "bot", in which "brief" has a mean of 0.4 in round 3; the bar 0.9
    -> PromptCheck(id="bot", verdict="fail", first_failure=CheckedCell("brief", 3, mean=0.4, ...),
                   rules=(RuleCheck("brief", "fail"), RuleCheck("polite", "undecided")))
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.analysis.cell_scores import CellScores, RuleRound, cell_scores
from holdfast.analysis.check_comparison import compare_runs
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
    rules_below,
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
    rules = [rule for rule in scores.rules if rule is not None]
    at_bar: _BarDecision | None = None
    if terms.min_stability is not None:
        if terms.all_rules and rules:
            error = error / len(rules)  # every rule is decided, and has its share
        at_bar = _decide(scores, terms.min_stability, error, each_rule=terms.all_rules)
    columns = zip(scores.cells, scores.values.T, scores.at_best.T, strict=True)
    cells = [_measure_cell(cell, values, at_best, error) for cell, values, at_best in columns]
    decided_after = len(records)
    if at_bar is not None and comparison is None:  # falls are tested over all conversations
        decided_after = at_bar.prompt.after
    prompt_check = PromptCheck(
        id=name,
        verdict=_verdict(at_bar, comparison, scores),
        decided_after=decided_after,
        described=len(records),
        unanswered=int(np.isnan(scores.values).sum()),
        lost=int(scores.lost.sum()),
        first_failure=_first_failure(cells, at_bar),
        lowest=_lowest(cells),
        comparison=comparison,
        rules=(),
        cells=tuple(cells),
        records=tuple(records),
        error=error,
    )
    checks = [
        _check_rule(rule, prompt_check, at_bar, is_measured=_is_measured(scores.of_rule(rule)))
        for rule in rules
    ]
    return prompt_check.model_copy(update={"rules": tuple(checks)})


@dataclass(frozen=True)
class _BarDecision:
    """The decision on a prompt by the bar.

    Attributes:
        bar: the bar.
        prompt: the decision on the prompt as a whole.
        rules: that on each rule, if every rule is to be decided; otherwise {}.
        failing_rules: the rules that certainly fail. It can be certain that a prompt fails, and
            not certain by which of its rules.
    """

    bar: float
    prompt: Decision
    rules: Mapping[str | None, Decision]
    failing_rules: frozenset[str | None]


def _decide(scores: CellScores, bar: float, error: float, *, each_rule: bool) -> _BarDecision:
    """Decides on a prompt by the bar.

    Args:
        error: of the verdict on the prompt; if each rule is to be decided, of that on one rule.
    """
    by_rule = {rule: scores.of_rule(rule) for rule in scores.rules}
    if each_rule:
        decisions = {
            rule: decide(of_rule.values, bar, error, of_rule.at_best)
            for rule, of_rule in by_rule.items()
        }
        prompt = _combine(scores.at_best, bar, list(decisions.values()))
        failing = [rule for rule, decision in decisions.items() if decision.verdict == FAIL]
        return _BarDecision(bar, prompt, decisions, frozenset(failing))
    prompt = decide(scores.values, bar, error, scores.at_best)
    if prompt.verdict != FAIL:
        return _BarDecision(bar, prompt, {}, frozenset())
    _, are_below = rules_below(np.stack([item.at_best for item in by_rule.values()]), bar, error)
    failing = [rule for rule, below in zip(by_rule, are_below, strict=True) if below.any()]
    return _BarDecision(bar, prompt, {}, frozenset(failing))


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


def cell_verdict(cell: CheckedCell, bar: float) -> CheckVerdict:
    """Returns the verdict by a cell's interval alone; `UNDECIDED` if it contains the bar."""
    return verdict_at(bar, cell.low, cell.high)


def _first_failure(cells: Sequence[CheckedCell], at_bar: _BarDecision | None) -> CheckedCell | None:
    """Returns the first cell of a failing rule that certainly fails, or else the cell that counts
    most towards the verdict; None if the prompt does not fail its bar.
    """
    if at_bar is None or at_bar.prompt.verdict != FAIL:
        return None
    cells_of_failing_rules = [cell for cell in cells if cell.rule in at_bar.failing_rules]
    first = _first_below(cells_of_failing_rules, at_bar.bar)
    return first or cells[int(np.argmax(at_bar.prompt.below))]


def _first_below(cells: Sequence[CheckedCell], bar: float) -> CheckedCell | None:
    """Returns the first cell that is certainly below the bar; None if none is."""
    return next((cell for cell in cells if cell_verdict(cell, bar) == FAIL), None)


def _verdict(
    at_bar: _BarDecision | None, comparison: PromptAgainstEarlierRun | None, scores: CellScores
) -> CheckVerdict:
    """Returns the verdict on a prompt; without a bar, it passes unless it fell."""
    if comparison is not None and comparison.fell:
        return FAIL
    if at_bar is not None:
        return at_bar.prompt.verdict
    is_compared = comparison is None or (bool(comparison.rules) and comparison.complete)
    return PASS if is_compared and _is_measured(scores) else UNDECIDED


def _is_measured(scores: CellScores) -> bool:
    """Whether every rule has a score, and few replies were lost: an outage is no pass."""
    has_scores = all(not np.isnan(scores.of_rule(rule).values).all() for rule in scores.rules)
    return has_scores and not too_many_lost(int(scores.lost.sum()), scores.lost.size)


def _measure_cell(
    cell: RuleRound, scores: np.ndarray, at_best: np.ndarray, error: float
) -> CheckedCell:
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
    rule: str, prompt_check: PromptCheck, at_bar: _BarDecision | None, *, is_measured: bool
) -> RuleCheck:
    """Decides on one rule.

    Args:
        prompt_check: the rule's prompt, with its own verdict but without those on its rules.
        at_bar: the decision on the prompt by the bar.
        is_measured: whether the rule has scores, and few were lost.
    """
    cells = [cell for cell in prompt_check.cells if cell.rule == rule]
    comparison = prompt_check.comparison
    compared_rules = comparison.rules if comparison else ()
    compared = next((item for item in compared_rules if item.rule == rule), None)
    fails_bar = at_bar is not None and rule in at_bar.failing_rules
    verdict: CheckVerdict = UNDECIDED
    if fails_bar or (compared is not None and compared.fell):
        verdict = FAIL
    elif at_bar is not None:
        verdict = _verdict_at_bar(rule, cells, at_bar)
    elif is_measured and (comparison is None or (compared is not None and comparison.complete)):
        verdict = PASS
    decided_by: CheckedCell | None = None
    if at_bar is not None and fails_bar:
        decided_by = _first_below(cells, at_bar.bar)
    return RuleCheck(
        rule=rule,
        verdict=verdict,
        decided_by=decided_by or _lowest(cells),
        fails_bar=fails_bar,
        comparison=compared,
    )


def _verdict_at_bar(rule: str, cells: Sequence[CheckedCell], at_bar: _BarDecision) -> CheckVerdict:
    """The verdict by the bar on a rule that does not certainly fail it."""
    if at_bar.rules:
        return at_bar.rules[rule].verdict
    passes = all(cell_verdict(cell, at_bar.bar) == PASS for cell in cells)
    return PASS if passes else UNDECIDED


def budget_needed(checks: Sequence[PromptCheck], terms: Terms) -> int | None:
    """Returns how many conversations per prompt would settle the check if scores stay as they are.

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
