"""Compares how well rules are kept before and after a summary replaces a dialog's older rounds.

For example:

    a mean score of 0.9 before the summary and of 0.6 after it, in every conversation
    -> ScoresAroundSummary(rule=None, before=0.9, after=0.6, difference=-0.3, ...)
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from holdfast.analysis.series import ProbeId, Series
from holdfast.analysis.statistics import SCORES, estimate, paired_difference, shared_means
from holdfast.analysis.verdicts import verdict_on
from holdfast.records import Probe
from holdfast.records.drift_summary import ScoresAroundSummary


@dataclass
class _Means:
    """Mean scores, one entry per conversation, over its probes with scores both before and after
    a summary.
    """

    before: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)

    def add(self, probes: Sequence[Probe]) -> None:
        """Adds the means of a conversation that has a probe on both sides of the summary."""
        # `left_out` counts older rounds that the model did not see because a summary replaced them
        before = _mean_by_probe([probe for probe in probes if not probe.left_out])
        after = _mean_by_probe([probe for probe in probes if probe.left_out])
        if not before.keys() & after.keys():
            return
        mean_before, mean_after = shared_means(before, after)
        self.before.append(float(mean_before[0]))
        self.after.append(float(mean_after[0]))


def context_summary_effect(series: Series) -> tuple[ScoresAroundSummary, ...]:
    """Compares all rules together, and then each rule, the one with the lowest mean after a summary
    first; () if no rounds were summarised.

    A rule is named 'PROMPT: RULE', or 'PROMPT' if it has no id.
    """
    overall = _Means()
    rules = defaultdict[str, _Means](_Means)
    for record in series.records:
        if not any(summary.view == "agent" for summary in record.summaries):
            continue
        probes = record.stability_probes
        overall.add(probes)
        for rule, probes_of_rule in _group_by_rule(probes).items():
            name = f"{record.agent.id}: {rule}" if rule else record.agent.id
            rules[name].add(probes_of_rule)
    if not overall.before:
        return ()
    rows = [_row(name, means, series.error) for name, means in rules.items() if means.before]
    rows.sort(key=lambda row: (row.after.mean or 0.0, row.rule or ""))
    return (_row(None, overall, series.error), *rows)


def _row(rule: str | None, means: _Means, error: float) -> ScoresAroundSummary:
    before = np.array(means.before)
    after = np.array(means.after)
    return ScoresAroundSummary(
        rule=rule,
        before=estimate(before, SCORES, error=error),
        after=estimate(after, SCORES, error=error),
        difference=verdict_on(paired_difference(after, before, error=error)),
    )


def _mean_by_probe(probes: Sequence[Probe]) -> dict[ProbeId, np.ndarray]:
    """Returns the mean score of each question about a rule."""
    scores = defaultdict[ProbeId, list[float]](list)
    for probe in probes:
        scores[ProbeId(probe.rule, probe.probe)].append(probe.score)
    return {probe: np.mean(values, keepdims=True) for probe, values in scores.items()}


def _group_by_rule(probes: Iterable[Probe]) -> dict[str | None, list[Probe]]:
    probes_by_rule = defaultdict[str | None, list[Probe]](list)
    for probe in probes:
        probes_by_rule[probe.rule].append(probe)
    return probes_by_rule
