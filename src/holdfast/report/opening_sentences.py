"""The opening sentences on a drift run, shared by its page and the terminal."""

from collections.abc import Iterator, Sequence

from holdfast.analysis.estimate_rows import EstimateRow, row_of
from holdfast.analysis.outcome import MATTERS, Findings, Outcome
from holdfast.analysis.series import Series
from holdfast.analysis.statistics import MIN_PROMPTS
from holdfast.analysis.unscored import WITHOUT_SCORE, is_unmeasured, unscored_by_reason
from holdfast.analysis.verdicts import MIN_SAMPLES, verdict_on
from holdfast.plurals import count_of, from_to, join_with_and, listing
from holdfast.records import Conversation
from holdfast.records.run_summary import Baseline, BaselineScores, Collapse
from holdfast.report.fix_sentences import fix, still_lost
from holdfast.report.score_phrases import (
    capitalise,
    could_be_chance,
    join_phrases,
    judged_in_both,
    scope_of,
    scores_text,
    since,
    with_fix,
)
from holdfast.report.wording import percent, points_apart, with_interval

_Rows = Sequence[EstimateRow]

MAX_WORDS = 25  # of the first sentence
_MAX_RULES_NAMED = 4  # in one sentence
_UNSCORED = (  # the outcomes whose title has no score
    Outcome.MADE_WORSE,
    Outcome.UNINFORMATIVE,
    Outcome.BROKEN_DOWN,
    Outcome.CUT,
)


def opening(
    series: Sequence[Series], findings: Findings, baseline: Baseline | None = None
) -> list[str]:
    """The opening sentences of a run, given the findings on its first series.

    The first sentence is the title, and follows from the outcome alone. The average change and the
    best fix come after it.
    """
    if findings.outcome is Outcome.NOT_MEASURED:
        return [title(findings)]
    # a title without the score over all probes is followed by that score, any other by the change
    has_no_score = findings.outcome in _UNSCORED or _rules_headline(findings) is not None
    sentences = (
        title(findings),
        _average(findings.stability) if has_no_score else None,
        _uninformative_line(findings.uninformative),
        None if has_no_score else _change(findings.stability),
        _few_prompts(series[0]),
        _adoption(row_of(series[0].until(series[0].shared_rounds), "adoption")),
        fix(series),
        still_lost(series, baseline),
        _short_conversations(series[0]),
    )
    return [sentence for sentence in sentences if sentence]


def title(findings: Findings) -> str:
    """The title of a run, in at most `MAX_WORDS` words."""
    if findings.outcome is Outcome.NOT_MEASURED:
        nothing = nothing_measured(findings.stability.series.records)
        return nothing or "Nothing was measured: no reply could be scored."
    if findings.outcome is Outcome.MADE_WORSE:
        return _made_worse(findings.made_worse)
    if findings.outcome is Outcome.UNINFORMATIVE:
        return "This run cannot show drift: replies without the system prompt score as well."
    if findings.outcome is Outcome.BROKEN_DOWN:
        return _broken_down(findings.collapse)
    if findings.outcome is Outcome.CUT:
        return "Most replies to probes were cut at the token limit, too early to judge the rules."
    return _rules_headline(findings) or _headline(findings)


def _made_worse(rows: Sequence[BaselineScores]) -> str:
    names = [f"“{row.name}”" for row in rows]
    if len(rows) > 1:
        return f"The prompt makes {count_of(len(rows), 'rule')} worse: {listing(names, 3)}."
    prompted = rows[0].prompted.mean or 0.0
    unprompted = rows[0].unprompted.mean or 0.0
    return (
        f"The prompt makes {names[0]} worse: it scores {percent(prompted)} with the prompt and"
        f" {percent(unprompted)} without."
    )


def _broken_down(collapse: Collapse) -> str:
    if not collapse.collapsed_from_round:
        share = percent(collapse.share("broken"))
        return f"{share} of the turns are repetitions, so the scores say little about the prompt."
    collapsed = len(collapse.collapsed_from_round)
    return (
        f"{collapsed} of {count_of(collapse.conversations, 'conversation')} broke"
        " down into repetition, so the scores say little about the prompt."
    )


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


