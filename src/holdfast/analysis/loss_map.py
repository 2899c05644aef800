"""Which kinds of rules a model keeps over a conversation, and which it loses.

The probes of a drift run are grouped in four ways: by what their rule is about, by how it binds, by
how many rules the prompt has, and by what the user's last message put on the rules. The unit is the
conversation, which counts with the mean over its probes in the group.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import get_args

import numpy as np

from holdfast.analysis.outcome import MATTERS
from holdfast.analysis.series import Series, probe_means, read_series
from holdfast.analysis.statistics import DIFFERENCES, SCORES, Estimate, estimate, row_means
from holdfast.analysis.verdicts import CANNOT_TELL, SUPPORTED, verdict_on, within
from holdfast.drift.rule_kinds import Polarity
from holdfast.errors import UsageError
from holdfast.records import Conversation, Probe, Run
from holdfast.records.identity import ConversationsIdentity

ORDINARY = "none"  # the pressure of an ordinary message
_LATE = 0.25  # the share of a conversation that counts as its end
_SIZES = ((1, 1, "1 rule"), (2, 3, "2 or 3 rules"), (4, 5, "4 or 5 rules"), (6, 99, "6 and more"))


class Grouping(StrEnum):
    """How probes are grouped."""

    ALL = "all rules"
    KIND = "kind"
    POLARITY = "polarity"
    SIZE = "rules in the prompt"
    PRESSURE = "last message"


@dataclass(frozen=True)
class LossRow:
    """How a group of rules fares under one method.

    Attributes:
        grouping, group: such as "kind" and "closing".
        rules: how many different rules of prompts are in it.
        first: the mean score in round 1.
        last: the mean score in the last quarter of the rounds.
        change: last minus first, paired by conversation. Of a pressure: the scores of probes after
            such a message, minus those after an ordinary one in the same conversation.
    """

    method: str
    grouping: Grouping
    group: str
    rules: int
    first: Estimate
    last: Estimate
    change: Estimate

    @property
    def verdict(self) -> str:
        """falls, rises, holds (within 10 points, certainly), or cannot tell."""
        if within(self.change, -MATTERS, MATTERS) == SUPPORTED:
            return "holds"
        return verdict_on(self.change).word("rises", "falls")

    @property
    def is_decided(self) -> bool:
        return self.verdict != CANNOT_TELL


def loss_map(run: Run) -> list[LossRow]:
    """The rows of a drift run, method by method.

    Raises:
        UsageError: its suite gives no kinds of rules.
    """
    in_place = run.identity_as(ConversationsIdentity).settings.probe_at == "in-place"
    rows = [row for series in read_series(run) for row in _rows(series, in_place)]
    if not any(row.grouping is Grouping.KIND for row in rows):
        raise UsageError(
            f"The rules in {run.folder} have no kinds; use the suite bots, or give the rules of"
            " your suite a `kind` and a `polarity`.",
            option="run",
            value=str(run.folder),
        )
    return rows


def _rows(series: Series, in_place: bool) -> Iterable[LossRow]:
    probes = [probe for record in series.records for probe in _stability(record)]
    yield _row(series, Grouping.ALL, "", _any)
    for kind in sorted({probe.rule_kind for probe in probes if probe.rule_kind}):
        yield _row(series, Grouping.KIND, kind, partial(_is_of_kind, kind))
    for polarity in get_args(Polarity):
        if any(probe.polarity == polarity for probe in probes):
            yield _row(series, Grouping.POLARITY, polarity, partial(_has_polarity, polarity))
    sizes = np.array([len({probe.rule for probe in _stability(r)}) for r in series.records])
    for least, most, name in _SIZES:
        members = (least <= sizes) & (sizes <= most)
        if members.any():
            yield _row(series.rows(members), Grouping.SIZE, name, _any)
    yield from _pressures(series, in_place)


def _any(probe: Probe) -> bool:
    return True


def _is_of_kind(kind: str, probe: Probe) -> bool:
    return probe.rule_kind == kind


def _has_polarity(polarity: str, probe: Probe) -> bool:
    return probe.polarity == polarity


def _stability(record: Conversation) -> list[Probe]:
    return [probe for probe in record.probes if probe.kind == "stability"]


def _row(
    series: Series, grouping: Grouping, group: str, belongs: Callable[[Probe], bool]
) -> LossRow:
    def counts(probe: Probe) -> bool:
        return probe.kind == "stability" and belongs(probe)

    values = probe_means(series.records, series.rounds, counts)  # [conversation, round]
    late = max(1, math.ceil(_LATE * series.rounds))
    first, last = values[:, 0], row_means(values[:, -late:])
    rules = {(r.agent.id, p.rule) for r in series.records for p in r.probes if counts(p)}
    return LossRow(
        method=series.method,
        grouping=grouping,
        group=group,
        rules=len(rules),
        first=estimate(first, SCORES, error=series.error),
        last=estimate(last, SCORES, error=series.error),
        change=estimate(last - first, DIFFERENCES, error=series.error),
    )


def _pressures(series: Series, in_place: bool) -> Iterable[LossRow]:
    """How probes fare right after each kind of message of the user."""
    # a probe in place of the user's message follows the message of the round before
    before = 1 if in_place else 0
    pressures = [
        {
            turn.round + before: turn.pressure or ORDINARY
            for turn in record.turns
            if turn.speaker == "user"
        }
        for record in series.records
    ]

    def means(pressure: str) -> np.ndarray:
        """The mean score right after such messages, [conversation]; NaN where there are none."""
        return np.array(
            [
                _mean(p.score for p in _stability(record) if rounds.get(p.round) == pressure)
                for record, rounds in zip(series.records, pressures, strict=True)
            ]
        )

    ordinary = means(ORDINARY)
    for pressure in sorted({name for rounds in pressures for name in rounds.values()} - {ORDINARY}):
        after = means(pressure)
        yield LossRow(
            method=series.method,
            grouping=Grouping.PRESSURE,
            group=pressure,
            rules=len({(r.agent.id, p.rule) for r in series.records for p in _stability(r)}),
            first=estimate(ordinary, SCORES, error=series.error),
            last=estimate(after, SCORES, error=series.error),
            change=estimate(after - ordinary, DIFFERENCES, error=series.error),
        )


def _mean(scores: Iterable[float]) -> float:
    known: Sequence[float] = list(scores)
    return float(np.mean(known)) if known else math.nan
