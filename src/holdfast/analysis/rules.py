"""Rule by rule, where a prompt gives several: how well each is followed, and when it is lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.analysis.comparisons import baseline_of, paired_rounds
from holdfast.analysis.series import Series, judge_of, probe_means, same_pairs
from holdfast.analysis.statistics import (
    NOTHING,
    Estimate,
    bounds_of,
    cell_means,
    change,
    estimate_columns,
    resampled_means,
)
from holdfast.analysis.verdicts import MIN_SAMPLES, bounds, tell, too_few

KEPT = 0.5  # the least score of a reply that keeps to a rule
LOW = 0.2  # a rule that certainly scores less is as good as never followed
PROMPTS_APART = 6  # the rules of more prompts are told by their ids alone, over all prompts


@dataclass(frozen=True)
class RuleRow:
    """One rule of one system prompt, or of all that have one of this id, in one series.

    Attributes:
        name: the rule's id; behind that of its prompt where two to `PROMPTS_APART` prompts have
            rules.
        case, rule: the ids of the prompt (None: of any) and of the rule.
        series: the series.
        n: conversations in which the agent had such a prompt.
        points: stability by round.
        changes: paired changes from round 1, by round; the first is 0.
        broken: how many conversations first scored below `KEPT` in each round.
        kept: how many never did.
        kept_once: how many scored `KEPT` or more in any round.
        judge: the model that scores it; "" where the score is a function of the text.
    """

    name: str
    case: str | None
    rule: str
    series: Series
    n: int
    points: tuple[Estimate, ...]
    changes: tuple[Estimate, ...]
    broken: tuple[int, ...]
    kept: int
    kept_once: int
    judge: str

    @property
    def never_followed(self) -> bool:
        """Whether no conversation kept it in any round, or it is certainly low in every round;
        False where there are too few conversations to say.
        """
        return self.n >= MIN_SAMPLES and (not self.kept_once or all(map(is_low, self.points)))

    @property
    def lower_in(self) -> tuple[int, ...]:
        """The rounds in which stability is told to be below that of round 1."""
        return tuple(i for i, moved in enumerate(self.changes, 1) if tell(moved).sign < 0)

    @property
    def lower_from(self) -> int | None:
        """The first of `lower_in` behind which the mean never returns to that of round 1; None
        where the last round cannot be told to be lower.
        """
        if len(self.changes) not in self.lower_in:
            return None
        means = [moved.mean for moved in self.changes]
        back = (i for i, mean in enumerate(means, 1) if mean is not None and mean >= 0)
        returned = max(back, default=0)
        return min(number for number in self.lower_in if number > returned)


@dataclass(frozen=True)
class RuleComparison:
    """A rule in one series against its baseline, on the conversations that both have.

    Attributes:
        row: the rule in the series.
        against: the same rule in the baseline.
        last, mean: the paired differences, at the last round and over all rounds.
    """

    row: RuleRow
    against: RuleRow
    last: Estimate
    mean: Estimate


def is_low(score: Estimate) -> bool:
    """Whether the whole 95 % interval, exact where all values are alike, is below `LOW`."""
    return not too_few(score) and bounds(score, 0, 1)[1] < LOW


def rule_rows(series: Sequence[Series]) -> list[RuleRow]:
    """A row per rule and series, in the order of asking; empty where prompts have no rules."""
    records = [record for item in series for record in item.records]
    rules: list[tuple[str | None, str]] = [rule for record in records for rule in _rules(record)]
    prompts = {case for case, _ in rules}
    if len(prompts) > PROMPTS_APART:
        rules = [(None, rule) for _, rule in rules]
    rows = []
    for case, rule in dict.fromkeys(rules):
        for item in series:
            values = _scores(item, case, rule)
            if not np.isnan(values).all():
                apart = case is not None and len(prompts) > 1
                judge = judge_of(_probed(item, case, rule), rule)
                name = f"{case}, {rule}" if apart else rule
                rows.append(_row(name, case, rule, item, values, judge))
    return rows


def compare_rules(series: Sequence[Series], rows: Sequence[RuleRow]) -> list[RuleComparison]:
    """Each row against that of its rule in the baseline of its series, in the order of the rows;
    none of the baseline itself, or where no conversations are shared.
    """
    by_rule = {(row.series, row.case, row.rule): row for row in rows}
    compared = []
    for row in rows:
        baseline = baseline_of(series, row.series)
        against = by_rule.get((baseline, row.case, row.rule)) if baseline else None
        pair = same_pairs(row.series, baseline) if baseline and against else None
        if against and pair:
            ours, theirs = (_paired_scores(item, row.case, row.rule) for item in pair)
            compared.append(RuleComparison(row, against, *paired_rounds(ours, theirs)))
    return compared


def first_broken(values: np.ndarray) -> list[int]:
    """Of [conversation, round], the first round, from 1, below `KEPT`; 0 where there is none."""
    with np.errstate(invalid="ignore"):
        below = values < KEPT
    return [int(row.argmax()) + 1 if row.any() else 0 for row in below]


def _row(
    name: str, case: str | None, rule: str, item: Series, values: np.ndarray, judge: str
) -> RuleRow:
    broken = first_broken(values)
    return RuleRow(
        name=name,
        case=case,
        rule=rule,
        series=item,
        n=len(values),
        points=tuple(estimate_columns(values)),
        changes=tuple(change(values, 0, last) for last in range(item.rounds)),
        broken=tuple(broken.count(number) for number in range(1, item.rounds + 1)),
        kept=broken.count(0),
        kept_once=int((values >= KEPT).any(axis=1).sum()),  # never true of NaN
        judge=judge,
    )


def _rules(record: dict[str, Any]) -> list[tuple[str | None, str]]:
    """The (case, rule) pairs that the agent of a record was probed for."""
    stability = (probe for probe in record["probes"] if probe["kind"] == "stability")
    rules = (probe["rule"] for probe in stability if probe.get("rule"))
    return list(dict.fromkeys((record["agent"]["id"], rule) for rule in rules))


def _probed(item: Series, case: str | None, rule: str) -> list[dict[str, Any]]:
    """The conversations in which the agent was probed for the rule of a case; None: of any."""
    return [
        record
        for record in item.records
        if any(id == rule and case in (None, agent) for agent, id in _rules(record))
    ]


def _scores(item: Series, case: str | None, rule: str) -> np.ndarray:
    """[conversation, round] of these conversations."""
    return _scores_of(_probed(item, case, rule), item.rounds, rule)


def _paired_scores(item: Series, case: str | None, rule: str) -> np.ndarray:
    """[conversation, round] of all conversations of a series; NaN where it was not asked."""
    values = _scores_of(item.records, item.rounds, rule)
    others = [case not in (None, record["agent"]["id"]) for record in item.records]
    values[np.array(others)] = np.nan
    return values


def _scores_of(records: Sequence[dict[str, Any]], rounds: int, rule: str) -> np.ndarray:
    def counts(probe: dict[str, Any]) -> bool:
        asks = probe["kind"] == "stability" and probe.get("rule") == rule
        return asks and probe["round"] <= rounds  # of a series that was cut short

    return probe_means(records, rounds, counts)


@dataclass(frozen=True)
class Accuracy:
    """The accuracies of a series.

    Attributes:
        prompt_level: by round, over conversations: how many of the replies follow every
            instruction of their prompt.
        instruction_level: by round: how many of all instructions are followed; its interval is over
            conversations too, and there is no standard deviation.
    """

    prompt_level: tuple[Estimate, ...]
    instruction_level: tuple[Estimate, ...]


def accuracy_of(series: Series) -> Accuracy | None:
    """Both accuracies by round; None where a prompt's rules are scored on replies of their own, or
    no prompt gives several.
    """
    stability = [probe for record in series.records for probe in _of_agent(record["probes"])]
    if not any("reply_of" in probe for probe in stability):
        return None
    rows = [_replies(record) for record in series.records]
    if any(row is None for row in rows):
        return None
    replies = [
        (index, number - 1, kept) for index, row in enumerate(rows) for number, kept in row or ()
    ]

    def table(count: Callable[[list[bool]], float]) -> np.ndarray:
        """[conversation, round], the mean over its replies."""
        cells = ((index, column, float(count(kept))) for index, column, kept in replies)
        return cell_means(cells, (len(rows), series.rounds))

    prompt_level = estimate_columns(table(all))
    return Accuracy(tuple(prompt_level), tuple(_shares(table(sum), table(len))))


def _replies(record: dict[str, Any]) -> list[tuple[int, list[bool]]] | None:
    """The round of every reply that was scored by all rules of its prompt, and which of them it
    keeps; None where a rule has a reply of its own.
    """
    probes = _of_agent(record["probes"])
    rules = {probe.get("rule") for probe in (*probes, *_of_agent(record.get("unanswered", ())))}
    replies: dict[tuple[int, int, str | None], list[bool]] = {}
    for probe in probes:
        key = probe["round"], probe["probe"], probe.get("reply_of", probe.get("rule"))
        replies.setdefault(key, []).append(probe["score"] >= KEPT)
    if len({rule for _, _, rule in replies}) > 1:
        return None
    return [(number, kept) for (number, *_), kept in replies.items() if len(kept) == len(rules)]


def _of_agent(probes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [probe for probe in probes if probe["kind"] == "stability"]


def _shares(followed: np.ndarray, given: np.ndarray) -> list[Estimate]:
    """By round, all that was followed among all that was asked; [conversation, round]."""
    resampled = resampled_means(followed) / resampled_means(given)
    shares = []
    for column in range(given.shape[1]):
        there = ~np.isnan(given[:, column])
        count = int(there.sum())
        if not count:
            shares.append(NOTHING)
            continue
        share = float(followed[there, column].sum() / given[there, column].sum())
        low, high = bounds_of(resampled[:, column]) if count > 1 else (None, None)
        shares.append(Estimate(count, share, None, low, high))
    return shares
