"""Why rules were broken in logged dialogs, and how well they are kept by what was in the context.

The unit is the dialog, which counts with the mean of its scores; all rules count together, except
those that are made for the answers to probes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.analysis import statistics
from holdfast.analysis.adherence import TOKEN_BINS, label_of
from holdfast.analysis.statistics import Estimate
from holdfast.records import CAUSES, CompactedRule, LogDialog, LogProbe, RuleInContext, Run
from holdfast.records.cause_records import RECALL_CAUSES

CALL_BINS = (0, 1, 5, 10, 20, 50, 100, 200, 500, 1_000)
COMPACTION_BINS = (0, 1, 2, 3, 5, 9)

Estimates = tuple[Estimate, ...]


@dataclass(frozen=True)
class Breach:
    """A turn that broke a rule, and why, if that was looked for."""

    dialog: int  # the row in the run's records
    rule: str  # as `Adherence.rule`
    probe: LogProbe


@dataclass(frozen=True)
class KeptByCompactions:
    """What compactions kept of a rule.

    Args:
        compactions: those before which the rule was in the context.
        in_summary: how many of them left a text that says the rule.
        in_context: after how many it still was in the context, as in a system prompt.
    """

    rule: str
    compactions: int
    in_summary: int
    in_context: int


@dataclass(frozen=True)
class AroundCompactions:
    """Adherence before and after the compactions of dialogs.

    Args:
        before, after: the mean score since the compaction before, and until the next one: first
            over the compactions of a dialog that have turns on both sides, then over dialogs.
        change: after minus before, within dialogs.
        kept: by rule.
    """

    dialogs: int
    compactions: int
    before: Estimate
    after: Estimate
    change: Estimate
    kept: tuple[KeptByCompactions, ...]


@dataclass(frozen=True)
class ContextEffects:
    """Adherence by what was in the context; () for a folder of an earlier version.

    Args:
        by_tokens_since: per bin of TOKEN_BINS, since the rule was last said in the context.
        by_calls: per bin of CALL_BINS, tool calls in the dialog so far.
        by_compactions: per bin of COMPACTION_BINS, compactions of the dialog so far.
        by_kind, by_polarity: of the rules that have one.
    """

    by_tokens_since: Estimates
    by_calls: Estimates
    by_compactions: Estimates
    by_kind: Mapping[str, Estimate]
    by_polarity: Mapping[str, Estimate]
    around: AroundCompactions


def breaches(run: Run) -> list[Breach]:
    """The turns that broke a rule, and whose cause was looked for."""
    return [
        Breach(row, label_of(record, probe), probe)
        for row, record, probe in _probes(run)
        if probe.cause is not None
    ]


def count_causes(found: Sequence[Breach]) -> dict[str, int]:
    """How many breaches have each cause, in the order of `CAUSES`, then of `RECALL_CAUSES` if a
    model was asked.
    """
    counts = Counter(breach.probe.cause.cause for breach in found if breach.probe.cause)
    asked = [cause for cause in RECALL_CAUSES if counts[cause]]
    return {cause: counts[cause] for cause in (*CAUSES, *asked)}


def context_effects(run: Run) -> ContextEffects:
    """Measures how well rules are kept by what was in the context."""

    def by(value: Callable[[RuleInContext], int | None], bins: Sequence[int]) -> Estimates:
        return _binned(run, value, bins)

    return ContextEffects(
        by_tokens_since=by(lambda context: context.tokens, TOKEN_BINS),
        by_calls=by(lambda context: context.calls, CALL_BINS),
        by_compactions=by(lambda context: context.compactions, COMPACTION_BINS),
        by_kind=_grouped(run, lambda probe: probe.rule_kind),
        by_polarity=_grouped(run, lambda probe: probe.polarity),
        around=_around(run),
    )


def _probes(run: Run) -> Iterator[tuple[int, LogDialog, LogProbe]]:
    """The scores of the rules that turns show, with their dialogs."""
    for_probes = set(run.manifest.probe_rules)
    for row, record in enumerate(run.dialogs):
        for probe in record.probes:
            if label_of(record, probe) not in for_probes:
                yield row, record, probe


def _binned(
    run: Run, value: Callable[[RuleInContext], int | None], bins: Sequence[int]
) -> Estimates:
    """The mean score over dialogs in each bin of a value."""
    entries = [
        (row, int(np.searchsorted(bins, number, side="right")) - 1, probe.score)
        for row, _, probe in _probes(run)
        if probe.context is not None and (number := value(probe.context)) is not None
    ]
    if not entries:
        return ()
    cells = statistics.cell_means(entries, (len(run.dialogs), len(bins)))
    return tuple(statistics.estimate_columns(cells, statistics.SCORES))


def _grouped(run: Run, name: Callable[[LogProbe], str | None]) -> dict[str, Estimate]:
    """The mean score over dialogs of the rules of each name."""
    names = sorted({found for *_, probe in _probes(run) if (found := name(probe))})
    column = {found: number for number, found in enumerate(names)}
    entries = [
        (row, column[found], probe.score)
        for row, _, probe in _probes(run)
        if (found := name(probe))
    ]
    cells = statistics.cell_means(entries, (len(run.dialogs), len(names)))
    estimates = statistics.estimate_columns(cells, statistics.SCORES) if names else []
    return dict(zip(names, estimates, strict=True))


def _around(run: Run) -> AroundCompactions:
    sides: dict[int, dict[int, list[float]]] = {}  # dialog -> compactions before it -> scores
    for row, record, probe in _probes(run):
        if record.compactions and probe.context is not None:
            by_count = sides.setdefault(row, {})
            by_count.setdefault(probe.context.compactions, []).append(probe.score)
    before, after = [], []
    for by_count in sides.values():
        pairs = [(n - 1, n) for n in sorted(by_count) if n - 1 in by_count]
        if pairs:
            before.append(np.mean([np.mean(by_count[left]) for left, _ in pairs]))
            after.append(np.mean([np.mean(by_count[right]) for _, right in pairs]))
    left, right = np.array(before, dtype=float), np.array(after, dtype=float)
    return AroundCompactions(
        dialogs=sum(bool(record.compactions) for record in run.dialogs),
        compactions=sum(len(record.compactions) for record in run.dialogs),
        before=statistics.estimate(left, statistics.SCORES),
        after=statistics.estimate(right, statistics.SCORES),
        change=statistics.estimate(right - left, statistics.DIFFERENCES),
        kept=_kept(run),
    )


def _kept(run: Run) -> tuple[KeptByCompactions, ...]:
    by_rule: dict[str, list[CompactedRule]] = {}
    for record in run.dialogs:
        for compaction in record.compactions:
            for item in compaction.rules:
                by_rule.setdefault(label_of(record, item), []).append(item)
    return tuple(
        KeptByCompactions(
            rule,
            len(items),
            sum(item.in_summary for item in items),
            sum(item.in_context for item in items),
        )
        for rule, items in by_rule.items()
    )
