"""The outcome of a drift run: what its title says, and what its next step follows from.

Several things may be true of a run. The first of `Outcome` that applies counts, because it makes
those after it meaningless: a fall in the scores of a rule says nothing about the prompt if they
were as high without it.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import NormalDist

import numpy as np

from holdfast.analysis.collapse import (
    BROKEN_SHARE_WARNING,
    Collapse,
    count_turns,
    without_collapsed,
)
from holdfast.analysis.estimates import EstimateRow, row_of, rule_rows
from holdfast.analysis.prompt_effect import UNINFORMATIVE, Baseline
from holdfast.analysis.series import Series, leaving_out
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.unscored import unscored_by_reason
from holdfast.analysis.verdicts import MIN_SAMPLES, SUPPORTED, error_at, verdict_on, within
from holdfast.records.run_summary import BaselineScores

MATTERS = 0.1  # smaller changes do not count as drift
_MIN_GROWTH = 1.5  # as many conversations at the next look, as every look costs some certainty
_MAX_GROWTH = 10  # larger needs are not reported


class Outcome(StrEnum):
    """The possible outcomes of a run, in the order in which they count."""

    NOT_MEASURED = "nothing measured"  # no reply could be scored
    MADE_WORSE = "made worse"  # a rule is followed less with the prompt than without it
    UNINFORMATIVE = "uninformative"  # all rules are followed as well without the prompt
    # conversations repeat themselves, and the rest shows something else
    BROKEN_DOWN = "broken down"
    CUT = "cut"  # most replies were cut at the token limit, too early to judge the rules
    TOO_FEW = "too few conversations"
    DRIFTS = "drifts"  # at least one rule is lost; others may never be followed
    NEVER_FOLLOWED = "never followed"  # rules are never followed, and no other is lost
    ONE_ROUND = "one round"
    IMPROVES = "improves"
    HOLDS = "holds"  # a fall that matters is ruled out
    UNDECIDED = "undecided"

    @property
    def counts_after_breakdown(self) -> bool:
        """Whether it holds only if the conversations that did not break down show it too."""
        order = list(Outcome)
        return order.index(self) > order.index(Outcome.BROKEN_DOWN)


@dataclass(frozen=True, eq=False)
class Findings:
    """The findings on the first series, over the rounds that half of its conversations reach.

    Attributes:
        outcome: the first that applies.
        stability: over all probes but those of uninformative rules.
        rules: a row per rule, if prompts have several; the next three are some of them.
        lost: rules that end clearly lower than they began.
        made_worse: rules, or prompts of a single rule, that the prompt makes worse.
        collapse: of all conversations.
    """

    outcome: Outcome
    stability: EstimateRow
    rules: tuple[EstimateRow, ...]
    never_followed: tuple[EstimateRow, ...]
    lost: tuple[EstimateRow, ...]
    uninformative: tuple[EstimateRow, ...]
    made_worse: tuple[BaselineScores, ...]
    collapse: Collapse


def findings_of(first: Series, baseline: Baseline | None = None) -> Findings:
    """The findings on a series, given its scores without a system prompt if they were measured."""
    collapse = count_turns(first.records)
    findings = _despite_breakdown(first, baseline, collapse)
    if (
        collapse.share("broken") < BROKEN_SHARE_WARNING
        or not findings.outcome.counts_after_breakdown
        or _unbroken_agree(first, baseline, findings)
    ):
        return findings
    return replace(findings, outcome=Outcome.BROKEN_DOWN)


def _unbroken_agree(first: Series, baseline: Baseline | None, findings: Findings) -> bool:
    """Whether the conversations that did not break down, if they are enough, show the same."""
    rest = without_collapsed(first, findings.collapse)
    if len(rest.records) < MIN_SAMPLES:
        return False
    unbroken = _despite_breakdown(rest, baseline, findings.collapse)
    lost, still_lost = ({row.group for row in side.lost} for side in (findings, unbroken))
    return unbroken.outcome is findings.outcome and lost <= still_lost


def _despite_breakdown(first: Series, baseline: Baseline | None, collapse: Collapse) -> Findings:
    """The findings on all conversations, whether or not they have broken down."""
    shared = first.until(first.shared_rounds)
    rules = tuple(rule_rows([shared]))
    uninformative = tuple(row for row in rules if is_uninformative(row, baseline))
    informative = leaving_out(shared, [(row.case, row.rule) for row in uninformative])
    findings = Findings(
        outcome=Outcome.UNDECIDED,
        stability=row_of(informative if informative.measured("stability") else shared, "stability"),
        rules=rules,
        never_followed=tuple(row for row in rules if row.never_followed),
        lost=tuple(row for row in rules if is_lost(row) and row not in uninformative),
        uninformative=uninformative,
        made_worse=baseline.made_worse if baseline else (),
        collapse=collapse,
    )
    return replace(findings, outcome=_outcome(findings, baseline))


def _outcome(findings: Findings, baseline: Baseline | None) -> Outcome:
    row = findings.stability
    if np.isnan(row.values).all():
        return Outcome.NOT_MEASURED
    if findings.made_worse:
        return Outcome.MADE_WORSE
    if baseline and _cannot_show_drift(findings, baseline):
        return Outcome.UNINFORMATIVE
    if most_are_cut(row.series):
        return Outcome.CUT
    if row.points[-1].n < MIN_SAMPLES:
        return Outcome.TOO_FEW
    sign = verdict_on(row.change).sign
    if findings.lost or (sign < 0 and not findings.never_followed):
        return Outcome.DRIFTS
    if findings.never_followed:
        return Outcome.NEVER_FOLLOWED
    if row.series.rounds == 1:
        return Outcome.ONE_ROUND
    if sign > 0:
        return Outcome.IMPROVES
    falls_little = within(row.change, -MATTERS, math.inf) == SUPPORTED
    return Outcome.HOLDS if falls_little else Outcome.UNDECIDED


def _cannot_show_drift(findings: Findings, baseline: Baseline) -> bool:
    """Whether replies without the system prompt pass every probe as well."""
    if findings.rules:
        return len(findings.uninformative) == len(findings.rules)
    return baseline.overall.verdict == UNINFORMATIVE


def most_are_cut(series: Series) -> bool:
    """Whether more probes of stability are not judged, as their replies were cut, than are."""
    scored = sum(len(record.stability_probes) for record in series.records)
    cut = unscored_by_reason(series.records, "stability")["cut"]
    return bool(cut > scored)


def is_lost(row: EstimateRow) -> bool:
    """Whether a rule ends clearly lower than it began."""
    return row.lower_from_round is not None and not row.never_followed


def is_uninformative(row: EstimateRow, baseline: Baseline | None) -> bool:
    """Whether a rule scores as well without the system prompt."""
    return baseline is not None and baseline.verdict_on(row.case, row.rule) == UNINFORMATIVE


def conversations_needed(value: Estimate, other: float, look: int) -> int | None:
    """How many conversations, rounded up to tens, would distinguish a mean from 0 or from `other`
    at the look after this one, if its mean and deviation stay; None if too many would.
    """
    if value.mean is None or not value.sd or verdict_on(value).sign:
        return None
    apart = max(abs(value.mean), abs(value.mean - other))
    deviations = -NormalDist().inv_cdf(error_at(look + 1) / 2)
    fewest = 10 * math.ceil(_MIN_GROWTH * value.n / 10)
    for count in range(fewest, _MAX_GROWTH * value.n + 10, 10):
        unseen = (1 + abs(value.mean)) / (count + 1)  # what the unseen conversation may change
        if deviations * value.sd / math.sqrt(count) + unseen <= apart:
            return count
    return None
