"""The sentences that name the rules which a prompt loses, and those that say nothing."""

from collections.abc import Iterator, Sequence

from holdfast.analysis.estimates import EstimateRow
from holdfast.analysis.outcome import Findings
from holdfast.analysis.series import Series
from holdfast.plurals import count_of, join_with_and, listing
from holdfast.report.rule_falls import since
from holdfast.report.score_phrases import capitalised, scope_of, with_fix

Rows = Sequence[EstimateRow]
MAX_WORDS = 25  # of the first sentence
_MAX_RULES_NAMED = 4  # rules named in one sentence


def rules_headline(findings: Findings) -> str | None:
    """Names the rules that the agent never follows or follows less often, in `MAX_WORDS` words."""
    never = findings.never_followed
    less = findings.lost
    if not never and not less:
        return None
    texts = [*_rule_texts(findings.stability.series, never, less)]
    return next((text for text in texts if len(text.split()) <= MAX_WORDS), texts[-1])


def _rule_texts(item: Series, never: Rows, less: Rows) -> Iterator[str]:
    """The same sentence, naming fewer and fewer rules."""
    scope = scope_of(item)
    fixed = with_fix(item)
    if len(less) == 1 and not never:
        yield (
            f"{capitalised(since(less[0]))}{fixed}, the agent follows “{less[0].group}” less"
            f" often{scope}."
        )
    agent = capitalised(f"{scope}{fixed} the agent".strip())
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
    """Names the uninformative rules, which the first sentence leaves out; None if none."""
    if not rows:
        return None
    names = _names(rows, _MAX_RULES_NAMED)
    if len(rows) == 1:
        return f"{names} is uninformative: it scores as well without the system prompt."
    return f"{names} are uninformative: they score as well without the system prompt."


def _names(rows: Rows, most: int) -> str:
    """'“a”, “b” and 2 more', or '4 rules' if none should be named."""
    if not most:
        return count_of(len(rows), "rule")
    return listing([f"“{row.group}”" for row in rows], most)


def _lost_names(rows: Rows, most: int) -> str:
    """The names of rules that are lost; of too many those that lose most, and where several lose
    the same, all of these or none.
    """
    if len(rows) <= most:
        return _names(rows, most)
    by_loss = sorted(rows, key=_points_lost, reverse=True)
    while most and _points_lost(by_loss[most - 1]) == _points_lost(by_loss[most]):
        most -= 1
    return _names(by_loss, most)


def _points_lost(row: EstimateRow) -> int:
    """By how many points, as they are shown, a rule is followed less in the last round."""
    return -round(100 * (row.change.mean or 0.0))
