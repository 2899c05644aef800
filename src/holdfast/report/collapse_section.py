"""Reports conversations that have collapsed, in sentences and tables."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.analysis.collapse import (
    BROKEN_SHARE_WARNING,
    CUT_SHARE_WARNING,
    count_turns,
    is_notable,
    without_collapsed,
)
from holdfast.analysis.drift_results import DriftResults
from holdfast.analysis.estimate_rows import row_of
from holdfast.analysis.row_differences import difference
from holdfast.analysis.series import NO_FIX, Series
from holdfast.plurals import count_of, from_to
from holdfast.records.drift_summary import Collapse
from holdfast.records.identity import ConversationsIdentity
from holdfast.report.page import Table
from holdfast.report.wording import percent, plain, with_verdict

_REPETITIONS = {
    "other": "repeat the other speaker",
    "own": "repeat the speaker’s own earlier turns",
    "loops": "loop",
}
_MIN_SHARE_REPORTED = 0.05  # of all turns
_TURNS_HEADER = (
    "Series",
    "Turns written",
    "Cut at the token limit",
    "Repeat the other",
    "Repeat their own",
    "Loop",
    "Conversations collapsed",
    "From round",
)


@dataclass(frozen=True)
class CollapseSection:
    """The section of the page.

    Attributes:
        turns: how many turns are cut or repeated.
        readings: stability with and without collapsed conversations; None if none collapsed.
    """

    turns: Table
    readings: Table | None


def collapse_lines(results: DriftResults) -> list[str]:
    """How many turns of each series are cut or repeated, and what its scores then mean.

    Returns [] if few turns are. The sentences never contradict the title of the run.
    """
    all_series = results.series
    outcome = results.findings.outcome
    counts_by_series = {series: count_turns(series.records) for series in all_series}
    notable = {series: counts for series, counts in counts_by_series.items() if is_notable(counts)}
    if not notable:
        return []
    tokens = results.run.identity_as(ConversationsIdentity).settings.sampling.max_new_tokens
    limit = "the token limit" if tokens is None else count_of(tokens, "token")
    lines = [
        _turns_line(series, counts, limit, len(all_series)) for series, counts in notable.items()
    ]
    broken_series = [
        series
        for series, counts in notable.items()
        if counts.share("broken") >= BROKEN_SHARE_WARNING
    ]
    if not broken_series:
        lines.append(
            "Such turns stop in mid-sentence, and rules about length or endings are not judged on"
            " them."
        )
    elif broken_series == [all_series[0]] and outcome.counts_after_breakdown:
        lines.append("The conversations that did not collapse show the same.")
    elif any(counts.collapsed_from_round for counts in notable.values()):
        lines.append("Scores of broken-down conversations tell you little about the prompt.")
    else:
        lines.append("Scores in rounds with such turns tell you little about the prompt.")
    return lines


def _turns_line(series: Series, collapse: Collapse, limit: str, num_series: int) -> str:
    """'Of the turns, 58% are cut at 60 tokens, 25% loop; 5 of 12 conversations collapsed.'"""
    shares = ", ".join(
        f"{percent(collapse.share(name))} {words}"
        for name, words in ({"cut": f"are cut {_where_cut(series, limit)}"} | _REPETITIONS).items()
        if collapse.share(name) >= _MIN_SHARE_REPORTED
    )
    collapsed = len(collapse.collapsed_from_round)
    total = count_of(collapse.conversations, "conversation")
    if num_series == 1:
        return f"Of the turns, {shares}; {collapsed} of {total} collapsed."
    if series.label == NO_FIX:
        return f"Of the turns without a fix, {shares}; {collapsed} of {total} collapsed."
    return f"Of the turns with {series.label}, {shares}; {collapsed} of {total} collapsed."


def _where_cut(series: Series, limit: str) -> str:
    """Where turns were cut: "at 60 tokens", or earlier, by the server or the end of the context.

    Args:
        limit: the run's own limit, such as "60 tokens".
    """
    cut = [
        turn for record in series.records for turn in record.turns if turn.stop_reason == "length"
    ]
    early = sum(turn.cut_at is not None for turn in cut)
    if not early:
        return f"at {limit}"
    where = "by the server or at the end of the context"
    return where if early == len(cut) else f"at {limit}, or earlier {where}"


def collapse_cures(all_series: Sequence[Series]) -> list[str]:
    """Ways to keep turns from being cut and self-chats from breaking down, as clauses that begin
    with a verb and end with the purpose.

    Returns [] if few collapse, or if the user's messages are given and so cannot derail.
    """
    if any(chat.replayed or chat.scripted for series in all_series for chat in series.records):
        return []
    counts_by_series = [count_turns(series.records) for series in all_series]
    cures = []
    if any(counts.share("cut") >= CUT_SHARE_WARNING for counts in counts_by_series):
        cures.append("raise --max-new-tokens, so that fewer turns are cut")
    if any(counts.share("broken") >= BROKEN_SHARE_WARNING for counts in counts_by_series):
        cures.append(
            "let another model play the user (--user-model), give it a --persona, or script what"
            " it says (--user-turns), so that the conversations do not collapse"
        )
    return cures


def collapse_section(all_series: Sequence[Series]) -> CollapseSection | None:
    """The section of the page; None if few turns are cut or repeated and no dialog collapsed."""
    counts_by_series = [count_turns(series.records) for series in all_series]
    if not any(counts.collapsed_from_round or is_notable(counts) for counts in counts_by_series):
        return None
    rows = map(_turns_row, all_series, counts_by_series)
    turns = Table("Turns that are cut or repeated", (_TURNS_HEADER, *rows))
    if not any(counts.collapsed_from_round for counts in counts_by_series):
        return CollapseSection(turns, None)
    uncollapsed = [
        without_collapsed(series, counts)
        for series, counts in zip(all_series, counts_by_series, strict=True)
    ]
    return CollapseSection(turns, _readings_table(all_series, uncollapsed))


def _turns_row(series: Series, counts: Collapse) -> tuple[str, ...]:
    rounds = sorted(counts.collapsed_from_round.values())
    return (
        series.label,
        f"{counts.turns:,}",
        *(percent(counts.share(name)) for name in ("cut", *_REPETITIONS)),
        f"{len(rounds)} of {counts.conversations}",
        from_to(rounds[0], rounds[-1]) if rounds else "–",
    )


def _readings_table(all_series: Sequence[Series], uncollapsed: Sequence[Series]) -> Table:
    """Stability with all conversations, and below it without the collapsed ones."""
    last = max(series.rounds for series in all_series)
    rows = [("Series", "Conversations", "Round 1", f"Round {last}", "Change", "Against no method")]
    for series, remaining in zip(all_series, uncollapsed, strict=True):
        rows.append(
            (series.label, f"all {len(series.records)}", *_reading_cells(all_series, series))
        )
        if collapsed := len(series.records) - len(remaining.records):
            cells = _reading_cells(uncollapsed, remaining) if remaining.records else ("–",) * 4
            conversations = f"{len(remaining.records)}, with {collapsed} left out"
            rows.append((f"{series.label}, without the collapsed", conversations, *cells))
    return Table("Stability with and without the collapsed conversations", tuple(rows))


def _reading_cells(all_series: Sequence[Series], series: Series) -> tuple[str, str, str, str]:
    """The last four cells of a row of `_readings_table`."""
    row = row_of(series, "stability")
    pair = difference(all_series, series, "stability")
    return (
        plain(row.points[0]),
        plain(row.points[-1]),
        with_verdict(row.change, "rises", "falls"),
        with_verdict(pair.last_round, "higher", "lower") if pair else "–",
    )
