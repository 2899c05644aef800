"""How much of a chat the model read, in sentences and as a table."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.analysis.context_summary_effect import context_summary_effect
from holdfast.analysis.series import NO_FIX, Series
from holdfast.analysis.truncation import PROMPT_KEPT, PROMPT_LOST, truncation_of
from holdfast.plurals import count_of, rounds_from_to
from holdfast.records import Run
from holdfast.records.drift_summary import Truncation
from holdfast.records.identity import ConversationsIdentity
from holdfast.report.page import Table
from holdfast.report.wording import plain, with_verdict

RAISE_CONTEXT = (  # a clause that begins with a verb
    "raise the server's context (Ollama: OLLAMA_CONTEXT_LENGTH; llama-server: --ctx-size), so that"
    " it reads the whole chat"
)


@dataclass(frozen=True)
class _CutSentences:
    """How a server cut off the chats of a series."""

    finding: str  # what it left out, and from which rounds on
    count: str  # which of its counts show that
    meaning: tuple[str, ...]  # further sentences, on canaries and on what follows from them


def truncation_lines(all_series: Sequence[Series]) -> list[str]:
    """Sentences on each series whose chats a server cut off; [] if none was.

    What is the same for every series is said once, around the counts of each.
    """
    cuts = [
        _describe_cut(series, truncation)
        for series in all_series
        if (truncation := truncation_of(series)) is not None
    ]
    if len({(cut.finding, cut.meaning) for cut in cuts}) == 1:
        return [cuts[0].finding, *(cut.count for cut in cuts), *cuts[0].meaning]
    return [line for cut in cuts for line in (cut.finding, cut.count, *cut.meaning)]


def _describe_cut(series: Series, truncation: Truncation) -> _CutSentences:
    """Says what the server left out, from which rounds on, and which counts show it."""
    first = min(truncation.from_round.values())
    last = max(truncation.from_round.values())
    rounds = rounds_from_to(first, last)
    count = _count_sentence(series, truncation)
    before = plain(truncation.canary_before)
    after = plain(truncation.canary_after)
    canary = f"The canary is known {before} before and {after} after."
    if truncation.verdict == PROMPT_LOST:
        finding = f"The server stopped reading the system prompt in {rounds}."
        conclusion = "From there on this measures a prompt that was cut off, not drift."
        return _CutSentences(finding, count, (canary, conclusion))
    if truncation.verdict == PROMPT_KEPT:
        finding = (
            f"The server leaves out a part of the dialog from {rounds} on, but keeps the system"
            " prompt."
        )
        return _CutSentences(finding, count, (canary,))
    if truncation.canary_after.n:
        conclusion = f"{canary} That is inconclusive."
    else:
        conclusion = (
            "To find out which, add --canary to `holdfast drift` or `holdfast check`, with another"
            " --out."
        )
    finding = f"The server reads no more of the dialog from {rounds} on."
    causes = (
        "It may have cut off the system prompt, or older messages, or leave cached tokens out of"
        " its count."
    )
    return _CutSentences(finding, count, (causes, conclusion))


def _count_sentence(series: Series, truncation: Truncation) -> str:
    """Says which counts of the server show that it left something out."""
    limit = f"{truncation.most_prompt_tokens:,}"
    cut = len(truncation.from_round)
    conversations = count_of(truncation.conversations, "conversation")
    subject = "Its count" if series.label == NO_FIX else f"With {series.label}, its count"
    return (
        f"{subject} of prompt tokens stays at or below {limit} while the dialog grows, in {cut} of"
        f" {conversations}."
    )


def survival_lines(all_series: Sequence[Series], run: Run) -> list[str]:
    """Sentences on each series: what it keeps once the older rounds are summarised.

    Returns [] if no rounds were summarised.
    """
    lines = []
    for series in all_series:
        rows = context_summary_effect(series)
        if not rows:
            continue
        overall, *rules = rows
        before = plain(overall.before)
        after = plain(overall.after)
        conversations = count_of(overall.after.n, "conversation")
        subject = f"With {series.label}, stability" if len(all_series) > 1 else "Stability"
        lines.append(
            f"{subject} is {after} once the older rounds are summarised, and {before} before, in"
            f" {conversations}."
        )
        lower = sum(rule.difference.sign < 0 for rule in rules)
        if lower and len(rules) > 1:
            lines.append(f"Clearly kept less after a summary: {lower} of {len(rules)} rules.")
    if lines and run.identity_as(ConversationsIdentity).settings.context == "compact":
        lines.append("The summary takes the system prompt's place.")
    elif lines:
        lines.append("The system prompt stays in view beside the summary.")
    return lines


def survival_table(all_series: Sequence[Series]) -> Table | None:
    """Scores by series and rule before and after older rounds were summarised.

    Returns None if no rounds were.
    """
    rows: list[tuple[str, ...]] = [
        ("Series", "Rule", "Conversations", "Before", "After a summary", "Change")
    ]
    for series in all_series:
        for row in context_summary_effect(series):
            rows.append(
                (
                    series.label,
                    row.rule or "all rules",
                    str(row.after.n),
                    plain(row.before),
                    plain(row.after),
                    with_verdict(row.difference, "rises", "falls"),
                )
            )
    return Table("Stability before and after a summary", tuple(rows)) if len(rows) > 1 else None
