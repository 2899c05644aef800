"""The scores of a prompt's conversations by rule and round, and which rules fell since an earlier
run of the prompt.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from holdfast.analysis.sequential import falls
from holdfast.analysis.statistics import MatrixEntry, matrix_of
from holdfast.records import Conversation, ProbeKey
from holdfast.records.check_records import PromptAgainstEarlierRun, RuleAgainstEarlierRun

# The reasons for a missing score that are the server's fault: it failed, or withheld the reply.
_OUTAGES = ("failure", "filter", "empty", "refusal")


class RuleRound(NamedTuple):
    """A cell: a rule, or None if it is the prompt's only one, in a round."""

    rule: str | None
    round: int


@dataclass(frozen=True, eq=False)
class CellScores:
    """The mean scores of a prompt's conversations by rule and round.

    Attributes:
        cells: every rule in every round, by round.
        values: [conversation, cell], NaN where no probe has a score.
        lost: [conversation, cell] bool, True where the score is missing because the server gave no
            reply.
    """

    cells: tuple[RuleRound, ...]
    values: np.ndarray
    lost: np.ndarray

    @property
    def at_best(self) -> np.ndarray:
        """The values with the best score, 1, in place of each reply that was lost.

        Verdicts that let a prompt fail use these, so that an outage cannot cause a failure.
        """
        return np.where(self.lost, 1.0, self.values)

    @property
    def rules(self) -> tuple[str | None, ...]:
        """The rules of the prompt."""
        return tuple(dict.fromkeys(cell.rule for cell in self.cells))

    def of_rule(self, rule: str | None) -> "CellScores":
        """Returns the scores of one rule."""
        columns = [column for column, cell in enumerate(self.cells) if cell.rule == rule]
        cells = tuple(self.cells[column] for column in columns)
        return CellScores(cells, self.values[:, columns], self.lost[:, columns])


def cell_scores(records: Sequence[Conversation], rounds: int) -> CellScores:
    """Collects the scores of a prompt's conversations in their first `rounds` rounds."""
    probes = [
        (row, probe)
        for row, record in enumerate(records)
        for probe in record.stability_probes
        if probe.round <= rounds
    ]
    # a rule that has no score at all still counts as a rule of the prompt
    all_probes: list[ProbeKey] = [probe for _, probe in probes]
    all_probes += [probe for record in records for probe in record.without_score]
    rules = dict.fromkeys(probe.rule for probe in all_probes if probe.kind == "stability")
    cells = [RuleRound(rule, number) for number in range(1, rounds + 1) for rule in rules or [None]]
    columns = {cell: column for column, cell in enumerate(cells)}
    scores = [
        MatrixEntry(row, columns[RuleRound(probe.rule, probe.round)], probe.score)
        for row, probe in probes
    ]
    values = matrix_of(scores, (len(records), len(cells)))
    lost = np.array([[_is_lost(record, cell) for cell in cells] for record in records], dtype=bool)
    return CellScores(tuple(cells), values, lost.reshape(values.shape) & np.isnan(values))


def _is_lost(record: Conversation, cell: RuleRound) -> bool:
    """Whether the server gave no reply to the cell's probe, or failed and so ended the dialog
    before it.
    """
    if (
        record.ended is not None
        and record.ended.why in _OUTAGES
        and cell.round >= record.ended.round
    ):
        return True
    return any(
        probe.why in _OUTAGES and (probe.kind, probe.rule, probe.round) == ("stability", *cell)
        for probe in record.without_score
    )


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
    fell = False
    rules: list[RuleAgainstEarlierRun] = []
    if shared_rules:
        prompt_fell, rules_fell = falls(
            np.stack([now[rule].at_best for rule in shared_rules]),
            np.stack([before[rule].values for rule in shared_rules]),
            error,
        )
        fell = bool(prompt_fell.any())
        rules = [
            _compare_rule(rule, now[rule].values, before[rule].values, fell=bool(rule_fell.any()))
            for rule, rule_fell in zip(shared_rules, rules_fell, strict=True)
        ]
    not_compared = [
        rule for rule in (*now, *before) if rule is not None and rule not in shared_rules
    ]
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


def _opening(record: Conversation) -> tuple[int, str, str | None]:
    """Returns the number, the user model's prompt and the starter of a conversation, which two
    conversations share if they were drawn alike.
    """
    starter = record.turns[0].text if record.turns else None
    return record.conversation, record.user.system_prompt, starter
