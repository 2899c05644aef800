"""The title of a drift run: one sentence, which follows from the outcome of the run alone."""

from collections.abc import Sequence

from holdfast.analysis.estimate_rows import EstimateRow
from holdfast.analysis.outcome import MATTERS, Findings, Outcome
from holdfast.analysis.series import Series
from holdfast.analysis.unscored import WITHOUT_SCORE, is_unmeasured, unscored_by_reason
from holdfast.analysis.verdicts import MIN_SAMPLES
from holdfast.plurals import count_of, join_with_and, listing
from holdfast.records import Conversation
from holdfast.records.drift_summary import BaselineScores, Collapse
from holdfast.report.score_phrases import (
    capitalise,
    join_phrases,
    scope_of,
    scores_text,
    since_text,
    with_fix,
)
from holdfast.report.wording import percent, with_interval

MAX_WORDS = 25  # of a title
MAX_RULES_NAMED = 4  # in one sentence


def title(findings: Findings) -> str:
    """The title of a run, in at most `MAX_WORDS` words."""
    match findings.outcome:
        case Outcome.NOT_MEASURED:
            reason = nothing_measured(findings.stability.series.records)
            return reason or "Nothing was measured: no reply could be scored."
        case Outcome.MADE_WORSE:
            return _made_worse_title(findings.made_worse)
        case Outcome.UNINFORMATIVE:
            return "This run cannot show drift: replies without the system prompt score as well."
        case Outcome.BROKEN_DOWN:
            return _broken_down_title(findings.collapse)
        case Outcome.CUT:
            return (
                "Most replies to probes were cut at the token limit, too early to judge the rules."
            )
    if findings.never_followed or findings.lost:
        return _rules_title(findings)
    return _scores_title(findings)


def title_has_score(findings: Findings) -> bool:
    """Whether the title gives the score over all probes.

    Other titles are about replies that cannot be relied on, or about single rules.
    """
    if findings.outcome in (
        Outcome.NOT_MEASURED,
        Outcome.MADE_WORSE,
        Outcome.UNINFORMATIVE,
        Outcome.BROKEN_DOWN,
        Outcome.CUT,
    ):
        return False
    return not findings.never_followed and not findings.lost


def nothing_measured(records: Sequence[Conversation]) -> str | None:
    """Says why no reply could be scored; None if at least one has a score."""
    if not is_unmeasured(records):
        return None
    reasons = unscored_by_reason(records, "stability")
    total = reasons.total()
    if len(reasons) == 1:
        (reason,) = reasons
        return (
            f"Nothing was measured: {total:,} of {total:,} replies to probes"
            f" {WITHOUT_SCORE[reason]}."
        )
    parts = [f"{count:,} {WITHOUT_SCORE[reason]}" for reason, count in reasons.most_common()]
    return f"Nothing was measured: of {total:,} replies to probes, {join_with_and(parts)}."


def _made_worse_title(rules: Sequence[BaselineScores]) -> str:
    names = [f"“{rule.name}”" for rule in rules]
    if len(rules) > 1:
        return f"The prompt makes {count_of(len(rules), 'rule')} worse: {listing(names, 3)}."
    score = percent(rules[0].prompted.mean or 0.0)
    baseline = percent(rules[0].unprompted.mean or 0.0)
    return (
        f"The prompt makes {names[0]} worse: it scores {score} with the prompt and {baseline}"
        " without."
    )


def _broken_down_title(collapse: Collapse) -> str:
    if not collapse.collapsed_from_round:
        share = percent(collapse.share("broken"))
        return f"{share} of the turns are repetitions, so the scores say little about the prompt."
    count = len(collapse.collapsed_from_round)
    return (
        f"{count} of {count_of(collapse.conversations, 'conversation')} collapsed"
        " into repetition, so the scores say little about the prompt."
    )


# --- Titles that name rules


def _rules_title(findings: Findings) -> str:
    """Names the rules that the agent never follows or follows less often, as many of them as fit
    into `MAX_WORDS` words.
    """
    if len(findings.lost) == 1 and not findings.never_followed:
        sentence = _lost_rule_sentence(findings.lost[0], findings.stability.series)
        if _fits(sentence):
            return sentence
    for max_named in range(MAX_RULES_NAMED, 0, -1):
        sentence = _rules_sentence(findings, max_named)
        if _fits(sentence):
            return sentence
    return _rules_sentence(findings, 0)


