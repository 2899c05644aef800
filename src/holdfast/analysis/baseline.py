"""Scores of each measure with and without a system prompt: does the prompt do anything?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from holdfast.analysis.rules import KEPT, is_low
from holdfast.analysis.series import Series
from holdfast.analysis.statistics import Estimate, estimate, paired_difference
from holdfast.analysis.verdicts import CANNOT_TELL, SUPPORTED, bounds, tell, too_few, within
from holdfast.drift.baseline import read_baseline
from holdfast.records import RunData

DISCRIMINATES, UNINFORMATIVE = "discriminates", "uninformative"
NEVER_FOLLOWED = "never followed"
_HIGH = 0.75  # a score without the prompt that is certainly above leaves no room for the prompt
_SAME = 0.1  # scores that certainly lie this close are the same
EVERY = "all"
_OF = " · "  # between a case and its rule
_Key = tuple[int, str | None, int]  # conversation, rule, probe


@dataclass(frozen=True)
class BaselineRow:
    """The scores of a measure, or of the measure of a case, at round 1 on the same questions.

    Args:
        name: of the measure or the case; "all" for all together.
        n: conversations.
        prompted: with the system prompt.
        unprompted: without any.
        difference: the first less the second, conversation by conversation.
        verdict: "never followed", "discriminates", "uninformative" or "cannot tell" (`_verdict`).
    """

    name: str
    n: int
    prompted: Estimate
    unprompted: Estimate
    difference: Estimate
    verdict: str


@dataclass(frozen=True)
class Baseline:
    """All measures together, each of them, and each case; the least discriminating first.

    Args:
        by_rule: whether cases have several rules, each of which has a row in place of its case.
        default: the system prompt that the template inserts into a chat without one, as the
            manifest has it; None where it inserts none.
    """

    every: BaselineRow
    measures: tuple[BaselineRow, ...]
    cases: tuple[BaselineRow, ...]
    by_rule: bool
    default: dict[str, Any] | None = None

    def is_uninformative(self, case: str | None, rule: str) -> bool:
        """Whether a rule scores as well without its prompt; of any prompt (None): in all."""
        name = f"{_OF}{rule}" if case is None else f"{case}{_OF}{rule}"
        same = str.endswith if case is None else str.__eq__
        rows = [row for row in self.cases if same(row.name, name)]
        return bool(rows) and all(row.verdict == UNINFORMATIVE for row in rows)


class _Pair(NamedTuple):
    """One question asked twice: its scores with the system prompt and without."""

    conversation: int
    measure: str
    case: str
    prompted: float
    unprompted: float


def baseline_beside(run: RunData, series: Series) -> Baseline | None:
    """The baseline of a run beside its first series; None where none was asked, or nothing is
    shared.

    Raises:
        RecordsError: the records of the baseline are damaged.
    """
    baseline_run = read_baseline(run.folder)
    pairs = _pairs(baseline_run, series) if baseline_run else []
    if not baseline_run or not pairs:
        return None
    return Baseline(
        _row(EVERY, pairs),
        _rows((pair.measure, pair) for pair in pairs),
        _rows((pair.case, pair) for pair in pairs),
        any(probe.get("rule") for record in baseline_run.records for probe in record["probes"]),
        baseline_run.manifest.get("default_system_prompt"),
    )


def _pairs(baseline_run: RunData, series: Series) -> list[_Pair]:
    """Every question of the baseline that the run asked too."""
    prompted = _scores_of_round_1(series)
    pairs = []
    for record in baseline_run.records:
        for probe in record["probes"]:
            if (score := prompted.get(_key(record, probe))) is not None:
                case = _OF.join(filter(None, (record["agent"]["id"], probe.get("rule"))))
                number = record["conversation"]
                pairs.append(_Pair(number, probe["measure"], case, score, probe["score"]))
    return pairs


def _scores_of_round_1(series: Series) -> dict[_Key, float]:
    scores = {}
    for record in series.records:
        for probe in record["probes"]:
            if probe["kind"] == "stability" and probe["round"] == 1:
                scores[_key(record, probe)] = float(probe["score"])
    return scores


def _key(record: Mapping[str, Any], probe: Mapping[str, Any]) -> _Key:
    return record["conversation"], probe.get("rule"), probe["probe"]


def _rows(named: Iterable[tuple[str, _Pair]]) -> tuple[BaselineRow, ...]:
    groups: dict[str, list[_Pair]] = {}
    for name, pair in named:
        groups.setdefault(name, []).append(pair)
    rows = [_row(name, pairs) for name, pairs in groups.items()]
    return tuple(sorted(rows, key=lambda row: (row.difference.mean or 0.0, row.name)))


def _row(name: str, pairs: Iterable[_Pair]) -> BaselineRow:
    """The unit is the conversation: its probes are averaged."""
    by_conversation: dict[int, list[tuple[float, float]]] = {}
    for pair in pairs:
        scores = by_conversation.setdefault(pair.conversation, [])
        scores.append((pair.prompted, pair.unprompted))
    means = np.array([np.mean(scores, axis=0) for _, scores in sorted(by_conversation.items())])
    difference = paired_difference(means[:, 0], means[:, 1])
    return BaselineRow(
        name=name,
        n=len(means),
        prompted=estimate(means[:, 0]),
        unprompted=estimate(means[:, 1]),
        difference=difference,
        verdict=_verdict(means[:, 0], means[:, 1]),
    )


def _verdict(prompted: np.ndarray, unprompted: np.ndarray) -> str:
    """The verdict on the scores of each conversation, [n], with and without the prompt.

    "never followed": low even with the prompt (`rules.is_low`), or no conversation kept to it.
    "discriminates": clearly higher with the prompt. "uninformative": not so, and either high
    without it (the whole 95 % interval above `_HIGH`) or the same (the whole interval of the
    difference within `_SAME`). Anything else cannot be told.
    """
    difference, without = paired_difference(prompted, unprompted), estimate(unprompted)
    if too_few(difference):
        return CANNOT_TELL
    if is_low(estimate(prompted)) or not (prompted >= KEPT).any():
        return NEVER_FOLLOWED
    if tell(difference).sign > 0:
        return DISCRIMINATES
    same = within(difference, -_SAME, _SAME, -1, 1) == SUPPORTED
    return UNINFORMATIVE if same or bounds(without, 0, 1)[0] > _HIGH else CANNOT_TELL
