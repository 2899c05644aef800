"""The opening sentences on a drift run, shared by its page and the terminal.

The first is the title of the run; the others add the score or the change, the limits of the run,
and the best fix.
"""

from collections.abc import Sequence

from holdfast.analysis.estimate_rows import EstimateRow, row_of
from holdfast.analysis.outcome import Findings, Outcome
from holdfast.analysis.series import Series
from holdfast.analysis.statistics import MIN_PROMPTS
from holdfast.analysis.verdicts import MIN_SAMPLES, verdict_on
from holdfast.plurals import count_of
from holdfast.records.drift_summary import Baseline
from holdfast.report.fix_sentences import fix_sentence, still_lost_sentence
from holdfast.report.run_title import MAX_RULES_NAMED, rule_names, title, title_has_score
from holdfast.report.score_phrases import could_be_chance, judged_in_both, scores_text
from holdfast.report.wording import points_apart


def opening(
    all_series: Sequence[Series], findings: Findings, baseline: Baseline | None = None
) -> list[str]:
    """The opening sentences of a run, given the findings on its first series."""
    if findings.outcome is Outcome.NOT_MEASURED:
        return [title(findings)]
    first_series = all_series[0]
    adoption = row_of(first_series.until(first_series.shared_rounds), "adoption")
    sentences = (
        title(findings),
        None if title_has_score(findings) else _score_sentence(findings.stability),
        _uninformative_sentence(findings.uninformative),
        _change_sentence(findings.stability) if title_has_score(findings) else None,
        _few_prompts_sentence(first_series),
        _adoption_sentence(adoption),
        fix_sentence(all_series),
        still_lost_sentence(all_series, baseline),
        _short_conversations_sentence(first_series),
    )
    return [sentence for sentence in sentences if sentence]


def _score_sentence(row: EstimateRow) -> str | None:
    """The score over all probes, for a title without it; None if no change was measured."""
    if row.change.mean is None:
        return None
    if verdict_on(row.change).sign:
        change = points_apart(row.change)
    else:
        change = f"the change of {could_be_chance(row.change)}"
    return f"Over all probes it scores {scores_text(row)}: {_with_sample(row, change)}."


def _change_sentence(row: EstimateRow) -> str | None:
    """The change between the scores in the title; None if there are too few to compare."""
    change = row.change
    if row.series.rounds == 1 or change.mean is None or change.n < MIN_SAMPLES:
        return None
    conversations = count_of(change.n, "conversation")
    note = judged_in_both(row)
    if verdict_on(change).sign:
        return f"That is {points_apart(change)}, over {conversations}{note}."
    return f"Over {conversations}, the change of {could_be_chance(change)}{note}."


def _with_sample(row: EstimateRow, change: str) -> str:
    """The words for a change.

    If it counts less than the scores beside it, only the conversations or the rules that were
    scored in both rounds, they say so.
    """
    num_pairs = row.change.n
    if row.points[0].n == num_pairs == row.points[-1].n:
        return f"{change}{judged_in_both(row)}"
    return f"in the {count_of(num_pairs, 'conversation')} scored in both, {change}"


def _uninformative_sentence(rows: Sequence[EstimateRow]) -> str | None:
    """Names the uninformative rules, which the title leaves out; None without any."""
    if not rows:
        return None
    names = rule_names(rows, MAX_RULES_NAMED)
    if len(rows) == 1:
        return f"{names} is uninformative: it scores as well without the system prompt."
    return f"{names} are uninformative: they score as well without the system prompt."


def _few_prompts_sentence(series: Series) -> str | None:
    """Warns that a few prompts say nothing about others; a single prompt is taken as intended."""
    count = len(set(series.prompts))
    if not 1 < count < MIN_PROMPTS or len(series.records) < MIN_SAMPLES:
        return None
    return (
        f"This holds for these {count} prompts; to say anything about others takes"
        f" {MIN_PROMPTS} or more."
    )


def _adoption_sentence(row: EstimateRow) -> str | None:
    """Says whether the agent adopts the other speaker's prompt; None if too little was measured."""
    change = row.change
    if row.points[0].mean is None or row.points[-1].mean is None:
        return None
    if row.series.rounds == 1 or change.n < MIN_SAMPLES:
        return None
    sign = verdict_on(change).sign
    scores = scores_text(row)
    if not sign:
        note = judged_in_both(row)
        return f"It shows no clear sign of adopting the other speaker’s prompt: {scores}{note}."
    direction = "more" if sign > 0 else "less"
    points = _with_sample(row, points_apart(change))
    return f"It adopts the other speaker’s prompt {direction}: {scores}, {points}."


def _short_conversations_sentence(series: Series) -> str | None:
    """Says that the sentences leave out rounds that most conversations did not reach."""
    if series.shared_rounds == series.rounds:
        return None
    return (
        f"Fewer than half of the conversations go beyond {count_of(series.shared_rounds, 'round')}."
    )
