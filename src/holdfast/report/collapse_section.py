"""Reports conversations that have broken down, in sentences and tables."""

from collections.abc import Mapping, Sequence

from holdfast.analysis.collapse import (
    MANY_BROKEN,
    MANY_CUT,
    Collapse,
    count_turns,
    without_collapsed,
)
from holdfast.analysis.estimates import difference, row_of
from holdfast.analysis.outcome import Outcome
from holdfast.analysis.series import NO_FIX, Series
from holdfast.analysis.summary import DriftResults
from holdfast.records.identity import ConversationsIdentity
from holdfast.report.page import Table
from holdfast.report.wording import count_of, percent, plain, with_verdict

_REPEATED = {
    "other": "repeat the other speaker",
    "own": "repeat the speaker’s own earlier turns",
    "loops": "loop",
}
_WORTH_SAYING = 0.05  # smallest share of turns of one kind to report


def collapse_lines(results: DriftResults) -> list[str]:
    """A sentence on how many turns of a run are cut or repeated; [] if few are."""
    series, outcome = results.series, results.findings.outcome
    counted = {item: counts for item in series if (counts := count_turns(item.records)).notable}
    if not counted:
        return []
    tokens = results.run.identity(ConversationsIdentity).settings.sampling.max_new_tokens
    limit = "the token limit" if tokens is None else count_of(tokens, "token")
    parts = []
    for item, counts in counted.items():
        fixed = "without a fix, " if item.label == NO_FIX else f"with {item.label}, "
        parts.append((fixed if len(series) > 1 else "") + _shares(counts, limit))
    text = "; ".join(parts)
    return [f"{text[0].upper()}{text[1:]}: {_meaning(series, counted, outcome)}."]


def _meaning(series: Sequence[Series], counted: Mapping[Series, Collapse], outcome: Outcome) -> str:
    """The consequence of these turns for the scores; it never takes back the title of the run."""
    broken = [item for item, counts in counted.items() if counts.share("broken") >= MANY_BROKEN]
    if not broken:
        return "they stop in mid-sentence, and rules about length or endings are not judged on them"
    if broken == [series[0]] and outcome.counts_after_breakdown:
        return "the conversations that did not break down show the same"
    return "scores of broken-down conversations tell you little about the prompt"


def collapse_cures(series: Sequence[Series]) -> list[str]:
    """Ways to keep self-chats from breaking down, if many do; given user messages cannot derail."""
    counted = [count_turns(item.records) for item in series]
    if any(chat.replayed or chat.scripted for item in series for chat in item.records):
        return []
    cures = []
    if any(counts.share("cut") >= MANY_CUT for counts in counted):
        cures.append("raise --max-new-tokens")
    if any(counts.share("broken") >= MANY_BROKEN for counts in counted):
        cures.append(
            "let another model play the user (--user-model), give it a --persona, or script what"
            " it says (--user-turns)"
        )
    return cures


def _shares(collapse: Collapse, limit: str) -> str:
    """'58% of turns were cut at 60 tokens, 25% loop (5 of 12 conversations collapsed)'."""
    shares = [
        f"{percent(collapse.share(name))} {words}"
        for name, words in ({"cut": f"were cut at {limit}"} | _REPEATED).items()
        if collapse.share(name) >= _WORTH_SAYING
    ]
    shares[0] = shares[0].replace("%", "% of turns", 1)
    if not collapse.collapsed:
        return ", ".join(shares)
    conversations = count_of(collapse.conversations, "conversation")
    return f"{', '.join(shares)} ({len(collapse.collapsed)} of {conversations} collapsed)"


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
    *("Series", "Turns written", "Cut at the token limit", "Repeat the other", "Repeat their own"),
    *("Loop", "Conversations collapsed", "From round"),
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
        if out := len(item.records) - len(rest.records):
            cells = _reading(left, rest) if rest.records else ("–",) * 4
            kept = f"{len(rest.records)}, with {out} left out"
            rows.append((f"{item.label}, without the collapsed", kept, *cells))
    return Table("Stability with and without the collapsed conversations", tuple(rows))


def _reading(series: Sequence[Series], item: Series) -> tuple[str, str, str, str]:
    row, pair = row_of(item, "stability"), difference(series, item, "stability")
    return (
        plain(row.points[0]),
        plain(row.points[-1]),
        with_verdict(row.change, "rises", "falls"),
        with_verdict(pair.last, "higher", "lower") if pair else "–",
    )
