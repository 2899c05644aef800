"""How much of a chat the model read, in sentences and as a table."""

from collections.abc import Sequence

from holdfast.analysis.context_summary_effect import context_summary_effect
from holdfast.analysis.series import NO_FIX, Series
from holdfast.analysis.truncation import PROMPT_KEPT, PROMPT_LOST, truncation_of
from holdfast.plurals import count_of, rounds_from_to
from holdfast.records import Run
from holdfast.records.drift_summary import Truncation
from holdfast.records.identity import ConversationsIdentity
from holdfast.report.page import Table
from holdfast.report.wording import plain, with_verdict

CURE = (  # a clause that begins with a verb
    "raise the server's context (Ollama: OLLAMA_CONTEXT_LENGTH; llama-server: --ctx-size), so that"
    " it reads the whole chat"
)


def truncation_lines(all_series: Sequence[Series]) -> list[str]:
    """Sentences on each series whose chats a server cut off; [] if none was.

    What is the same for every series is said once, around the counts of each.
    """
    stories = [
        _truncation_sentences(series, truncation)
        for series in all_series
        if (truncation := truncation_of(series)) is not None
    ]
    if len({(finding, *meaning) for finding, _, *meaning in stories}) == 1:
        finding, _, *meaning = stories[0]
        return [finding, *(count for _, count, *_ in stories), *meaning]
    return [line for story in stories for line in story]


def _truncation_sentences(series: Series, truncation: Truncation) -> list[str]:
    """Says what the server left out, from which rounds on, and which counts show it."""
    first = min(truncation.from_round.values())
    last = max(truncation.from_round.values())
    rounds = rounds_from_to(first, last)
    count = _count_sentence(series, truncation)
    before = plain(truncation.canary_before)
    after = plain(truncation.canary_after)
    canary = f"The canary is known {before} before and {after} after."
    if truncation.verdict == PROMPT_LOST:
        return [
            f"The server stopped reading the system prompt in {rounds}.",
            count,
            canary,
            "From there on this measures a prompt that was cut off, not drift.",
        ]
    if truncation.verdict == PROMPT_KEPT:
        return [
            f"The server leaves out a part of the dialog from {rounds} on, but keeps the system"
            " prompt.",
            count,
            canary,
        ]
    if truncation.canary_after.n:
        conclusion = f"{canary} That is inconclusive."
    else:
        conclusion = (
            "To find out which, add --canary to `holdfast drift` or `holdfast check`, with another"
            " --out."
        )
    return [
        f"The server reads no more of the dialog from {rounds} on.",
        count,
        "It may have cut off the system prompt, or older messages, or leave cached tokens out of"
        " its count.",
        conclusion,
    ]


def _count_sentence(series: Series, truncation: Truncation) -> str:
    """Says which counts of the server show that it left something out."""
    limit = f"{truncation.most_prompt_tokens:,}"
    cut = len(truncation.from_round)
    conversations = count_of(truncation.conversations, "conversation")
    if series.label == NO_FIX:
        return (
            f"Its count of prompt tokens stays at or below {limit} while the dialog grows, in {cut}"
            f" of {conversations}."
        )
    return (
        f"With {series.label}, its count of prompt tokens stays at or below {limit} while the"
        f" dialog grows, in {cut} of {conversations}."
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
        if len(all_series) > 1:
            lines.append(
                f"With {series.label}, stability is {after} once the older rounds are summarised, "
                f"and {before} before, in {conversations}."
            )
        else:
            lines.append(
                f"Stability is {after} once the older rounds are summarised, and {before} before,"
                f" in {conversations}."
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
