"""The outcome of a drift run, which decides its title and its next step.

Several outcomes may be true of a run. The first in the order of `Outcome` counts, because it makes
the later ones meaningless: a fall in the scores of a rule says nothing about the prompt if they
were as high without it.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import NormalDist

import numpy as np

from holdfast.analysis.collapse import BROKEN_SHARE_WARNING, count_turns, without_collapsed
from holdfast.analysis.estimate_rows import EstimateRow, row_of, rule_rows
from holdfast.analysis.prompt_effect import MADE_WORSE, UNINFORMATIVE
from holdfast.analysis.series import Series, leave_out_rules
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.unscored import unscored_by_reason
from holdfast.analysis.verdicts import MIN_SAMPLES, SUPPORTED, error_at, verdict_on, within
from holdfast.records.drift_summary import Baseline, BaselineScores, Collapse

MATTERS = 0.1  # smaller changes do not count as drift
# Factors by which a run may have to grow before verdicts on it are read again: at least this much,
# as every reading costs some certainty, and at most this much, as larger needs are not reported.
_MIN_GROWTH = 1.5
_MAX_GROWTH = 10


class Outcome(StrEnum):
    """The possible outcomes of a run; the first that applies counts."""

    NOT_MEASURED = "nothing measured"  # no reply could be scored
    MADE_WORSE = "made worse"  # a rule is followed less with the prompt than without it
    UNINFORMATIVE = "uninformative"  # all rules are followed as well without the prompt
    # many turns are repeated, and the conversations without a collapse have another outcome
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
        """Whether the outcome comes after `BROKEN_DOWN`, so that in a run with broken turns it
        counts only if the conversations that did not collapse show it too.

        `TOO_FEW` counts in any case: how many of a few conversations collapsed is no finding.
        """
        order = list(Outcome)
        is_later = order.index(self) > order.index(Outcome.BROKEN_DOWN)
        return is_later and self is not Outcome.TOO_FEW


@dataclass(frozen=True, eq=False)
class Findings:
    """The findings on a series, over the rounds that half of its conversations reach.

    Attributes:
        outcome: the first that applies.
        stability: over all probes but those of uninformative rules.
        rules: a row per rule, if prompts have several.
        never_followed: the rows of `rules` that are never followed.
        lost: the rows of `rules` that end clearly lower than they began.
        uninformative: the rows of `rules` that score as well without the system prompt.
        made_worse: rules, or prompts with a single rule, that the prompt makes worse.
        collapse: the counts of broken turns in all conversations.
    """

    outcome: Outcome
    stability: EstimateRow
    rules: tuple[EstimateRow, ...]
    never_followed: tuple[EstimateRow, ...]
    lost: tuple[EstimateRow, ...]
    uninformative: tuple[EstimateRow, ...]
    made_worse: tuple[BaselineScores, ...]
    collapse: Collapse


def findings_of(series: Series, baseline: Baseline | None = None) -> Findings:
    """Returns the findings on a series, given its baseline if that was measured."""
    collapse = count_turns(series.records)
    findings = _findings_despite_breakdown(series, baseline, collapse)
    if collapse.share("broken") < BROKEN_SHARE_WARNING:
        return findings
    if not findings.outcome.counts_after_breakdown:
        return findings
    if _unbroken_agree(series, baseline, findings):
        return findings
    return replace(findings, outcome=Outcome.BROKEN_DOWN)


def _unbroken_agree(series: Series, baseline: Baseline | None, findings: Findings) -> bool:
    """Whether the conversations that did not collapse show the same; False if they are too few."""
    other_conversations = without_collapsed(series, findings.collapse)
    if len(other_conversations.records) < MIN_SAMPLES:
        return False
    unbroken = _findings_despite_breakdown(other_conversations, baseline, findings.collapse)
    lost = {row.group for row in findings.lost}
    still_lost = {row.group for row in unbroken.lost}
    return unbroken.outcome is findings.outcome and lost <= still_lost


def _findings_despite_breakdown(
    series: Series, baseline: Baseline | None, collapse: Collapse
) -> Findings:
    """Returns the findings on all conversations, whether or not they have collapsed."""
    shared = series.until(series.shared_rounds)
    rules = tuple(rule_rows([shared]))
    uninformative = tuple(row for row in rules if is_uninformative(row, baseline))
    informative = leave_out_rules(shared, [(row.case, row.rule) for row in uninformative])
    findings = Findings(
        outcome=Outcome.UNDECIDED,
        stability=row_of(informative if informative.measured("stability") else shared, "stability"),
        rules=rules,
        never_followed=tuple(row for row in rules if row.never_followed),
        lost=tuple(row for row in rules if is_lost(row) and row not in uninformative),
        uninformative=uninformative,
        made_worse=tuple(
            row for row in (baseline.cases if baseline else ()) if row.verdict == MADE_WORSE
        ),
        collapse=collapse,
    )
    return replace(findings, outcome=_outcome(findings, baseline))


def _outcome(findings: Findings, baseline: Baseline | None) -> Outcome:
    """The first outcome that applies to the findings."""
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
    return baseline.all.verdict == UNINFORMATIVE


def most_are_cut(series: Series) -> bool:
    """Whether more stability probes are left unscored because their replies were cut than are
    scored.
    """
    num_scored = sum(len(record.stability_probes) for record in series.records)
    cut = unscored_by_reason(series.records, "stability")["cut"]
    return bool(cut > num_scored)


def is_lost(row: EstimateRow) -> bool:
    """Whether a rule ends clearly lower than it began."""
    return row.lower_from_round is not None and not row.never_followed


def is_uninformative(row: EstimateRow, baseline: Baseline | None) -> bool:
    """Whether a rule scores as well without the system prompt."""
    return baseline is not None and baseline.verdict_on(row.case, row.rule) == UNINFORMATIVE


def conversations_needed(value: Estimate, target: float, look: int) -> int | None:
    """Returns how many conversations, rounded up to tens, would distinguish a mean from 0 or from
    `target` when verdicts are read the next time, if its mean and deviation stay as they are.

    Returns None if the mean is distinguished already, if it has no deviation, or if more than
    `_MAX_GROWTH` times the conversations would be needed.

    Args:
        look: how often verdicts on the run have been read, this time included.
    """
    if value.mean is None or not value.sd or verdict_on(value).sign:
        return None
    distance = max(abs(value.mean), abs(value.mean - target))
    deviations = -NormalDist().inv_cdf(error_at(look + 1) / 2)
    fewest = 10 * math.ceil(_MIN_GROWTH * value.n / 10)
    for count in range(fewest, _MAX_GROWTH * value.n + 10, 10):
        # how far the unseen conversation that intervals allow for may move the mean
        unseen_shift = (1 + abs(value.mean)) / (count + 1)
        if deviations * value.sd / math.sqrt(count) + unseen_shift <= distance:
            return count
    return None
