"""Maps which kinds of rules a model keeps over a conversation, and which it loses.

The probes of drift runs are grouped by the kind and the polarity of their rule, by how many rules
the prompt has, by how many rounds and tokens came before, and by the pressure that the user's last
message put on the rules. The unit is the conversation, which counts with the mean over its probes
in the group that were judged on both sides of the comparison.
"""

import math
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

import numpy as np

from holdfast.analysis.outcome import MATTERS
from holdfast.analysis.series import Series, read_pooled_series, scores_by_probe
from holdfast.analysis.statistics import (
    SCORES,
    ByProbe,
    Estimate,
    estimate,
    means_over_probes,
    paired_difference,
    row_means,
    shared_means,
)
from holdfast.analysis.verdicts import SUPPORTED, verdict_on, within
from holdfast.errors import UsageError
from holdfast.measures.rule_kinds import Polarity
from holdfast.plurals import from_to
from holdfast.records import Conversation, Probe, ProbeKey, Run
from holdfast.records.identity import ConversationsIdentity
from holdfast.records.model import Optional, RecordModel

ORDINARY = "none"  # the pressure of an ordinary message
_LATE_SHARE = 0.25  # the share of the rounds that counts as the end of a conversation
_LENGTHS = (0, 500, 1_000, 2_000, 4_000, 8_000)  # tokens; each group ends where the next begins
_LENGTH_NAMES = (
    *(f"{start:,} to {end:,}" for start, end in pairwise(_LENGTHS)),
    f"{_LENGTHS[-1]:,} and more",
)
_CHARACTERS_PER_TOKEN = 4  # of English, roughly; records have the texts, not their tokens

LossVerdict = Literal["falls", "rises", "holds", "cannot tell"]


class _PromptSize(NamedTuple):
    """A group of prompts by the number of their rules."""

    fewest: int
    most: int
    name: str


_SIZES = (
    _PromptSize(1, 1, "1 rule"),
    _PromptSize(2, 3, "2 or 3 rules"),
    _PromptSize(4, 5, "4 or 5 rules"),
    _PromptSize(6, 99, "6 and more"),
)


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

    What `first` and `last` compare depends on the grouping. Rounds and lengths: round 1, and the
    probes of the group. Pressures: probes after an ordinary message, and after a message with this
    pressure. All others, among them adoption, which is about the rules of the user's prompt: round
    1, and the last quarter of the rounds.

    Attributes:
        grouping, group: such as "kind" and "closing".
        rules: how many different rules of prompts are in it.
        first, last: the two mean scores that are compared, over the rules that each conversation
            has on both sides.
        change: last minus first, paired by conversation.
        verdict: on the change; "holds" if it is certainly within 10 points.
        falls_from: only for a kind that falls: the first round that is certainly below round 1, or
            else the first of the last quarter.
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


def loss_map(*runs: Run) -> list[LossRow]:
    """Returns the rows of one drift run, or of several pooled (such as two seeds), by method.

    Raises:
        UsageError: the suite gives no kinds of rules, the runs differ in where they probe, or they
            share a conversation.
    """
    probe_places = {run.identity_as(ConversationsIdentity).settings.probe_at for run in runs}
    if len(probe_places) > 1:
        raise UsageError(
            "Some of these runs probe in place of the user's turn and others after the round, so"
            " they cannot be pooled; leave out --pool.",
            option="pool",
        )
    _refuse_shared_conversations(runs)
    in_place = probe_places == {"in-place"}
    rows: list[LossRow] = []
    for series in read_pooled_series(runs):
        rows += _rows_of(series, in_place=in_place)
    if not any(row.grouping is Grouping.KIND for row in rows):
        folder = runs[0].folder
        raise UsageError(
            f"The rules in {folder} have no kinds; use the suite bots, or give the rules of your"
            " suite a `kind` and a `polarity`.",
            option="run",
            value=str(folder),
        )
    return rows


def _refuse_shared_conversations(runs: Sequence[Run]) -> None:
    """Refuses runs that have a conversation in common, which would count twice."""
    run_of_conversation: dict[tuple[object, ...], Run] = {}
    for run in runs:
        identity = run.identity_as(ConversationsIdentity)
        seed = identity.settings.seed
        draws = (identity.model_fingerprint, identity.suite_fingerprint, seed)
        for record in run.conversations:
            key = (*draws, record.method, record.conversation)
            other = run_of_conversation.setdefault(key, run)
            if other is not run:
                raise UsageError(
                    f"{other.folder} and {run.folder} both have conversation"
                    f" {record.conversation} of seed {seed}, which would count twice; pool runs"
                    " with different seeds.",
                    option="pool",
                    value=seed,
                )