def _headline(findings: Findings) -> str:
    """Says whether the agent drifts, in at most `MAX_WORDS` words.

    With too few conversations for a verdict, it gives the first and the last score only.
    """
    row = findings.stability
    series = row.series
    first = row.points[0]
    last = row.points[-1]
    scope = scope_of(series)
    fixed = with_fix(series)
    agent = capitalise(join_phrases(fixed, "the agent"))
    conversations = count_of(last.n, "conversation")
    if last.mean is None or first.mean is None:
        return f"{agent} was not probed in every round: no verdict yet."
    if series.rounds == 1:
        score = join_phrases(f"scores {with_interval(last, percent)} in round 1", scope)
        if last.n < MIN_SAMPLES:
            return f"{agent} {score} (only {conversations}, too few for a verdict)."
        return f"{agent} {score}."
    scores = scores_text(row, on_probes=True)
    if findings.outcome is Outcome.TOO_FEW:
        sample = join_phrases(f"Only {conversations}", fixed)
        return f"{sample}, too few for a verdict: the agent scores {scores}."
    if findings.outcome is Outcome.HOLDS:
        no_drift = f"No drift of {100 * MATTERS:.0f} points or more"
        return f"{join_phrases(no_drift, fixed, scope)}: the agent scores {scores}."
    if findings.outcome is Outcome.UNDECIDED:
        return f"{join_phrases('No clear drift', fixed, scope)}: the agent scores {scores}."
    if findings.outcome is Outcome.IMPROVES:
        return f"{join_phrases(agent, 'improves', scope)}: it scores {scores}."
    return f"{join_phrases(agent, 'drifts', scope)}: it scores {scores}."


def _rules_headline(findings: Findings) -> str | None:
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


def _versions(series: Series, never: _Rows, less: _Rows) -> Iterator[str]:
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


def _uninformative_line(rows: _Rows) -> str | None:
    """Names the uninformative rules, which the first sentence leaves out; None without any."""
    if not rows:
        return None
    names = _names(rows, _MAX_RULES_NAMED)
    if len(rows) == 1:
        return f"{names} is uninformative: it scores as well without the system prompt."
    return f"{names} are uninformative: they score as well without the system prompt."


def _names(rows: _Rows, most: int) -> str:
    """'“a”, “b” and 2 more', or '4 rules' if `most` is 0."""
    if not most:
        return count_of(len(rows), "rule")
    return listing([f"“{row.group}”" for row in rows], most)


def _lost_names(rows: _Rows, most: int) -> str:
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


def _average(row: EstimateRow) -> str | None:
    """The scores over all probes, for a title without any; None if no change was measured."""
    if row.change.mean is None:
        return None
    if verdict_on(row.change).sign:
        change = points_apart(row.change)
    else:
        change = f"the change of {could_be_chance(row.change)}"
    return f"Over all probes it scores {scores_text(row)}: {_with_pairs(row, change)}."


def _with_pairs(row: EstimateRow, change: str) -> str:
    """A change with what it counts, if the scores beside it count more: only the conversations, or
    only the rules, that were scored in both rounds.
    """
    paired = row.change.n
    if row.points[0].n == paired == row.points[-1].n:
        return f"{change}{judged_in_both(row)}"
    return f"in the {count_of(paired, 'conversation')} scored in both, {change}"


def _change(row: EstimateRow) -> str | None:
    """The change between the scores in the title; None if there are too few to compare."""
    change = row.change
    if row.series.rounds == 1 or change.mean is None or change.n < MIN_SAMPLES:
        return None
    conversations = count_of(change.n, "conversation")
    note = judged_in_both(row)
    if verdict_on(change).sign:
        return f"That is {points_apart(change)}, over {conversations}{note}."
    return f"Over {conversations}, the change of {could_be_chance(change)}{note}."


def _few_prompts(first: Series) -> str | None:
    """Warns that a few prompts say nothing about others; a single prompt is taken as intended."""
    count = len(set(first.prompts))
    if not 1 < count < MIN_PROMPTS or len(first.records) < MIN_SAMPLES:
        return None
    return (
        f"This holds for these {count} prompts; to say anything about others takes"
        f" {MIN_PROMPTS} or more."
    )


def _adoption(row: EstimateRow) -> str | None:
    """Says whether the agent adopts the other speaker's prompt; None if too little was measured."""
    first = row.points[0]
    last = row.points[-1]
    change = row.change
    if first.mean is None or last.mean is None or row.series.rounds == 1 or change.n < MIN_SAMPLES:
        return None
    sign = verdict_on(change).sign
    scores = scores_text(row)
    if not sign:
        note = judged_in_both(row)
        return f"It shows no clear sign of adopting the other speaker’s prompt: {scores}{note}."
    direction = "more" if sign > 0 else "less"
    points = _with_pairs(row, points_apart(change))
    return f"It adopts the other speaker’s prompt {direction}: {scores}, {points}."


def _short_conversations(first: Series) -> str | None:
    """Says that the sentences leave out rounds that most conversations did not reach."""
    if first.shared_rounds == first.rounds:
        return None
    return (
        f"Fewer than half of the conversations go beyond {count_of(first.shared_rounds, 'round')}."
    )


def describe_conversations(all_series: Sequence[Series]) -> str:
    """'24 conversations of 8 rounds, under each of 3 methods'; one method is not mentioned."""
    counts = sorted({len(series.records) for series in all_series})
    number = from_to(counts[0], counts[-1])
    noun = "conversation" if counts[-1] == 1 else "conversations"
    rounds = count_of(all_series[0].rounds, "round")
    methods = len({series.method for series in all_series})
    if methods > 1:
        return f"{number} {noun} of {rounds}, under each of {methods} methods"
    return f"{number} {noun} of {rounds}"
