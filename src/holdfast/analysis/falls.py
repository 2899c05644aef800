"""Scores of a prompt by rule and round, and whether they fell against an earlier run."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.analysis.sequential import falls
from holdfast.analysis.statistics import cell_means
from holdfast.analysis.unscored import without_score
from holdfast.records import Conversation, ProbePlace


def cell_scores(
    records: Sequence[Conversation], rounds: int
) -> tuple[list[tuple[str | None, int]], np.ndarray]:
    """The rules and rounds of a prompt, and its mean scores, [conversation, cell]."""
    probes = [
        (row, probe)
        for row, record in enumerate(records)
        for probe in record.probes
        if probe.kind == "stability" and probe.round <= rounds
    ]
    # a rule without any score is still one that the prompt has to keep
    asked: list[ProbePlace] = [probe for _, probe in probes]
    asked += [probe for record in records for probe in without_score(record)]
    rules = list(dict.fromkeys(probe.rule for probe in asked if probe.kind == "stability")) or [
        None
    ]
    keys = [(rule, number) for number in range(1, rounds + 1) for rule in rules]
    columns = {key: column for column, key in enumerate(keys)}
    scores = ((row, columns[probe.rule, probe.round], probe.score) for row, probe in probes)
    return keys, cell_means(scores, (len(records), len(keys)))


def _rule_scores(records: Sequence[Conversation], rounds: int) -> dict[str | None, np.ndarray]:
    """The mean scores by rule, each [conversation, round]."""
    keys, values = cell_scores(records, rounds)
    return {
        rule: values[:, [at for at, key in enumerate(keys) if key[0] == rule]]
        for rule in dict.fromkeys(rule for rule, _ in keys)
    }


@dataclass(frozen=True)
class RuleFall:
    """A rule (None if it is the prompt's only one) compared with an earlier run: whether its mean
    score is certainly lower in some round, the round in which the mean fell most, and both means
    in that round, over the pairs that have both.
    """

    rule: str | None
    fell: bool
    round: int
    before: float
    now: float


@dataclass(frozen=True)
class Fall:
    """The comparison of a prompt with an earlier run."""

    pairs: int  # conversations of both runs that were compared, in their order
    expected: int  # how many pairs the earlier run and the budget allow
    alike: int  # how many pairs have the same number, user model's prompt and starter
    fell: bool  # whether some rule certainly fell, even if no single one can be named
    rules: tuple[RuleFall, ...]  # those in both runs: certain falls first, then the largest
    not_compared: tuple[str, ...] = ()  # rules without a pair of scores

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
    """Compares a prompt's conversations, at most `budget`, with those of an earlier run, in order;
    `error` bounds the probability that a rule which has not fallen is reported as fallen.
    """
    pairs = list(zip(current, earlier, strict=False))
    now = _rule_scores([new for new, _ in pairs], rounds)
    then = _rule_scores([old for _, old in pairs], rounds)
    both = [r for r in now if r in then and not np.isnan(now[r] - then[r]).all()]
    fell = False
    by_rule: np.ndarray = np.zeros(0, dtype=bool)
    if both:
        prompt_fell, rule_fell = falls(
            np.stack([now[rule] for rule in both]), np.stack([then[rule] for rule in both]), error
        )
        fell, by_rule = bool(prompt_fell.any()), np.any(rule_fell, axis=-1)
    by_round = [
        _rule_fall(rule, bool(certain), now[rule], then[rule])
        for rule, certain in zip(both, by_rule, strict=True)
    ]
    one_sided = [rule for rule in (*now, *then) if rule is not None and rule not in both]
    return Fall(
        pairs=len(pairs),
        expected=min(budget, len(earlier)),
        alike=sum(_opening(new) == _opening(old) for new, old in pairs),
        fell=fell,
        rules=tuple(sorted(by_round, key=lambda rule: (not rule.fell, rule.now - rule.before))),
        not_compared=tuple(dict.fromkeys(one_sided)),
    )


def _rule_fall(rule: str | None, fell: bool, now: np.ndarray, then: np.ndarray) -> RuleFall:
    """The round in which a rule fell most; scores are [conversation, round]."""
    both = ~np.isnan(now - then)
    means = {
        at: (float(then[both[:, at], at].mean()), float(now[both[:, at], at].mean()))
        for at in np.flatnonzero(both.any(axis=0)).tolist()
    }
    most = min(means, key=lambda at: means[at][1] - means[at][0])
    return RuleFall(rule, fell, most + 1, *means[most])


def _opening(record: Conversation) -> tuple[int, str, str | None]:
    starter = record.turns[0].text if record.turns else None
    return record.conversation, record.user.system_prompt, starter