def _rows_of(series: Series, *, in_place: bool) -> Iterable[LossRow]:
    """Yields the rows of a method, grouping by grouping.

    Args:
        in_place: whether probes are asked in place of the user's message, or after the round.
    """
    probes = [probe for record in series.records for probe in record.stability_probes]
    if not probes:
        return
    yield _late_row(series, Grouping.ALL, "", _select_rules())
    for kind in sorted({probe.rule_kind for probe in probes if probe.rule_kind}):
        yield _kind_row(series, kind)
    for polarity in get_args(Polarity):
        if any(probe.polarity == polarity for probe in probes):
            yield _late_row(series, Grouping.POLARITY, polarity, _select_rules(polarity=polarity))
    yield from _size_rows(series)
    yield from _round_rows(series)
    yield from _length_rows(series, in_place=in_place)
    yield from _pressure_rows(series, in_place=in_place)
    if series.measured("adoption"):
        yield _late_row(series, Grouping.ADOPTION, "", lambda probe: probe.kind == "adoption")


def _select_rules(kind: str = "", polarity: str = "") -> Callable[[Probe], bool]:
    """Returns a filter for probes on rules of the agent's prompt that have this kind and polarity.

    "" stands for any.
    """

    def is_selected(probe: Probe) -> bool:
        is_of_kind = kind in ("", probe.rule_kind) and polarity in ("", probe.polarity)
        return probe.kind == "stability" and is_of_kind

    return is_selected


def _late_row(
    series: Series, grouping: Grouping, group: str, is_counted: Callable[[Probe], bool]
) -> LossRow:
    """Compares the probes that count in the last quarter of the rounds with those in round 1."""
    scores = scores_by_probe(series.records, series.rounds, is_counted)
    rules = {
        (record.agent.id, probe.rule)
        for record in series.records
        for probe in filter(is_counted, record.probes)
    }
    rounds = np.arange(series.rounds)
    last = _means_in(scores, rounds >= series.rounds - _late_rounds(series))
    return _row(series, grouping, group, len(rules), _scores_in_round_1(scores), last)


def _late_rounds(series: Series) -> int:
    """Returns how many rounds the last quarter has."""
    return max(1, math.ceil(_LATE_SHARE * series.rounds))


def _kind_row(series: Series, kind: str) -> LossRow:
    """Returns the row of a kind of rule; if it falls, with the round from which it does."""
    row = _late_row(series, Grouping.KIND, kind, _select_rules(kind))
    if row.verdict != "falls":
        return row
    return row.model_copy(update={"falls_from": _falls_from(series, kind)})


def _falls_from(series: Series, kind: str) -> int:
    """Returns the first round whose scores are certainly below those of round 1, or else the first
    round of the last quarter. The tests of all rounds share the error of one verdict.
    """
    scores = scores_by_probe(series.records, series.rounds, _select_rules(kind))
    pairs = {
        number: shared_means(
            _scores_in_round_1(scores),
            {probe: matrix[:, number - 1] for probe, matrix in scores.items()},
        )
        for number in range(2, series.rounds + 1)
    }
    measured_pairs = {number: pair for number, pair in pairs.items() if not np.isnan(pair[0]).all()}
    for number, (first, later) in measured_pairs.items():
        change = paired_difference(later, first, error=series.error / len(measured_pairs))
        if verdict_on(change).sign < 0:
            return number
    return series.rounds - _late_rounds(series) + 1


