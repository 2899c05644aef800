"""Compares a prompt with an earlier run of it, to see which rules fell."""

from collections.abc import Sequence

import numpy as np

from holdfast.analysis.cell_scores import CellScores, cell_scores
from holdfast.analysis.sequential import falls
from holdfast.records import Conversation
from holdfast.records.run_summary import PromptAgainstEarlierRun, RuleAgainstEarlierRun


def compare_runs(
    current: Sequence[Conversation],
    earlier: Sequence[Conversation],
    rounds: int,
    budget: int,
    error: float,
) -> PromptAgainstEarlierRun:
    """Compares a prompt's conversations with those of an earlier run, in order.

    Args:
        rounds: how many rounds are compared, from the first.
        budget: the most conversations that the prompt may have.
        error: upper bound on the probability that a rule is wrongly reported as fallen.
    """
    pairs = list(zip(current, earlier, strict=False))
    now = _scores_by_rule([new for new, _ in pairs], rounds)
    before = _scores_by_rule([old for _, old in pairs], rounds)
    shared = [rule for rule in now if rule in before and _have_pair(now[rule], before[rule])]
    fell = False
    rules: list[RuleAgainstEarlierRun] = []
    if shared:
        prompt_fell, rules_fell = falls(
            np.stack([now[rule].at_best for rule in shared]),
            np.stack([before[rule].values for rule in shared]),
            error,
        )
        fell = bool(prompt_fell.any())
        rules = [
            _compare_rule(rule, now[rule].values, before[rule].values, fell=bool(rule_fell.any()))
            for rule, rule_fell in zip(shared, rules_fell, strict=True)
        ]
    not_compared = [rule for rule in (*now, *before) if rule is not None and rule not in shared]
    return PromptAgainstEarlierRun(
        pairs=len(pairs),
        expected=min(budget, len(earlier)),
        alike=sum(_opening(new) == _opening(old) for new, old in pairs),
        fell=fell,
        rules=tuple(sorted(rules, key=lambda rule: (not rule.fell, rule.now - rule.before))),
        not_compared=tuple(dict.fromkeys(not_compared)),
    )


def _scores_by_rule(records: Sequence[Conversation], rounds: int) -> dict[str | None, CellScores]:
    scores = cell_scores(records, rounds)
    return {rule: scores.of_rule(rule) for rule in scores.rules}


def _have_pair(now: CellScores, before: CellScores) -> bool:
    """Whether a conversation has a score of the same rule and round in both runs."""
    return not bool(np.isnan(now.values - before.values).all())


def _compare_rule(
    rule: str | None, now: np.ndarray, before: np.ndarray, *, fell: bool
) -> RuleAgainstEarlierRun:
    """Describes a rule in the round in which it fell most; scores are [conversation, round]."""
    is_paired = ~np.isnan(now - before)
    by_round = [
        RuleAgainstEarlierRun(
            rule=rule,
            fell=fell,
            round=column + 1,
            before=float(before[is_paired[:, column], column].mean()),
            now=float(now[is_paired[:, column], column].mean()),
        )
        for column in np.flatnonzero(is_paired.any(axis=0)).tolist()
    ]
    return min(by_round, key=lambda comparison: comparison.now - comparison.before)


def _opening(record: Conversation) -> tuple[int, str, str | None]:
    """Returns the number, the user model's prompt and the starter of a conversation, which two
    conversations share if they were drawn alike.
    """
    starter = record.turns[0].text if record.turns else None
    return record.conversation, record.user.system_prompt, starter
