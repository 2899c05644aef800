"""The page of `holdfast logs`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.analysis.adherence import Adherence, label_of
from holdfast.records import Run
from holdfast.records.log_scores import rule_of
from holdfast.report.logs_causes import causes_section
from holdfast.report.logs_sentences import (
    Rows,
    first_broken,
    headline,
    lines,
    rule_cells,
    verdict_cell,
    verdict_head,
)
from holdfast.report.page import Table, pictures, render_study
from holdfast.report.wording import count_of, plain, signed

_MOST_PROBLEMS = 200  # with the files that the page shows
_MOST_BROKEN = 50  # most turns that the page shows per rule


def logs_page(run: Run, rows: Rows, shown: Rows, bar: float | None) -> str:
    """The HTML of the page; `shown` holds the rules or categories of the figures."""
    folder = run.folder / "figures"
    head = (
        "rule",
        "kept",
        "dialogs",
        "turns it applies to",
        "first to last turn",
        "first broken",
        verdict_head(bar),
    )
    overview = [head]
    for row in dict.fromkeys([*shown, *rows]):
        verdict = verdict_cell(row, bar) if row.verdict else "–"
        overview.append((*rule_cells(row), first_broken(row), verdict))
    against = [("rule", "before", "now", "difference")]
    against += [
        (row.rule, plain(row.earlier.before), plain(row.overall), signed(row.earlier.difference))
        for row in rows
        if row.earlier
    ]
    formats = ", ".join(f"{n} in {name}" for name, n in run.manifest.formats.items())
    return render_study(
        "logs",
        headline(run, rows),
        {run.folder.name: run},
        (count_of(len(run.records), "dialog"), formats),
        lines(run, rows, bar),
        overview=Table("Share of turns in which each rule is kept, over dialogs", overview),
        against=Table("Against the earlier logs", against) if len(against) > 1 else None,
        pictures=pictures(
            folder,
            by_turn="Kept, by turn",
            by_tokens="Kept, by length of the dialog",
            survival="Not yet broken, by turn",
        ),
        why=causes_section(run),
        broken=[
            {
                "rule": row.rule,
                "count": len(row.broken),
                "counted": count_of(len(row.broken), "turn"),
                "turns": broken_turns(run, row),
            }
            for row in rows
            if row.broken
        ],
        problems=_shown_problems(run.manifest.problems),
    )


def _shown_problems(problems: Sequence[str]) -> list[str]:
    """The first problems with the files, and how many more there are."""
    more = len(problems) - _MOST_PROBLEMS
    rest = [f"and {more:,} more, which `summary.json` lists"] if more > 0 else []
    return [*problems[:_MOST_PROBLEMS], *rest]


@dataclass(frozen=True)
class ShownTurn:
    """A turn that broke a rule, as the page shows it."""

    where: str  # its file, line and number
    score: float
    reason: str
    user: str  # the user's message before it
    reply: str
    tools: str  # the names of those it called


def broken_turns(run: Run, row: Adherence) -> list[ShownTurn]:
    """The turns that broke a rule, worst first."""
    shown = []
    for broken in row.broken[:_MOST_BROKEN]:
        record = run.dialogs[broken.dialog]
        probe = next(
            probe
            for probe in record.probes
            if probe.round == broken.turn and label_of(rule_of(record, probe)) == row.rule
        )
        turn = next(turn for turn in record.turns if turn.round == broken.turn)
        shown.append(
            ShownTurn(
                where=f"{record.source}, turn {broken.turn}",
                score=broken.score,
                reason=probe.reason,
                user=probe.question,
                reply=turn.text,
                tools=", ".join(turn.tools),
            )
        )
    return shown