def _row(
    series: Series,
    grouping: Grouping,
    group: str,
    rules: int,
    first: ByProbe,
    last: ByProbe,
) -> LossRow:
    """Compares two scores of each probe, [conversation] each; NaN where a score is missing."""
    before, after = shared_means(first, last)
    change = paired_difference(after, before, error=series.error)
    return LossRow(
        method=series.method,
        grouping=grouping,
        group=group,
        rules=rules,
        first=estimate(before, SCORES, error=series.error),
        last=estimate(after, SCORES, error=series.error),
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


def _size_rows(series: Series) -> Iterable[LossRow]:
    """Yields a row per size of prompts, from those with few rules to those with many.

    A rule counts in each conversation under its prompt, also if no reply to it could be scored in
    this one.
    """
    rules: dict[str, set[str | None]] = {}
    for record in series.records:
        probes: list[ProbeKey] = [*record.probes, *record.unscored, *record.unanswered]
        names = {probe.rule for probe in probes if probe.kind == "stability"}
        rules.setdefault(record.agent.id, set()).update(names)
    sizes = np.array([len(rules[record.agent.id]) for record in series.records])
    for size in _SIZES:
        members = (size.fewest <= sizes) & (sizes <= size.most)
        if members.any():
            yield _late_row(series.rows(members), Grouping.SIZE, size.name, _select_rules())


def _round_rows(series: Series) -> Iterable[LossRow]:
    """Compares each quarter of the later rounds with round 1."""
    scores = series.scores("stability")
    rules = _count_rules(series)
    numbers = np.arange(1, series.rounds + 1)
    for rounds in np.array_split(numbers[1:], 4):
        if not len(rounds):
            continue
        name = from_to(rounds[0], rounds[-1])
        later = _means_in(scores, np.isin(numbers, rounds))
        yield _row(series, Grouping.ROUNDS, name, rules, _scores_in_round_1(scores), later)


def _count_rules(series: Series) -> int:
    rules = {
        (record.agent.id, probe.rule)
        for record in series.records
        for probe in record.stability_probes
    }
    return len(rules)


def _length_rows(series: Series, *, in_place: bool) -> Iterable[LossRow]:
    """Compares later probes, by the length of the dialog before them, with round 1."""
    names = []
    for record in series.records:
        lengths = _lengths_before(record, in_place=in_place)
        names.append(
            {
                number: _LENGTH_NAMES[bisect(_LENGTHS, length) - 1]
                for number, length in lengths.items()
                if number > 1
            }
        )
    scores = series.scores("stability")
    rules = _count_rules(series)
    for name in _LENGTH_NAMES:
        later = _means_in(scores, _rounds_named(names, name, series.rounds))
        if not np.isnan(means_over_probes(later)).all():
            yield _row(series, Grouping.LENGTH, name, rules, _scores_in_round_1(scores), later)


def _lengths_before(record: Conversation, *, in_place: bool) -> dict[int, float]:
    """Estimates, for each round, how many tokens the system prompt and the turns before its probes
    have.
    """
    characters = Counter[int]()
    for turn in record.turns:
        characters[turn.round] += len(turn.text)
    lengths: dict[int, float] = {}
    total = len(record.agent.system_prompt)
    for number in range(1, max(characters, default=0) + 2):
        total_after = total + characters[number]
        lengths[number] = (total if in_place else total_after) / _CHARACTERS_PER_TOKEN
        total = total_after
    return lengths


def _pressure_rows(series: Series, *, in_place: bool) -> Iterable[LossRow]:
    """Compares the probes after messages with each pressure with those after ordinary messages."""
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
    scores = series.scores("stability")
    after_ordinary = _means_in(scores, _rounds_named(names, ORDINARY, series.rounds))
    rules = _count_rules(series)
    pressures = {name for name_by_round in names for name in name_by_round.values()} - {ORDINARY}
    for name in sorted(pressures):
        after = _means_in(scores, _rounds_named(names, name, series.rounds))
        yield _row(series, Grouping.PRESSURE, name, rules, after_ordinary, after)


def _rounds_named(names: Sequence[Mapping[int, str]], name: str, rounds: int) -> np.ndarray:
    """Returns which rounds have a name, [conversation, round] bool.

    Args:
        names: for each conversation, the names of its rounds by number.
    """
    numbers = range(1, rounds + 1)
    return np.array(
        [[name_by_round.get(number) == name for number in numbers] for name_by_round in names]
    )


def _scores_in_round_1(scores: ByProbe) -> ByProbe:
    """Returns the scores of each probe in round 1, [conversation] each."""
    return {probe: matrix[:, 0] for probe, matrix in scores.items()}


def _means_in(scores: ByProbe, in_rounds: np.ndarray) -> ByProbe:
    """Returns the mean score of each probe over some rounds, [conversation] each.

    NaN where it has none.

    Args:
        in_rounds: which rounds count, [round] or [conversation, round] bool.
    """
    return {
        probe: row_means(np.where(in_rounds, matrix, np.nan)) for probe, matrix in scores.items()
    }
