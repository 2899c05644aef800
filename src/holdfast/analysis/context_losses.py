"""Compares how well rules are kept with every round in view, and once older rounds leave it.

The same conversations are held with every round in view, and in a mode that leaves rounds out. Both
are compared in the probes of the rounds in which the mode leaves some out. For example:

    gates are kept at 0.5 with everything in view, and at 0.2 once a summary replaces older rounds
    -> LossRow(grouping="polarity", group="gate", first=0.5, last=0.2, change=-0.3, ...)

The unit is the conversation, which counts with the mean over its probes that were judged on both
sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, get_args

import numpy as np

from holdfast.analysis.loss_rows import (
    Grouping,
    LossRow,
    compare_scores,
    means_in,
    select_rules,
)
from holdfast.analysis.series import ProbeId, Series, pool_series, read_series, scores_by_probe
from holdfast.analysis.statistics import SCORES, Estimate, estimate
from holdfast.drift.cases import Suite
from holdfast.errors import UsageError
from holdfast.measures.rule_kinds import Polarity
from holdfast.records import Probe, Run
from holdfast.records.identity import ConversationsIdentity
from holdfast.records.model import List, Optional, RecordModel


class _ProbeGroup(NamedTuple):
    """The probes of some rules: of all, or of one kind or polarity."""

    grouping: Grouping
    name: str  # the kind or polarity; "" for all rules
    is_counted: Callable[[Probe], bool]  # whether a probe belongs to the group


class ContextLoss(RecordModel):
    """How rules fare in one mode of `--context`, compared with every round in view.

    Attributes:
        context: the mode.
        rows: all rules together, and those of each kind and polarity. `first` is the score with
            every round in view, `last` that in this mode, and `change` their difference, paired by
            conversation.
        recall: likewise, the share of rules that the model states when it is asked for them in the
            last round; None if it was not asked.
        stated_first, stated_last: the share of the prompt's rules that the first and the last
            summary of a conversation states; None in modes that do not summarise the prompt.
    """

    context: str
    rows: List[LossRow]
    recall: Optional[LossRow] = None
    stated_first: Optional[Estimate] = None
    stated_last: Optional[Estimate] = None


def context_loss(runs: Sequence[Run], reference: Sequence[Run], suite: Suite) -> ContextLoss:
    """Compares runs in one mode with those that have every round in view.

    Args:
        runs: one or several, such as one for each seed.
        reference: for each of these runs, the same conversations with every round in view.
        suite: of all runs; it says how to recognise a rule in a text that states it.

    Raises:
        UsageError: a run and its reference have different conversations.
    """
    pairs = [_shared_conversations(*pair) for pair in zip(runs, reference, strict=True)]
    in_mode = pool_series([series for series, _ in pairs])
    in_view = pool_series([series for _, series in pairs])
    context = str(runs[0].identity_as(ConversationsIdentity).settings.context)
    loss = ContextLoss(
        context=context,
        rows=tuple(_row(in_mode, in_view, group) for group in _groups(in_mode)),
    )
    if any(map(_is_recall, _probes_of(in_mode))):
        recall = _row(in_mode, in_view, _ProbeGroup(Grouping.ALL, "", _is_recall))
        loss = loss.model_copy(update={"recall": recall})
    if context == "compact":
        first, last = _shares_stated(in_mode, suite)
        loss = loss.model_copy(update={"stated_first": first, "stated_last": last})
    return loss


def _shared_conversations(run: Run, reference: Run) -> tuple[Series, Series]:
    """Returns the conversations that both runs have, without a fix."""
    if _draws_of(run) != _draws_of(reference):
        raise UsageError(
            f"{run.folder} and {reference.folder} do not have the same conversations; compare runs"
            " of one model, suite and seed.",
            value=str(run.folder),
        )
    series, other = read_series(run)[0], read_series(reference)[0]
    _, rows, other_rows = np.intersect1d(
        series.conversations, other.conversations, return_indices=True
    )
    return series.rows(rows), other.rows(other_rows)


def _draws_of(run: Run) -> tuple[str | None, str | None, int | None]:
    """Returns what the conversations of a run are drawn from."""
    identity = run.identity_as(ConversationsIdentity)
    return identity.model_fingerprint, identity.suite_fingerprint, identity.settings.seed


def _groups(series: Series) -> Iterable[_ProbeGroup]:
    """Yields the probes of all rules, of each kind and of each polarity."""
    probes = [probe for record in series.records for probe in record.stability_probes]
    if not probes:
        return
    yield _ProbeGroup(Grouping.ALL, "", select_rules())
    for kind in sorted({probe.rule_kind for probe in probes if probe.rule_kind}):
        yield _ProbeGroup(Grouping.KIND, kind, select_rules(kind))
    for polarity in get_args(Polarity):
        if any(probe.polarity == polarity for probe in probes):
            yield _ProbeGroup(Grouping.POLARITY, polarity, select_rules(polarity=polarity))


def _row(in_mode: Series, in_view: Series, group: _ProbeGroup) -> LossRow:
    """Compares the probes of a group, in the rounds in which the mode leaves rounds out."""
    rounds = max(in_mode.rounds, in_view.rounds)
    scores = scores_by_probe(in_mode.records, rounds, group.is_counted)
    scores_in_view = scores_by_probe(in_view.records, rounds, group.is_counted)
    left_out = _rounds_with_some_left_out(in_mode, rounds)
    first: dict[ProbeId, np.ndarray] = {}
    last: dict[ProbeId, np.ndarray] = {}
    for probe, matrix in scores.items():
        matrix_in_view = scores_in_view.get(probe, np.full_like(matrix, np.nan))
        counts = left_out & ~np.isnan(matrix + matrix_in_view)
        first |= means_in({probe: matrix_in_view}, counts)
        last |= means_in({probe: matrix}, counts)
    rules = {
        (record.agent.id, probe.rule)
        for record in in_mode.records
        for probe in filter(group.is_counted, record.probes)
    }
    return compare_scores(in_mode, group.grouping, group.name, len(rules), first, last)


def _rounds_with_some_left_out(series: Series, rounds: int) -> np.ndarray:
    """Returns the rounds whose probes did not show every round, [conversation, round] bool."""
    left_out = np.zeros((len(series.records), rounds), dtype=bool)
    for row, record in enumerate(series.records):
        for probe in record.answered:
            left_out[row, probe.round - 1] |= bool(probe.left_out)
    return left_out


def _shares_stated(series: Series, suite: Suite) -> tuple[Estimate, Estimate]:
    """Estimates which share of a prompt's rules its first and its last summary state."""
    rules_of_case = {
        case.id: [rule.recalled for rule in case.rules if rule.recalled is not None]
        for case in suite.cases
    }
    shares = []  # per conversation, in its first and in its last summary
    for record in series.records:
        summaries = [summary.text for summary in record.summaries if summary.view == "agent"]
        rules = rules_of_case[record.agent.id]
        if summaries and rules:
            texts = (summaries[0], summaries[-1])
            shares.append([np.mean([rule.score(text).value for rule in rules]) for text in texts])
    first, last = np.array(shares).reshape(-1, 2).T
    return (
        estimate(first, SCORES, error=series.error),
        estimate(last, SCORES, error=series.error),
    )


def _is_recall(probe: Probe) -> bool:
    return probe.kind == "recall"


def _probes_of(series: Series) -> list[Probe]:
    return [probe for record in series.records for probe in record.probes]
