"""Maps which kinds of rules a model keeps over a conversation, and which it loses.

The probes of drift runs are grouped by the kind and the polarity of their rule, by how many rules
the prompt has, by how many rounds and tokens came before, and by the pressure that the user's last
message put on the rules. The unit is the conversation, which counts with the mean over its probes
in the group that were judged on both sides of the comparison.
"""

from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, get_args

import numpy as np

from holdfast.analysis.loss_rows import (
    Grouping,
    LossRow,
    compare_scores,
    kind_row,
    late_row,
    means_in,
    scores_in_round_1,
    select_rules,
)
from holdfast.analysis.series import Series, read_pooled_series
from holdfast.analysis.statistics import means_over_probes
from holdfast.errors import UsageError
from holdfast.measures.rule_kinds import Polarity
from holdfast.plurals import from_to
from holdfast.records import Conversation, ProbeKey, Run
from holdfast.records.identity import ConversationsIdentity

ORDINARY = "none"  # the pressure of an ordinary message
_LENGTHS = (0, 500, 1_000, 2_000, 4_000, 8_000)  # tokens; each group ends where the next begins
_LENGTH_NAMES = (
    *(f"{start:,} to {end:,}" for start, end in pairwise(_LENGTHS)),
    f"{_LENGTHS[-1]:,} and more",
)
_CHARACTERS_PER_TOKEN = 4  # of English, roughly; records have the texts, not their tokens


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
    yield late_row(series, Grouping.ALL, "", select_rules())
    for kind in sorted({probe.rule_kind for probe in probes if probe.rule_kind}):
        yield kind_row(series, kind)
    for polarity in get_args(Polarity):
        if any(probe.polarity == polarity for probe in probes):
            yield late_row(series, Grouping.POLARITY, polarity, select_rules(polarity=polarity))
    yield from _size_rows(series)
    yield from _round_rows(series)
    yield from _length_rows(series, in_place=in_place)
    yield from _pressure_rows(series, in_place=in_place)
    if series.measured("adoption"):
        yield late_row(series, Grouping.ADOPTION, "", lambda probe: probe.kind == "adoption")


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
            yield late_row(series.rows(members), Grouping.SIZE, size.name, select_rules())


def _round_rows(series: Series) -> Iterable[LossRow]:
    """Compares each quarter of the later rounds with round 1."""
    scores = series.scores("stability")
    rules = _count_rules(series)
    numbers = np.arange(1, series.rounds + 1)
    for rounds in np.array_split(numbers[1:], 4):
        if not len(rounds):
            continue
        name = from_to(rounds[0], rounds[-1])
        later = means_in(scores, np.isin(numbers, rounds))
        yield compare_scores(series, Grouping.ROUNDS, name, rules, scores_in_round_1(scores), later)


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
        later = means_in(scores, _rounds_named(names, name, series.rounds))
        if not np.isnan(means_over_probes(later)).all():
            yield compare_scores(
                series, Grouping.LENGTH, name, rules, scores_in_round_1(scores), later
            )


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
    after_ordinary = means_in(scores, _rounds_named(names, ORDINARY, series.rounds))
    rules = _count_rules(series)
    pressures = {name for name_by_round in names for name in name_by_round.values()} - {ORDINARY}
    for name in sorted(pressures):
        after = means_in(scores, _rounds_named(names, name, series.rounds))
        yield compare_scores(series, Grouping.PRESSURE, name, rules, after_ordinary, after)


def _rounds_named(names: Sequence[Mapping[int, str]], name: str, rounds: int) -> np.ndarray:
    """Returns which rounds have a name, [conversation, round] bool.

    Args:
        names: for each conversation, the names of its rounds by number.
    """
    numbers = range(1, rounds + 1)
    return np.array(
        [[name_by_round.get(number) == name for number in numbers] for name_by_round in names]
    )
