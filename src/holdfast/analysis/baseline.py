"""Scores of each measure with and without a system prompt: does the prompt do anything?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.analysis.estimates import KEPT, is_low
from holdfast.analysis.series import Series
from holdfast.analysis.statistics import Estimate, estimate, paired_difference
from holdfast.analysis.verdicts import CANNOT_TELL, SUPPORTED, bounds, tell, too_few, within
from holdfast.drift.baseline import read_baseline
from holdfast.records import RunData

DISCRIMINATES, UNINFORMATIVE = "discriminates", "uninformative"
NEVER_FOLLOWED = "never followed"
_HIGH = 0.75  # an unprompted score that is certainly above this leaves no room for the prompt
_SAME = 0.1  # scores that are certainly this close count as the same
EVERY = "all"
_OF = " · "  # between a case and its rule
_Pairs = dict[str, dict[int, list[tuple[float, float]]]]  # by name and conversation


@dataclass(frozen=True)
class BaselineRow:
    """The scores of a measure, a case, or everything ("all") in round 1 on the same questions:
    with the system prompt, without any, and their difference, paired by conversation.
    """

    name: str
    n: int
    prompted: Estimate
    unprompted: Estimate
    difference: Estimate
    verdict: str  # one of the constants above, or "cannot tell"


@dataclass(frozen=True)
class Baseline:
    """All measures together, each measure, and each case; least discriminating first."""

    every: BaselineRow
    measures: tuple[BaselineRow, ...]
    cases: tuple[BaselineRow, ...]
    by_rule: bool  # whether cases have several rules; each rule then has a row instead of its case
    default: dict[str, Any] | None = None  # the system prompt that the template inserts

    def is_uninformative(self, case: str | None, rule: str) -> bool:
        """Whether a rule scores as well without its prompt; for case None, under every prompt."""
        name = f"{_OF}{rule}" if case is None else f"{case}{_OF}{rule}"
        same = str.endswith if case is None else str.__eq__
        rows = [row for row in self.cases if same(row.name, name)]
        return bool(rows) and all(row.verdict == UNINFORMATIVE for row in rows)


def baseline_beside(run: RunData, series: Series) -> Baseline | None:
    """Compares a run's first series with its baseline on shared questions; None without any."""
    baseline_run = read_baseline(run.folder)
    if baseline_run is None:
        return None
    prompted = {
        _key(record, probe): float(probe["score"])
        for record in series.records
        for probe in record["probes"]
        if probe["kind"] == "stability" and probe["round"] == 1
    }
    every: _Pairs = {EVERY: {}}
    measures: _Pairs = {}
    cases: _Pairs = {}
    by_rule = False
    for record in baseline_run.records:
        for probe in record["probes"]:
            by_rule |= bool(probe.get("rule"))
            if (score := prompted.get(_key(record, probe))) is None:
                continue
            case = _OF.join(filter(None, (record["agent"]["id"], probe.get("rule"))))
            groups = (every, EVERY), (measures, probe["measure"]), (cases, case)
            for pairs, name in groups:
                scores = pairs.setdefault(name, {}).setdefault(record["conversation"], [])
                scores.append((score, probe["score"]))
    if not measures:
        return None
    default = baseline_run.manifest.get("default_system_prompt")
    return Baseline(_rows(every)[0], _rows(measures), _rows(cases), by_rule, default)


def _key(record: Mapping[str, Any], probe: Mapping[str, Any]) -> tuple[int, str | None, int]:
    return record["conversation"], probe.get("rule"), probe["probe"]


def _rows(pairs: _Pairs) -> tuple[BaselineRow, ...]:
    rows = [_row(name, by_conversation) for name, by_conversation in pairs.items()]
    return tuple(sorted(rows, key=lambda row: (row.difference.mean or 0.0, row.name)))


def _row(name: str, by_conversation: Mapping[int, list[tuple[float, float]]]) -> BaselineRow:
    """The unit is the conversation: its probes are averaged."""
    means = np.array([np.mean(scores, axis=0) for _, scores in sorted(by_conversation.items())])
    prompted, unprompted = means.T
    return BaselineRow(
        name,
        len(means),
        estimate(prompted),
        estimate(unprompted),
        paired_difference(prompted, unprompted),
        _verdict(prompted, unprompted),
    )


def _verdict(prompted: np.ndarray, unprompted: np.ndarray) -> str:
    """The verdict on scores per conversation, [n], with and without the prompt."""
    # never followed: low even with the prompt, or no conversation kept to it. uninformative: no
    # higher with the prompt, and either high without it or the same within `_SAME`
    difference, without = paired_difference(prompted, unprompted), estimate(unprompted)
    if too_few(difference):
        return CANNOT_TELL
    if is_low(estimate(prompted)) or not (prompted >= KEPT).any():
        return NEVER_FOLLOWED
    if tell(difference).sign > 0:
        return DISCRIMINATES
    same = within(difference, -_SAME, _SAME, -1, 1) == SUPPORTED
    return UNINFORMATIVE if same or bounds(without, 0, 1)[0] > _HIGH else CANNOT_TELL
