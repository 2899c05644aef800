"""Which kinds of rules a model keeps over a conversation, and which it loses.

The probes of drift runs are grouped by what their rule is about, by how it binds, by how many rules
the prompt has, by how many rounds and tokens came before, and by what the user's last message put
on the rules. The unit is the conversation, which counts with the mean over its probes in the group.
"""

import math
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Literal, get_args

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

ORDINARY = "none"  # the pressure of an ordinary message
_LATE = 0.25  # the share of a conversation that counts as its end
_SIZES = ((1, 1, "1 rule"), (2, 3, "2 or 3 rules"), (4, 5, "4 or 5 rules"), (6, 99, "6 and more"))
_LENGTHS = (0, 500, 1_000, 2_000, 4_000, 8_000)  # tokens; each group ends where the next begins
_LENGTH_NAMES = (
    *(f"{start:,} to {end:,}" for start, end in pairwise(_LENGTHS)),
    f"{_LENGTHS[-1]:,} and more",
)
_CHARACTERS_PER_TOKEN = 4  # of English, roughly; records have the texts, not their tokens

LossVerdict = Literal["falls", "rises", "holds", "cannot tell"]


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
        verdict: on the change; it holds if it certainly is within 10 points.
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
    verdict: LossVerdict
    falls_from: Optional[int] = None


def series_by_method(runs: Sequence[Run]) -> list[Series]:
    """One series per method, of the conversations of all runs."""
    by_method: dict[str, list[Series]] = {}
    for run in runs:
        for series in read_series(run):
            by_method.setdefault(series.method, []).append(series)
    return list(map(pooled, by_method.values()))


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
    rows = [row for series in series_by_method(runs) for row in _rows_of(series, in_place)]
    if not any(row.grouping is Grouping.KIND for row in rows):
        folder = runs[0].folder
        raise UsageError(
            f"The rules in {folder} have no kinds; use the suite bots, or give the rules of your"
            " suite a `kind` and a `polarity`.",
            option="run",
            value=str(folder),
        )
    return rows


def _rows_of(series: Series, in_place: bool) -> Iterable[LossRow]:
    """The rows of a method, by grouping; `in_place` of the user's message, or after the round."""
    probes = [probe for record in series.records for probe in record.stability_probes]
    yield _of_probes(series, Grouping.ALL, "", _on_rules())
    for kind in sorted({probe.rule_kind for probe in probes if probe.rule_kind}):
        yield _of_kind(series, kind)
    for polarity in get_args(Polarity):
        if any(probe.polarity == polarity for probe in probes):
            yield _of_probes(series, Grouping.POLARITY, polarity, _on_rules(polarity=polarity))
    yield from _by_size(series)
    yield from _by_rounds(series)
    yield from _by_length(series, in_place)
    yield from _by_pressure(series, in_place)
    if series.measured("adoption"):
        yield _of_probes(series, Grouping.ADOPTION, "", lambda probe: probe.kind == "adoption")


def _on_rules(kind: str = "", polarity: str = "") -> Callable[[Probe], bool]:
    """Whether a probe is on a rule of the agent's prompt of this kind and polarity; "" for any."""

    def counts(probe: Probe) -> bool:
        is_of_kind = kind in ("", probe.rule_kind) and polarity in ("", probe.polarity)
        return probe.kind == "stability" and is_of_kind

    return counts


def _of_probes(
    series: Series, grouping: Grouping, group: str, counts: Callable[[Probe], bool]
) -> LossRow:
    """The row of the probes that count: the last quarter of the rounds, and the first one."""
    values = probe_means(series.records, series.rounds, counts)  # [conversation, round]
    rules = {
        (record.agent.id, probe.rule)
        for record in series.records
        for probe in filter(counts, record.probes)
    }
    last = row_means(values[:, -_late_rounds(series) :])
    return _row(series, grouping, group, len(rules), values[:, 0], last)


def _late_rounds(series: Series) -> int:
    return max(1, math.ceil(_LATE * series.rounds))


def _of_kind(series: Series, kind: str) -> LossRow:
    """The row of a kind of rule; if it falls, with the round from which."""
    row = _of_probes(series, Grouping.KIND, kind, _on_rules(kind))
    if row.verdict != "falls":
        return row
    return row.model_copy(update={"falls_from": _falls_from(series, kind)})


def _falls_from(series: Series, kind: str) -> int:
    """The first round whose scores are certainly below those of round 1, or else the first of the
    last quarter. The rounds share the error of one verdict.
    """
    values = probe_means(series.records, series.rounds, _on_rules(kind))  # [conversation, round]
    changes = values[:, 1:] - values[:, :1]
    probed = [
        number for number in range(changes.shape[1]) if not np.isnan(changes[:, number]).all()
    ]
    for number in probed:
        change = estimate(changes[:, number], DIFFERENCES, error=series.error / len(probed))
        if verdict_on(change).sign < 0:
            return number + 2
    return series.rounds - _late_rounds(series) + 1


