"""Compares scores with and without a system prompt: does the prompt do anything?"""

import math
from dataclasses import dataclass, field
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


@dataclass
class _ScoreGroup:
    """The scores of a measure, a case, or everything.

    Attributes:
        pairs: by conversation, the scores of each question with and without the prompt.
        by_round: the scores with the prompt, in a matrix of [conversation, round].
    """

    pairs: dict[int, list[tuple[float, float]]] = field(default_factory=dict)
    by_round: list[MatrixEntry] = field(default_factory=list)


@dataclass
class _ScoreGroups:
    """All groups; a probe belongs to three of them: everything, its measure, and its rule."""

    overall: _ScoreGroup = field(default_factory=_ScoreGroup)
    measures: dict[str, _ScoreGroup] = field(default_factory=dict)
    cases: dict[_ProbedRule, _ScoreGroup] = field(default_factory=dict)

    def add_pair(self, record: Conversation, probe: Probe, prompted: float) -> None:
        """Adds a probe of the baseline, with the score of the same question under the prompt."""
        measure = self.measures.setdefault(probe.measure or "", _ScoreGroup())
        case = self.cases.setdefault(_rule_of(record, probe), _ScoreGroup())
        for group in (self.overall, measure, case):
            group.pairs.setdefault(record.conversation, []).append((prompted, probe.score))

    def add_rounds(self, series: Series) -> None:
        """Adds the scores of all rounds under the prompt to the groups that have pairs."""
        for row, record in enumerate(series.records):
            for probe in record.stability_probes:
                if probe.round > series.rounds:
                    continue
                measure = self.measures.get(probe.measure or "")
                case = self.cases.get(_rule_of(record, probe))
                for group in filter(None, (self.overall, measure, case)):
                    group.by_round.append(MatrixEntry(row, probe.round - 1, probe.score))


def baseline_beside(run: Run, series: Series) -> Baseline | None:
    """Compares a run's first series with the run's baseline, on the questions that both asked.

    None if there are none.
    """
    baseline_run = read_baseline(run.folder)
    if baseline_run is None:
        return None
    prompted = {
        _key(record, probe): probe.score
        for record in series.records
        for probe in record.stability_probes
        if probe.round == 1
    }
    groups = _ScoreGroups()
    for record in baseline_run.conversations:
        for probe in record.probes:
            if (score := prompted.get(_key(record, probe))) is not None:
                groups.add_pair(record, probe, score)
    if not groups.measures:
        return None
    groups.add_rounds(series)
    measures = [_row(name, group, series) for name, group in groups.measures.items()]
    cases = [
        _row(about.name, group, series).model_copy(update=about._asdict())
        for about, group in groups.cases.items()
    ]
    return Baseline(
        all=_row("all", groups.overall, series),
        measures=tuple(sorted(measures, key=_least_discriminating)),
        cases=tuple(sorted(cases, key=_least_discriminating)),
        by_rule=any(probe.rule for record in baseline_run.conversations for probe in record.probes),
        default=baseline_run.manifest.default_system_prompt,
    )


def _rule_of(record: Conversation, probe: Probe) -> _ProbedRule:
    return _ProbedRule(record.agent.id, probe.rule)


def _key(record: Conversation, probe: Probe) -> tuple[int, str | None, int]:
    return record.conversation, probe.rule, probe.probe


def _least_discriminating(row: BaselineScores) -> tuple[float, str]:
    """Returns a key that sorts the least discriminating row first."""
    return row.difference.mean or 0.0, row.name


def _row(name: str, group: _ScoreGroup, series: Series) -> BaselineScores:
    """Compares the scores of a group. The unit is the conversation: its probes are averaged."""
    means = np.array([np.mean(scores, axis=0) for _, scores in sorted(group.pairs.items())])
    prompted, unprompted = means.T
    by_round = matrix_of(group.by_round, (len(series.records), series.rounds))
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