def _fits(sentence: str) -> bool:
    return len(sentence.split()) <= MAX_WORDS


def _lost_rule_sentence(row: EstimateRow, series: Series) -> str:
    """'From round 3, the agent follows “signs” less often on this prompt.'"""
    start = capitalise(join_phrases(since_text(row), with_fix(series)))
    less_often = join_phrases("less often", scope_of(series))
    return f"{start}, the agent follows “{row.group}” {less_often}."


def _rules_sentence(findings: Findings, max_named: int) -> str:
    """'The agent never follows “a” and follows “b” and “c” less often over time.'

    Args:
        max_named: how many rules to name after each verb; if 0, they are only counted.
    """
    series = findings.stability.series
    agent = capitalise(join_phrases(scope_of(series), with_fix(series), "the agent"))
    never_kept = [row for row in findings.never_followed if not row.kept_in_any_round]
    hardly_kept = [row for row in findings.never_followed if row.kept_in_any_round]
    verbs = []
    if never_kept:
        verbs.append(f"never follows {rule_names(never_kept, max_named)}")
    if hardly_kept:
        verbs.append(f"hardly ever follows {rule_names(hardly_kept, max_named)}")
    if findings.lost:
        starts = {since_text(row) for row in findings.lost}
        start = starts.pop() if len(starts) == 1 else "over time"
        verbs.append(f"follows {_lost_names(findings.lost, max_named)} less often {start}")
    return f"{agent} {join_with_and(verbs)}."


def rule_names(rows: Sequence[EstimateRow], max_named: int) -> str:
    """'“a”, “b” and 2 more', or '4 rules' if `max_named` is 0."""
    if not max_named:
        return count_of(len(rows), "rule")
    return listing([f"“{row.group}”" for row in rows], max_named)


def _lost_names(rows: Sequence[EstimateRow], max_named: int) -> str:
    """Names lost rules, the largest losses first.

    Of rules that lose equally much, all are named or none, as the choice would be arbitrary.
    """
    if len(rows) <= max_named:
        return rule_names(rows, max_named)
    by_loss = sorted(rows, key=_points_lost, reverse=True)
    while max_named and _points_lost(by_loss[max_named - 1]) == _points_lost(by_loss[max_named]):
        max_named -= 1
    return rule_names(by_loss, max_named)


def _points_lost(row: EstimateRow) -> int:
    """The fall from the first round to the last, in points rounded as they are displayed."""
    return -round(100 * (row.change.mean or 0.0))


# --- Titles that give the score over all probes


def _scores_title(findings: Findings) -> str:
    """Says whether the agent drifts, and gives its score in the first round and in the last.

    With too few conversations for a verdict, it gives the scores only.
    """
    row = findings.stability
    fix = with_fix(row.series)
    scope = scope_of(row.series)
    agent = capitalise(join_phrases(fix, "the agent"))
    if row.points[0].mean is None or row.points[-1].mean is None:
        return f"{agent} was not probed in every round: no verdict yet."
    if row.series.rounds == 1:
        return _one_round_title(row, agent, scope)
    scores = scores_text(row, on_probes=True)
    match findings.outcome:
        case Outcome.TOO_FEW:
            sample = join_phrases(f"Only {count_of(row.points[-1].n, 'conversation')}", fix)
            return f"{sample}, too few for a verdict: the agent scores {scores}."
        case Outcome.HOLDS:
            no_drift = join_phrases(f"No drift of {100 * MATTERS:.0f} points or more", fix, scope)
            return f"{no_drift}: the agent scores {scores}."
        case Outcome.UNDECIDED:
            return f"{join_phrases('No clear drift', fix, scope)}: the agent scores {scores}."
        case Outcome.IMPROVES:
            return f"{join_phrases(agent, 'improves', scope)}: it scores {scores}."
        case _:
            return f"{join_phrases(agent, 'drifts', scope)}: it scores {scores}."


def _one_round_title(row: EstimateRow, agent: str, scope: str) -> str:
    score = row.points[0]
    text = join_phrases(agent, f"scores {with_interval(score, percent)} in round 1", scope)
    if score.n < MIN_SAMPLES:
        return f"{text} (only {count_of(score.n, 'conversation')}, too few for a verdict)."
    return f"{text}."