def _row(
    series: Series,
    grouping: Grouping,
    group: str,
    rules: int,
    first: np.ndarray,
    last: np.ndarray,
) -> LossRow:
    """The row of two scores per conversation, [conversation]; NaN where there is none."""
    change = estimate(last - first, DIFFERENCES, error=series.error)
    return LossRow(
        method=series.method,
        grouping=grouping,
        group=group,
        rules=rules,
        first=estimate(first, SCORES, error=series.error),
        last=estimate(last, SCORES, error=series.error),
        change=change,
        verdict=_verdict(change),
    )


def _verdict(change: Estimate) -> LossVerdict:
    if within(change, -MATTERS, MATTERS) == SUPPORTED:
        return "holds"
    sign = verdict_on(change).sign
    if sign == 0:
        return "cannot tell"
    return "rises" if sign > 0 else "falls"


def _by_size(series: Series) -> Iterable[LossRow]:
    """The conversations of prompts with few and with many rules."""
    sizes = np.array(
        [len({probe.rule for probe in record.stability_probes}) for record in series.records]
    )
    for least, most, name in _SIZES:
        members = (least <= sizes) & (sizes <= most)
        if members.any():
            yield _of_probes(series.rows(members), Grouping.SIZE, name, _on_rules())


def _by_rounds(series: Series) -> Iterable[LossRow]:
    """The first round, beside each quarter of the others."""
    values = series.stability
    rules = _count_rules(series)
    for rounds in np.array_split(np.arange(2, series.rounds + 1), 4):
        if len(rounds):
            name = f"{rounds[0]} to {rounds[-1]}" if len(rounds) > 1 else str(rounds[0])
            later = row_means(values[:, rounds - 1])
            yield _row(series, Grouping.ROUNDS, name, rules, values[:, 0], later)


def _count_rules(series: Series) -> int:
    rules = {
        (record.agent.id, probe.rule)
        for record in series.records
        for probe in record.stability_probes
    }
    return len(rules)


def _by_length(series: Series, in_place: bool) -> Iterable[LossRow]:
    """The first round, beside later probes by the length of the dialog before them."""
    names = []
    for record in series.records:
        lengths = _lengths_before(record, in_place)
        names.append(
            {
                number: _LENGTH_NAMES[bisect(_LENGTHS, length) - 1]
                for number, length in lengths.items()
                if number > 1
            }
        )
    first = series.stability[:, 0]
    rules = _count_rules(series)
    for name in _LENGTH_NAMES:
        later = _means_in(series, names, name)
        if not np.isnan(later).all():
            yield _row(series, Grouping.LENGTH, name, rules, first, later)


def _lengths_before(record: Conversation, in_place: bool) -> dict[int, float]:
    """By round, the length of the system prompt and the turns before its probes, in tokens."""
    characters = Counter[int]()
    for turn in record.turns:
        characters[turn.round] += len(turn.text)
    lengths: dict[int, float] = {}
    total = len(record.agent.system_prompt)
    for number in range(1, max(characters, default=0) + 2):
        with_round = total + characters[number]
        lengths[number] = (total if in_place else with_round) / _CHARACTERS_PER_TOKEN
        total = with_round
    return lengths


def _by_pressure(series: Series, in_place: bool) -> Iterable[LossRow]:
    """How probes fare right after each kind of message of the user."""
    # a probe in place of the user's message follows the message of the round before
    rounds_later = 1 if in_place else 0
    names = [
        {
            turn.round + rounds_later: turn.pressure or ORDINARY
            for turn in record.turns
            if turn.speaker == "user"
        }
        for record in series.records
    ]
    after_ordinary = _means_in(series, names, ORDINARY)
    rules = _count_rules(series)
    pressures = {name for by_round in names for name in by_round.values()} - {ORDINARY}
    for name in sorted(pressures):
        after = _means_in(series, names, name)
        yield _row(series, Grouping.PRESSURE, name, rules, after_ordinary, after)


def _means_in(series: Series, names: Sequence[Mapping[int, str]], name: str) -> np.ndarray:
    """The mean score of the probes in the rounds that have this name, [conversation]; NaN where
    there are none. `names` has the name of each round, by conversation.
    """
    means = np.full(len(series.records), np.nan)
    for row, (record, by_round) in enumerate(zip(series.records, names, strict=True)):
        scores = [
            probe.score for probe in record.stability_probes if by_round.get(probe.round) == name
        ]
        if scores:
            means[row] = np.mean(scores)
    return means
