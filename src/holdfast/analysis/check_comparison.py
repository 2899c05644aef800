"""Which rules of a prompt fell since an earlier run of `holdfast check` or `holdfast drift`.

For example, the rule "brief" had the means 0.9, 0.86 in the earlier run, and 0.9, 0.40 now:

    RuleAgainstEarlierRun(rule="brief", fell=True, round=2, before=0.86, now=0.40)
"""

from collections.abc import Sequence

import numpy as np

from holdfast.analysis.cell_scores import CellScores, cell_scores
from holdfast.analysis.sequential import falls
from holdfast.records import Conversation
from holdfast.records.check_records import PromptAgainstEarlierRun, RuleAgainstEarlierRun


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
    shared_rules = [rule for rule in now if rule in before and _have_pair(now[rule], before[rule])]
    prompt_fell = False
    rules: list[RuleAgainstEarlierRun] = []
    if shared_rules:
        # whether the prompt, and each rule, is found to have fallen after each conversation
        prompt_fell_after, rules_fell_after = falls(
            np.stack([now[rule].at_best for rule in shared_rules]),
            np.stack([before[rule].values for rule in shared_rules]),
            error,
        )
        prompt_fell = bool(prompt_fell_after.any())
        rules = [
            _compare_rule(rule, now[rule].values, before[rule].values, fell=bool(fell.any()))
            for rule, fell in zip(shared_rules, rules_fell_after, strict=True)
        ]
    not_compared = [
        rule for rule in (*now, *before) if rule is not None and rule not in shared_rules
    ]
    return PromptAgainstEarlierRun(
        pairs=len(pairs),
        expected=min(budget, len(earlier)),
        alike=sum(_begin_alike(new, old) for new, old in pairs),
        fell=prompt_fell,
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
    comparisons = [
        RuleAgainstEarlierRun(
            rule=rule,
            fell=fell,
            round=column + 1,
            before=float(before[is_paired[:, column], column].mean()),
            now=float(now[is_paired[:, column], column].mean()),
        )
        for column in np.flatnonzero(is_paired.any(axis=0)).tolist()
    ]
    return min(comparisons, key=lambda comparison: comparison.now - comparison.before)


def _begin_alike(current: Conversation, earlier: Conversation) -> bool:
    """Whether two conversations have the same number, user model's prompt and first message."""
    return (
        current.conversation == earlier.conversation
        and current.user.system_prompt == earlier.user.system_prompt
        and [turn.text for turn in current.turns[:1]] == [turn.text for turn in earlier.turns[:1]]
    )
