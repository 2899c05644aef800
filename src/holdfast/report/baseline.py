"""Which measures tell anything: what each scores with the system prompt, and without any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.drift.baseline import read_baseline
from holdfast.records import RunData
from holdfast.report.findings import plain, signed
from holdfast.report.scores import Series
from holdfast.report.statistics import Estimate, estimate, paired_difference
from holdfast.report.verdicts import CANNOT_TELL, tell, too_few

DISCRIMINATES, DOES_NOT = "discriminates", "does not discriminate"
EVERY = "all"
_Key = tuple[int, str | None, int]  # conversation, rule, probe


@dataclass(frozen=True)
class BaselineRow:
    """What a measure, or the measure of a case, scores at round 1 on the same questions.

    Args:
        name: of the measure or the case; "all" for all together.
        n: conversations.
        prompted: with the system prompt.
        unprompted: without any.
        difference: the first less the second, conversation by conversation.
        verdict: "discriminates" where the score without the prompt is clearly lower; else "does not
            discriminate", or "cannot tell" of too few conversations.
    """

    name: str
    n: int
    prompted: Estimate
    unprompted: Estimate
    difference: Estimate
    verdict: str


@dataclass(frozen=True)
class Baseline:
    """All measures together, each of them, and each case; the least discriminating first."""

    every: BaselineRow
    measures: tuple[BaselineRow, ...]
    cases: tuple[BaselineRow, ...]


def baseline_section(run: RunData, series: Series) -> Baseline | None:
    """The baseline of a run beside its first series; None where none was asked, or nothing is
    shared.

    Raises:
        RecordsError: the records of the baseline are damaged.
    """
    asked = read_baseline(run.folder)
    if asked is None:
        return None
    prompted = _prompted(series)
    groups: dict[str, dict[str, dict[int, list[tuple[float, float]]]]] = {"measure": {}, "case": {}}
    for record in asked.records:
        for probe in record["probes"]:
            score = prompted.get(_key(record, probe))
            if score is None:
                continue
            case = " · ".join(filter(None, (record["agent"]["id"], probe.get("rule"))))
            for names, name in ((groups["measure"], probe["measure"]), (groups["case"], case)):
                conversations = names.setdefault(name, {})
                conversations.setdefault(record["conversation"], []).append((score, probe["score"]))
    if not groups["measure"]:
        return None
    every: dict[int, list[tuple[float, float]]] = {}
    for conversations in groups["measure"].values():
        for number, pairs in conversations.items():
            every.setdefault(number, []).extend(pairs)
    measures, cases = (_rows(groups[name]) for name in ("measure", "case"))
    return Baseline(_row(EVERY, every), measures, cases)


def baseline_lines(baseline: Baseline) -> list[str]:
    """The same in a few lines."""
    every = baseline.every
    lines = [
        f"Without a system prompt the same probes score {plain(every.unprompted)} at round 1, with"
        f" it {plain(every.prompted)}: {signed(every.difference)},"
        f" {tell(every.difference).word('higher', 'lower')}."
    ]
    useless = [row for row in baseline.measures if row.verdict == DOES_NOT]
    lines += [
        f"  {row.name} {DOES_NOT}: {plain(row.prompted)} with the prompt, {plain(row.unprompted)} "
        f"without (n = {row.n})."
        for row in useless
    ]
    unclear = [
        f"{row.name} (n = {row.n})" for row in baseline.measures if row.verdict == CANNOT_TELL
    ]
    if unclear:
        lines.append(
            f"  Too few conversations to tell whether these discriminate: {', '.join(unclear)}."
        )
    return lines


def _prompted(series: Series) -> dict[_Key, float]:
    """The scores of round 1 in the run itself."""
    return {
        _key(record, probe): probe["score"]
        for record in series.records
        for probe in record["probes"]
        if probe["kind"] == "stability" and probe["round"] == 1
    }


def _key(record: Mapping[str, Any], probe: Mapping[str, Any]) -> _Key:
    return record["conversation"], probe.get("rule"), probe["probe"]


def _rows(groups: Mapping[str, dict[int, list[tuple[float, float]]]]) -> tuple[BaselineRow, ...]:
    rows = [_row(name, conversations) for name, conversations in groups.items()]
    return tuple(sorted(rows, key=lambda row: (row.difference.mean or 0.0, row.name)))


def _row(name: str, conversations: Mapping[int, list[tuple[float, float]]]) -> BaselineRow:
    """The unit is the conversation: its probes are averaged."""
    means = np.array([np.mean(pairs, axis=0) for _, pairs in sorted(conversations.items())])
    prompted, unprompted = means[:, 0], means[:, 1]
    difference = paired_difference(prompted, unprompted)
    enough = not too_few(difference)
    told = tell(difference).sign > 0
    verdict = DISCRIMINATES if told else DOES_NOT if enough else CANNOT_TELL
    return BaselineRow(
        name, len(means), estimate(prompted), estimate(unprompted), difference, verdict
    )
