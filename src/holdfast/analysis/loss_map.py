"""Which kinds of rules a model keeps over a conversation, and which it loses.

The probes of drift runs are grouped by what their rule is about, by how it binds, by how many rules
the prompt has, by how many rounds and tokens came before, and by what the user's last message put
on the rules. The unit is the conversation, which counts with the mean over its probes in the group.
"""

import math
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import get_args

import numpy as np

from holdfast.analysis.outcome import MATTERS
from holdfast.analysis.series import Series, pooled, probe_means, read_series
from holdfast.analysis.statistics import DIFFERENCES, SCORES, Estimate, estimate, row_means
from holdfast.analysis.verdicts import SUPPORTED, verdict_on, within
from holdfast.errors import UsageError
from holdfast.measures.rule_kinds import Polarity
from holdfast.records import Conversation, Probe, Run
from holdfast.records.identity import ConversationsIdentity
from holdfast.records.model import Optional, RecordModel

FALLS = "falls"
ORDINARY = "none"  # the pressure of an ordinary message
_LATE = 0.25  # the share of a conversation that counts as its end
_SIZES = ((1, 1, "1 rule"), (2, 3, "2 or 3 rules"), (4, 5, "4 or 5 rules"), (6, 99, "6 and more"))
_LENGTHS = (0, 500, 1_000, 2_000, 4_000, 8_000)  # tokens; each group ends where the next begins
_CHARACTERS_PER_TOKEN = 4  # of English, roughly; records have the texts, not their tokens


class Grouping(StrEnum):
    """How probes are grouped."""

    ALL = "all rules"
    KIND = "kind"
    POLARITY = "polarity"
    SIZE = "rules in the prompt"
    ROUNDS = "rounds"
    LENGTH = "tokens before, about"
    PRESSURE = "last message"
    ADOPTION = "adoption"


class LossRow(RecordModel):
    """How a group of rules fares under one method.

    Attributes:
        grouping, group: such as "kind" and "closing".
        rules: how many different rules of prompts are in it.
        first: the mean score in round 1.
        last: the mean score in the last quarter of the rounds.
        change: last minus first, paired by conversation. Of rounds and lengths: the scores of the
            probes there, minus those in round 1. Of a pressure: the scores of probes after such a
            message, minus those after an ordinary one in the same conversation. Of adoption: as of
            a rule, for the rules of the user's prompt.
        verdict: on the change: falls, rises, holds (within 10 points, certainly), or cannot tell.
        falls_from: of a kind that falls, the first round that is certainly below round 1, or else
            the first of the last quarter.
    """

    method: str
    grouping: Grouping
    group: str
    rules: int
    first: Estimate
    last: Estimate
    change: Estimate
    verdict: str
    falls_from: Optional[int] = None


def series_by_method(runs: Sequence[Run]) -> list[Series]:
    """One series per method, of the conversations of all runs."""
    found: dict[str, list[Series]] = {}
    for series in (series for run in runs for series in read_series(run)):
        found.setdefault(series.method, []).append(series)
    return list(map(pooled, found.values()))


def loss_map(*runs: Run) -> list[LossRow]:
    """The rows of one drift run, or of several together (such as two seeds), method by method.

    Raises:
        UsageError: the suite gives no kinds of rules, or the runs differ in where they probe.
    """
    places = {run.identity_as(ConversationsIdentity).settings.probe_at for run in runs}
    if len(places) > 1:
        raise UsageError(
            "Some of these runs probe in place of the user's turn and others after the round, so"
            " they cannot be pooled; leave out --pool.",
            option="pool",
        )
    in_place = places == {"in-place"}
    rows = [row for series in series_by_method(runs) for row in _rows(series, in_place)]
    if not any(row.grouping is Grouping.KIND for row in rows):
        folder = runs[0].folder
        raise UsageError(
            f"The rules in {folder} have no kinds; use the suite bots, or give the rules of your"
            " suite a `kind` and a `polarity`.",
            option="run",
            value=str(folder),
        )
    return rows


def _rows(series: Series, in_place: bool) -> Iterable[LossRow]:
    probes = [probe for record in series.records for probe in record.stability_probes]
    yield _row(series, Grouping.ALL, "")
    for kind in sorted({probe.rule_kind for probe in probes if probe.rule_kind}):
        yield _row(series, Grouping.KIND, kind, rule_kind=kind)
    for polarity in get_args(Polarity):
        if any(probe.polarity == polarity for probe in probes):
            yield _row(series, Grouping.POLARITY, polarity, polarity=polarity)
    sizes = np.array([len({probe.rule for probe in r.stability_probes}) for r in series.records])
    for least, most, name in _SIZES:
        members = (least <= sizes) & (sizes <= most)
        if members.any():
            yield _row(series.rows(members), Grouping.SIZE, name)
    yield from _rounds(series)
    yield from _lengths(series, in_place)
    yield from _pressures(series, in_place)
    if series.measured("adoption"):
        yield _row(series, Grouping.ADOPTION, "", kind="adoption")


