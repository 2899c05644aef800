"""The sentences that name the rules which a prompt loses, and the rules that say nothing."""

from collections.abc import Iterator, Sequence

from holdfast.analysis.estimates import EstimateRow
from holdfast.analysis.outcome import Findings
from holdfast.analysis.series import Series
from holdfast.plurals import count_of, join_with_and, listing
from holdfast.report.rule_falls import since
from holdfast.report.score_phrases import capitalise, join_phrases, scope_of, with_fix

Rows = Sequence[EstimateRow]
MAX_WORDS = 25  # of the first sentence
_MAX_RULES_NAMED = 4  # in one sentence


def rules_headline(findings: Findings) -> str | None:
    """Names the rules that the agent never follows or follows less often.

    Returns:
        The sentence that names most rules in at most `MAX_WORDS` words; None if there is no such
        rule.
    """
    never = findings.never_followed
    less = findings.lost
    if not never and not less:
        return None
    versions = list(_versions(findings.stability.series, never, less))
    return next((text for text in versions if len(text.split()) <= MAX_WORDS), versions[-1])


def _versions(series: Series, never: Rows, less: Rows) -> Iterator[str]:
    """Yields the same sentence in several versions, which name fewer and fewer rules."""
    scope = scope_of(series)
    fixed = with_fix(series)
    if len(less) == 1 and not never:
        when = capitalise(join_phrases(since(less[0]), fixed))
        less_often = join_phrases("less often", scope)
        yield f"{when}, the agent follows “{less[0].group}” {less_often}."
    agent = capitalise(join_phrases(scope, fixed, "the agent"))
    rounds = {since(row) for row in less}
    when = rounds.pop() if len(rounds) == 1 else "over time"
    always = [row for row in never if not row.kept_in_any_round]
    mostly = [row for row in never if row.kept_in_any_round]
    for most in range(_MAX_RULES_NAMED, -1, -1):
        verbs = []
        if always:
            verbs.append(f"never follows {_names(always, most)}")
        if mostly:
            verbs.append(f"hardly ever follows {_names(mostly, most)}")
        if less:
            verbs.append(f"follows {_lost_names(less, most)} less often {when}")
        yield f"{agent} {join_with_and(verbs)}."


def uninformative_line(rows: Rows) -> str | None:
    """Names the uninformative rules, which the first sentence leaves out; None without any."""
    if not rows:
        return None
    names = _names(rows, _MAX_RULES_NAMED)
    if len(rows) == 1:
        return f"{names} is uninformative: it scores as well without the system prompt."
    return f"{names} are uninformative: they score as well without the system prompt."


def _names(rows: Rows, most: int) -> str:
    """'“a”, “b” and 2 more', or '4 rules' if `most` is 0."""
    if not most:
        return count_of(len(rows), "rule")
    return listing([f"“{row.group}”" for row in rows], most)


def _lost_names(rows: Rows, most: int) -> str:
    """Names at most `most` lost rules, the largest losses first.

    Of rules that lose equally much, all are named or none, as the choice would be arbitrary.
    """
    if len(rows) <= most:
        return _names(rows, most)
    by_loss = sorted(rows, key=_points_lost, reverse=True)
    while most and _points_lost(by_loss[most - 1]) == _points_lost(by_loss[most]):
        most -= 1
    return _names(by_loss, most)


def _points_lost(row: EstimateRow) -> int:
    """The fall from the first round to the last, in points rounded as they are displayed."""
    return -round(100 * (row.change.mean or 0.0))
