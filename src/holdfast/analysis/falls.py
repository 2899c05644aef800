"""Scores of a prompt by rule and round, and whether they fell against an earlier run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from holdfast.analysis.sequential import falls
from holdfast.analysis.statistics import cell_means
from holdfast.analysis.unscored import without_score
from holdfast.records import Conversation, ProbePlace

# why there is no score: the server failed, or it or its filter withheld the reply
_OUTAGES = ("failure", "filter", "empty", "refusal")


class RuleRound(NamedTuple):
    """A rule (None if it is the prompt's only one) in a round: a cell."""

    rule: str | None
    round: int


@dataclass(frozen=True, eq=False)
class CellScores:
    """The mean scores of a prompt's conversations by rule and round.

    Attributes:
        cells: every rule in every round, by round.
        values: [conversation, cell], NaN where no probe has a score.
        lost: [conversation, cell] bool, where there is none because the server gave no reply.
    """

    cells: tuple[RuleRound, ...]
    values: np.ndarray
    lost: np.ndarray

    @property
    def at_best(self) -> np.ndarray:
        """The values, and 1 where a reply was lost: the best that it can have been. A verdict
        against a prompt goes by these, so that no outage can be taken for one.
        """
        return np.where(self.lost, 1.0, self.values)

    @property
    def rules(self) -> tuple[str | None, ...]:
        """The rules of the prompt."""
        return tuple(dict.fromkeys(cell.rule for cell in self.cells))

    def of_rule(self, rule: str | None) -> "CellScores":
        """The scores of one rule."""
        columns = [column for column, cell in enumerate(self.cells) if cell.rule == rule]
        cells = tuple(self.cells[column] for column in columns)
        return CellScores(cells, self.values[:, columns], self.lost[:, columns])


def cell_scores(records: Sequence[Conversation], rounds: int) -> CellScores:
    """The scores of a prompt's conversations in its first rounds."""
    probes = [
        (row, probe)
        for row, record in enumerate(records)
        for probe in record.probes
        if probe.kind == "stability" and probe.round <= rounds
    ]
    # a rule without any score is still one that the prompt has to keep
    all_probes: list[ProbePlace] = [probe for _, probe in probes]
    all_probes += [probe for record in records for probe in without_score(record)]
    rules = dict.fromkeys(probe.rule for probe in all_probes if probe.kind == "stability")
    cells = [RuleRound(rule, number) for number in range(1, rounds + 1) for rule in rules or [None]]
    columns = {cell: column for column, cell in enumerate(cells)}
    scores = (
        (row, columns[RuleRound(probe.rule, probe.round)], probe.score) for row, probe in probes
    )
    values = cell_means(scores, (len(records), len(cells)))
    lost = np.array([[_is_lost(record, cell) for cell in cells] for record in records], dtype=bool)
    return CellScores(tuple(cells), values, lost.reshape(values.shape) & np.isnan(values))


def _is_lost(record: Conversation, cell: RuleRound) -> bool:
    """Whether the server gave no reply to a rule's probe, or had ended the dialog before it."""
    if (
        record.ended is not None
        and record.ended.why in _OUTAGES
        and cell.round >= record.ended.round
    ):
        return True
    return any(
        probe.why in _OUTAGES and (probe.kind, probe.rule, probe.round) == ("stability", *cell)
        for probe in without_score(record)
    )


def _rule_scores(records: Sequence[Conversation], rounds: int) -> dict[str | None, CellScores]:
    """The scores by rule."""
    scores = cell_scores(records, rounds)
    return {rule: scores.of_rule(rule) for rule in scores.rules}


@dataclass(frozen=True)
class RuleFall:
    """A rule compared with an earlier run.

    Attributes:
        rule: None if it is the prompt's only one.
        fell: whether its mean score is certainly lower in some round.
        round: the round in which the mean fell most.
        before: the mean of the earlier run in that round, over the pairs that have both scores.
        now: that of the current run.
    """

    rule: str | None
    fell: bool
    round: int
    before: float
    now: float


@dataclass(frozen=True)
class Fall:
    """The comparison of a prompt with an earlier run.

    Attributes:
        pairs: how many conversations of both runs were compared, in their order.
        expected: how many pairs the earlier run and the budget allow.
        alike: how many pairs have the same number, user model's prompt and starter.
        fell: whether some rule certainly fell, even if no single one can be named.
        rules: those in both runs; certain falls first, then the largest.
        not_compared: rules without a pair of scores.
    """

    pairs: int
    expected: int
    alike: int
    fell: bool
    rules: tuple[RuleFall, ...]
    not_compared: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether all pairs are compared."""
        return self.pairs >= self.expected


def compare_runs(
    current: Sequence[Conversation],
    earlier: Sequence[Conversation],
    rounds: int,
    budget: int,
    error: float,
) -> Fall:
    """Compares a prompt's conversations with those of an earlier run, in order.

    Args:
        rounds: how many rounds are compared, from the first.
        budget: the most conversations of a prompt.
        error: upper bound on the probability that a rule which has not fallen is reported as
            fallen.
    """
    pairs = list(zip(current, earlier, strict=False))
    current_scores = _rule_scores([new for new, _ in pairs], rounds)
    earlier_scores = _rule_scores([old for _, old in pairs], rounds)
    now = {rule: scores.values for rule, scores in current_scores.items()}
    before = {rule: scores.values for rule, scores in earlier_scores.items()}
    compared = [
        rule for rule in now if rule in before and not np.isnan(now[rule] - before[rule]).all()
    ]
    fell = False
    rule_falls: list[RuleFall] = []
    if compared:
        prompt_fell, rules_fell = falls(
            np.stack([current_scores[rule].at_best for rule in compared]),
            np.stack([before[rule] for rule in compared]),
            error,
        )
        fell = bool(prompt_fell.any())
        rule_falls = [
            _rule_fall(rule, bool(rule_fell.any()), now[rule], before[rule])
            for rule, rule_fell in zip(compared, rules_fell, strict=True)
        ]
    one_sided = [rule for rule in (*now, *before) if rule is not None and rule not in compared]
    return Fall(
        pairs=len(pairs),
        expected=min(budget, len(earlier)),
        alike=sum(_opening(new) == _opening(old) for new, old in pairs),
        fell=fell,
        rules=tuple(sorted(rule_falls, key=lambda rule: (not rule.fell, rule.now - rule.before))),
        not_compared=tuple(dict.fromkeys(one_sided)),
    )


def _rule_fall(rule: str | None, fell: bool, now: np.ndarray, before: np.ndarray) -> RuleFall:
    """The round in which a rule fell most; scores are [conversation, round]."""
    is_paired = ~np.isnan(now - before)
    by_round = [
        RuleFall(
            rule,
            fell,
            round=column + 1,
            before=float(before[is_paired[:, column], column].mean()),
            now=float(now[is_paired[:, column], column].mean()),
        )
        for column in np.flatnonzero(is_paired.any(axis=0)).tolist()
    ]
    return min(by_round, key=lambda fall: fall.now - fall.before)


def _opening(record: Conversation) -> tuple[int, str, str | None]:
    """The number, the user model's prompt and the starter: equal if the draws are the same."""
    starter = record.turns[0].text if record.turns else None
    return record.conversation, record.user.system_prompt, starter
