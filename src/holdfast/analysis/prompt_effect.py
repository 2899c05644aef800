"""Compares scores with and without a system prompt: does the prompt do anything?"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from holdfast.analysis.estimate_rows import is_never_followed
from holdfast.analysis.series import Series
from holdfast.analysis.statistics import (
    SCORES,
    Estimate,
    MatrixEntry,
    estimate,
    matrix_of,
    paired_difference,
)
from holdfast.analysis.verdicts import (
    CANNOT_TELL,
    SUPPORTED,
    too_few,
    verdict_on,
    within,
)
from holdfast.drift.asking_baseline import read_baseline
from holdfast.records import Conversation, Probe, Run
from holdfast.records.drift_summary import Baseline, BaselineScores

DISCRIMINATES = "discriminates"
UNINFORMATIVE = "uninformative"
MADE_WORSE = "made worse"  # clearly lower with the prompt, by more than `_SAME_WITHIN`
NEVER_FOLLOWED = "never followed"  # in no round, as `estimate_rows.is_never_followed` defines it
# If the score without the prompt is certainly above this, the prompt cannot add to it.
_HIGH_UNPROMPTED = 0.75
_SAME_WITHIN = 0.1  # scores that are certainly this close count as the same


class _ProbedRule(NamedTuple):
    """The rule that a probe asks about, in its prompt."""

    case: str
    rule: str | None  # None if the case has only one

    @property
    def name(self) -> str:
        """'baker · signs'; only the case if it has one rule."""
        return self.case if self.rule is None else f"{self.case} · {self.rule}"


class _Pair(NamedTuple):
    """The scores of one question in one conversation, with and without the system prompt."""

    conversation: int
    rule: _ProbedRule
    measure: str
    prompted: float
    unprompted: float


def baseline_beside(run: Run, series: Series) -> Baseline | None:
    """Compares a run's first series with the run's baseline, on the questions that both asked.

    None if there are none.
    """
    baseline_run = read_baseline(run.folder)
    if baseline_run is None:
        return None
    unprompted = baseline_run.conversations
    pairs = _pair_scores(series, unprompted)
    if not pairs:
        return None
    round_scores = _scores_by_rule(series)
    by_measure: dict[str, list[_Pair]] = defaultdict(list)
    by_rule: dict[_ProbedRule, list[_Pair]] = defaultdict(list)
    for pair in pairs:
        by_measure[pair.measure].append(pair)
        by_rule[pair.rule].append(pair)
    measures = [
        _compare_pairs(name, group, round_scores, series) for name, group in by_measure.items()
    ]
    cases = []
    for rule, group in by_rule.items():
        row = _compare_pairs(rule.name, group, round_scores, series)
        cases.append(row.model_copy(update={"case": rule.case, "rule": rule.rule}))
    return Baseline(
        all=_compare_pairs("all", pairs, round_scores, series),
        measures=tuple(sorted(measures, key=_least_discriminating)),
        cases=tuple(sorted(cases, key=_least_discriminating)),
        by_rule=any(probe.rule for record in unprompted for probe in record.probes),
        default=baseline_run.manifest.default_system_prompt,
    )


def _pair_scores(series: Series, unprompted: Sequence[Conversation]) -> list[_Pair]:
    """Pairs each probe of the baseline with the same question in round 1 under the prompt."""

    def question(record: Conversation, probe: Probe) -> tuple[int, str | None, int]:
        return record.conversation, probe.rule, probe.probe

    prompted = {
        question(record, probe): probe.score
        for record in series.records
        for probe in record.stability_probes
        if probe.round == 1
    }
    return [
        _Pair(
            conversation=record.conversation,
            rule=_rule_of(record, probe),
            measure=probe.measure or "",
            prompted=prompted[question(record, probe)],
            unprompted=probe.score,
        )
        for record in unprompted
        for probe in record.probes
        if question(record, probe) in prompted
    ]


def _scores_by_rule(series: Series) -> dict[_ProbedRule, list[MatrixEntry]]:
    """The scores of each rule under the prompt, as entries of a matrix [conversation, round]."""
    scores: dict[_ProbedRule, list[MatrixEntry]] = defaultdict(list)
    for row, record in enumerate(series.records):
        for probe in record.stability_probes:
            if probe.round <= series.rounds:
                entry = MatrixEntry(row, probe.round - 1, probe.score)
                scores[_rule_of(record, probe)].append(entry)
    return scores


def _rule_of(record: Conversation, probe: Probe) -> _ProbedRule:
    return _ProbedRule(record.agent.id, probe.rule)


def _compare_pairs(
    name: str,
    pairs: Sequence[_Pair],
    round_scores: Mapping[_ProbedRule, Sequence[MatrixEntry]],
    series: Series,
) -> BaselineScores:
    """Compares the scores of pairs. The unit is the conversation: its probes are averaged.

    Args:
        name: of the measure or the rule that all pairs have in common, or "all".
        round_scores: of all rules.
    """
    scores: dict[int, list[tuple[float, float]]] = defaultdict(list)  # by conversation
    for pair in pairs:
        scores[pair.conversation].append((pair.prompted, pair.unprompted))
    means = np.array([np.mean(scores[conversation], axis=0) for conversation in sorted(scores)])
    prompted, unprompted = means.T
    rules = dict.fromkeys(pair.rule for pair in pairs)
    entries = [entry for rule in rules for entry in round_scores.get(rule, ())]
    by_round = matrix_of(entries, (len(series.records), series.rounds))
    difference = paired_difference(prompted, unprompted, error=series.error)
    unprompted_mean = estimate(unprompted, SCORES, error=series.error)
    return BaselineScores(
        name=name,
        n=len(means),
        prompted=estimate(prompted, SCORES, error=series.error),
        unprompted=unprompted_mean,
        difference=verdict_on(difference),
        verdict=_verdict(
            difference,
            unprompted_mean,
            never_followed=is_never_followed(by_round, series.error),
        ),
    )


def _least_discriminating(row: BaselineScores) -> tuple[float, str]:
    """Returns a key that sorts the least discriminating row first."""
    return row.difference.mean or 0.0, row.name


def _verdict(difference: Estimate, unprompted: Estimate, *, never_followed: bool) -> str:
    """Returns the first verdict that applies.

    Args:
        difference: the prompted minus the unprompted scores.
        unprompted: the mean score without the prompt.
        never_followed: whether the rules are never followed with the prompt.
    """
    if too_few(difference):
        return CANNOT_TELL
    sign = verdict_on(difference).sign
    if sign < 0 and (difference.mean or 0.0) < -_SAME_WITHIN:
        return MADE_WORSE
    if never_followed:
        return NEVER_FOLLOWED
    if sign > 0:
        return DISCRIMINATES
    is_same = within(difference, -_SAME_WITHIN, _SAME_WITHIN) == SUPPORTED
    is_high = within(unprompted, _HIGH_UNPROMPTED, math.inf) == SUPPORTED
    return UNINFORMATIVE if is_same or is_high else CANNOT_TELL
