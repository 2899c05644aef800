"""Reports conversations that have broken down, in sentences and tables."""

from collections.abc import Sequence

from holdfast.analysis.collapse import (
    BROKEN_SHARE_WARNING,
    CUT_SHARE_WARNING,
    Collapse,
    count_turns,
    without_collapsed,
)
from holdfast.analysis.drift_results import DriftResults
from holdfast.analysis.estimates import row_of
from holdfast.analysis.method_differences import difference
from holdfast.analysis.series import NO_FIX, Series
from holdfast.plurals import count_of
from holdfast.records.identity import ConversationsIdentity
from holdfast.report.page import Table
from holdfast.report.wording import percent, plain, with_verdict

_REPEATED = {
    "other": "repeat the other speaker",
    "own": "repeat the speaker’s own earlier turns",
    "loops": "loop",
}
_WORTH_SAYING = 0.05  # smallest share of turns of one kind to report


def collapse_lines(results: DriftResults) -> list[str]:
    """How many turns of each series are cut or repeated, and what its scores then mean; [] if few.

    It never takes back the title of the run.
    """
    series = results.series
    outcome = results.findings.outcome
    counted = {item: counts for item in series if (counts := count_turns(item.records)).notable}
    if not counted:
        return []
    tokens = results.run.identity_as(ConversationsIdentity).settings.sampling.max_new_tokens
    limit = "the token limit" if tokens is None else count_of(tokens, "token")
    lines = [_turns_line(item, counts, limit, len(series)) for item, counts in counted.items()]
    broken = [
        item for item, counts in counted.items() if counts.share("broken") >= BROKEN_SHARE_WARNING
    ]
    if not broken:
        lines.append(
            "Such turns stop in mid-sentence, and rules about length or endings are not judged on"
            " them."
        )
    elif broken == [series[0]] and outcome.counts_after_breakdown:
        lines.append("The conversations that did not break down show the same.")
    else:
        lines.append("Scores of broken-down conversations tell you little about the prompt.")
    return lines


def _turns_line(item: Series, collapse: Collapse, limit: str, of_series: int) -> str:
    """'Of the turns, 58% are cut at 60 tokens, 25% loop; 5 of 12 conversations collapsed.'"""
    shares = ", ".join(
        f"{percent(collapse.share(name))} {words}"
        for name, words in ({"cut": f"are cut at {limit}"} | _REPEATED).items()
        if collapse.share(name) >= _WORTH_SAYING
    )
    collapsed = len(collapse.collapsed)
    total = count_of(collapse.conversations, "conversation")
    if of_series == 1:
        return f"Of the turns, {shares}; {collapsed} of {total} collapsed."
    if item.label == NO_FIX:
        return f"Of the turns without a fix, {shares}; {collapsed} of {total} collapsed."
    return f"Of the turns with {item.label}, {shares}; {collapsed} of {total} collapsed."


def collapse_cures(series: Sequence[Series]) -> list[str]:
    """Ways to keep self-chats from breaking down, if many do; given user messages cannot derail."""
    counted = [count_turns(item.records) for item in series]
    if any(chat.replayed or chat.scripted for item in series for chat in item.records):
        return []
    cures = []
    if any(counts.share("cut") >= CUT_SHARE_WARNING for counts in counted):
        cures.append("raise --max-new-tokens")
    if any(counts.share("broken") >= BROKEN_SHARE_WARNING for counts in counted):
        cures.append(
            "let another model play the user (--user-model), give it a --persona, or script what"
            " it says (--user-turns)"
        )
    return cures


def collapse_section(series: Sequence[Series]) -> dict[str, Table | None] | None:
    """Tables of cut or repeated turns and of stability without collapsed dialogs; None if few."""
    counted = [count_turns(item.records) for item in series]
    if not any(counts.collapsed or counts.notable for counts in counted):
        return None
    left = [without_collapsed(item, counts) for item, counts in zip(series, counted, strict=True)]
    return {
        "turns": Table("Turns that are cut or repeated", (_HEAD, *map(_row, series, counted))),
        "readings": _readings(series, left) if any(item.collapsed for item in counted) else None,
    }


_HEAD = (
    "Series",
    "Turns written",
    "Cut at the token limit",
    "Repeat the other",
    "Repeat their own",
    "Loop",
    "Conversations collapsed",
    "From round",
)


def _row(item: Series, counts: Collapse) -> tuple[str, ...]:
    rounds = sorted(counts.collapsed.values())
    return (
        item.label,
        f"{counts.turns:,}",
        *(percent(counts.share(name)) for name in ("cut", *_REPEATED)),
        f"{len(rounds)} of {counts.conversations}",
        " to ".join(map(str, dict.fromkeys((rounds[0], rounds[-1])))) if rounds else "–",
    )


def _readings(series: Sequence[Series], left: Sequence[Series]) -> Table:
    last = max(item.rounds for item in series)
    rows = [("Series", "Conversations", "Round 1", f"Round {last}", "Change", "Against no method")]
    for item, rest in zip(series, left, strict=True):
        rows.append((item.label, f"all {len(item.records)}", *_reading(series, item)))
        if collapsed := len(item.records) - len(rest.records):
            cells = _reading(left, rest) if rest.records else ("–",) * 4
            conversations = f"{len(rest.records)}, with {collapsed} left out"
            rows.append((f"{item.label}, without the collapsed", conversations, *cells))
    return Table("Stability with and without the collapsed conversations", tuple(rows))


def _reading(series: Sequence[Series], item: Series) -> tuple[str, str, str, str]:
    row = row_of(item, "stability")
    pair = difference(series, item, "stability")
    return (
        plain(row.points[0]),
        plain(row.points[-1]),
        with_verdict(row.change, "rises", "falls"),
        with_verdict(pair.last, "higher", "lower") if pair else "–",
    )
