"""How well rules are kept before and after a summary takes the place of a dialog's older rounds."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from holdfast.analysis.series import Series
from holdfast.analysis.statistics import SCORES, Estimate, estimate, paired_difference
from holdfast.records import Probe


@dataclass(frozen=True)
class BeforeAndAfter:
    """Scores before and after older rounds were summarised, over conversations with both."""

    before: Estimate
    after: Estimate
    difference: Estimate  # after minus before, paired by conversation


@dataclass(frozen=True)
class SummarisedRounds:
    """The scores around the summaries of a series.

    Attributes:
        overall: of all rules together.
        rules: by 'PROMPT: RULE', or 'PROMPT' if the rule has no id; in the order of their means
            after a summary, the lowest first.
    """

    overall: BeforeAndAfter
    rules: Mapping[str, BeforeAndAfter]


@dataclass
class _Means:
    """Mean scores, one entry per conversation with scores both before and after a summary."""

    before: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)

    def add(self, probes: Sequence[Probe]) -> None:
        """Adds the means of a conversation; ignores one without probes on both sides."""
        # `left_out` counts older rounds that the model did not see, as a summary took their place
        before = [probe.score for probe in probes if not probe.left_out]
        after = [probe.score for probe in probes if probe.left_out]
        if before and after:
            self.before.append(float(np.mean(before)))
            self.after.append(float(np.mean(after)))

    def estimated(self, error: float) -> BeforeAndAfter:
        before, after = np.array(self.before), np.array(self.after)
        return BeforeAndAfter(
            before=estimate(before, SCORES, error=error),
            after=estimate(after, SCORES, error=error),
            difference=paired_difference(after, before, error=error),
        )


def summarised_rounds_of(series: Series) -> SummarisedRounds | None:
    """The scores before and after older rounds were summarised; None if none were."""
    overall = _Means()
    rules = defaultdict[str, _Means](_Means)
    for record in series.records:
        if not any(summary.view == "agent" for summary in record.summaries):
            continue
        probes = record.stability_probes
        overall.add(probes)
        for rule, of_rule in _by_rule(probes).items():
            name = f"{record.agent.id}: {rule}" if rule else record.agent.id
            rules[name].add(of_rule)
    if not overall.before:
        return None
    estimated = {
        name: means.estimated(series.error) for name, means in rules.items() if means.before
    }
    worst_first = sorted(estimated.items(), key=lambda item: (item[1].after.mean or 0.0, item[0]))
    return SummarisedRounds(overall.estimated(series.error), dict(worst_first))


def _by_rule(probes: Iterable[Probe]) -> dict[str | None, list[Probe]]:
    grouped = defaultdict[str | None, list[Probe]](list)
    for probe in probes:
        grouped[probe.rule].append(probe)
    return grouped