def _row(
    series: Series,
    grouping: Grouping,
    group: str,
    *,
    kind: str = "stability",
    rule_kind: str | None = None,
    polarity: str | None = None,
) -> LossRow:
    """The row of the probes of a kind, or only those of rules of a kind or a polarity."""

    def counts(probe: Probe) -> bool:
        is_of_rules = rule_kind in (None, probe.rule_kind) and polarity in (None, probe.polarity)
        return probe.kind == kind and is_of_rules

    values = probe_means(series.records, series.rounds, counts)  # [conversation, round]
    late = max(1, math.ceil(_LATE * series.rounds))
    rules = {(r.agent.id, p.rule) for r in series.records for p in r.probes if counts(p)}
    row = _compared(series, grouping, group, len(rules), values[:, 0], row_means(values[:, -late:]))
    if grouping is Grouping.KIND and row.verdict == FALLS:
        return row.model_copy(update={"falls_from": _falls_from(series, values, late)})
    return row


def _falls_from(series: Series, values: np.ndarray, late: int) -> int:
    """The first round whose scores, [conversation, round], are certainly below those of round 1.

    The rounds share the error of one verdict.
    """
    changes = values[:, 1:] - values[:, :1]
    probed = [
        number for number in range(changes.shape[1]) if not np.isnan(changes[:, number]).all()
    ]
    for number in probed:
        change = estimate(changes[:, number], DIFFERENCES, error=series.error / len(probed))
        if verdict_on(change).sign < 0:
            return number + 2
    return series.rounds - late + 1


def _compared(
    series: Series,
    grouping: Grouping,
    group: str,
    rules: int,
    first: np.ndarray,
    last: np.ndarray,
) -> LossRow:
    """The row of two scores per conversation, [conversation]; NaN where there is none."""
    change = estimate(last - first, DIFFERENCES, error=series.error)
    holds = within(change, -MATTERS, MATTERS) == SUPPORTED
    return LossRow(
        method=series.method,
        grouping=grouping,
        group=group,
        rules=rules,
        first=estimate(first, SCORES, error=series.error),
        last=estimate(last, SCORES, error=series.error),
        change=change,
        verdict="holds" if holds else verdict_on(change).word("rises", FALLS),
    )


def _rule_count(series: Series) -> int:
    return len({(r.agent.id, p.rule) for r in series.records for p in r.stability_probes})


def _rounds(series: Series) -> Iterable[LossRow]:
    """The first round, beside each quarter of the others."""
    values = series.stability
    for rounds in np.array_split(np.arange(2, series.rounds + 1), 4):
        if len(rounds):
            name = f"{rounds[0]} to {rounds[-1]}" if len(rounds) > 1 else str(rounds[0])
            means = row_means(values[:, rounds - 1])
            count = _rule_count(series)
            yield _compared(series, Grouping.ROUNDS, name, count, values[:, 0], means)


def _lengths(series: Series, in_place: bool) -> Iterable[LossRow]:
    """The first round, beside later probes by the length of the dialog before them."""
    lengths = [_lengths_before(record, in_place) for record in series.records]
    bounds = zip(_LENGTHS, (*_LENGTHS[1:], math.inf), strict=True)
    for least, below in bounds:
        means = np.array(
            [
                _mean(
                    probe.score
                    for probe in record.stability_probes
                    if probe.round > 1 and least <= tokens[probe.round] < below
                )
                for record, tokens in zip(series.records, lengths, strict=True)
            ]
        )
        if np.isnan(means).all():
            continue
        name = f"{least:,} and more" if below == math.inf else f"{least:,} to {below:,}"
        count = _rule_count(series)
        yield _compared(series, Grouping.LENGTH, name, count, series.stability[:, 0], means)


def _lengths_before(record: Conversation, in_place: bool) -> dict[int, float]:
    """By round, the length of the system prompt and the turns before its probes, in tokens."""
    by_round: dict[int, int] = {}
    for turn in record.turns:
        by_round[turn.round] = by_round.get(turn.round, 0) + len(turn.text)
    lengths, total = {}, len(record.agent.system_prompt)
    for number in range(1, max(by_round, default=0) + 2):
        if not in_place:
            total += by_round.get(number, 0)
        lengths[number] = total / _CHARACTERS_PER_TOKEN
        if in_place:
            total += by_round.get(number, 0)
    return lengths


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
                _mean(p.score for p in record.stability_probes if rounds.get(p.round) == pressure)
                for record, rounds in zip(series.records, pressures, strict=True)
            ]
        )

    ordinary = means(ORDINARY)
    for pressure in sorted({name for rounds in pressures for name in rounds.values()} - {ORDINARY}):
        count = _rule_count(series)
        yield _compared(series, Grouping.PRESSURE, pressure, count, ordinary, means(pressure))


def _mean(scores: Iterable[float]) -> float:
    known: Sequence[float] = list(scores)
    return float(np.mean(known)) if known else math.nan
