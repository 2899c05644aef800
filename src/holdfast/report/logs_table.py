"""The table of `holdfast logs` for the terminal, whose cells the page shows too."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.records import Run
from holdfast.records.logs_summary import LoggedRule
from holdfast.report.logs_sentences import (
    LoggedRules,
    have_verdicts,
    headline,
    lines_below_headline,
    unscored_notes,
)
from holdfast.report.logs_words import IN_A_COLUMN, rule_id, rule_words
from holdfast.report.wording import aligned, plain, signed

KEY = (
    "turns kept    how many of the turns that the rule applies to keep it",
    "kept          the mean over dialogs, each counting once however long it is",
    "first broken  how many dialogs break the rule, in which turn the earliest does, and by which",
    "              half have (about: an estimate, as some end before they break it)",
)


def logs_table(run: Run, rows: LoggedRules, visible_rows: LoggedRules, bar: float | None) -> str:
    """The text for the terminal: the opening sentences, the table, and a key to its columns.

    Args:
        rows: every rule, for the sentences.
        visible_rows: the rules or categories that the table has.
        bar: the mean that every rule must reach; None without a bar.
    """
    sentences = [
        headline(run, rows),
        *lines_below_headline(run, rows, bar),
        *unscored_notes(run, rows),
    ]
    table = aligned(drop_empty_columns(_table_cells(run, rows, visible_rows, bar)))
    return "\n".join([*sentences, "", *table, "", *KEY])


def _table_cells(
    run: Run, rows: LoggedRules, visible_rows: LoggedRules, bar: float | None
) -> list[list[str]]:
    """The table, head first; columns that only some runs need are there if this one does."""
    has_earlier = any(row.against for row in rows)
    has_verdicts = have_verdicts(rows)
    has_ids = any(rule_id(run, row.rule) for row in visible_rows)
    head = ["rule", "turns kept", "kept [95%]", "dialogs", "first to last turn", "first broken"]
    if has_earlier:
        head.append("against")
    if has_verdicts:
        head.append(verdict_head(bar))
    if has_ids:
        head.append("id")
    cells = [head]
    for row in visible_rows:
        line = [rule_words(run, row.rule, IN_A_COLUMN), *rule_cells(row), first_broken(row)]
        if has_earlier:
            line.append(signed(row.against.difference) if row.against else "–")
        if has_verdicts:
            line.append(verdict_cell(row, bar))
        if has_ids:
            line.append(rule_id(run, row.rule))
        cells.append(line)
    return cells


def drop_empty_columns(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Drops the columns of a table in which every cell below the head is a dash."""
    columns = [
        column for column in zip(*rows, strict=True) if len(rows) < 2 or set(column[1:]) != {"–"}
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def verdict_cell(row: LoggedRule, bar: float | None) -> str:
    """'fail [0.41, 0.78]', with the bounds that decide it; only 'fail' without a bar."""
    if row.verdict is None:
        return "–"
    low, high = row.bounds
    return row.verdict if bar is None else f"{row.verdict} [{low:.2f}, {high:.2f}]"


def verdict_head(bar: float | None) -> str:
    """The head of the column of `verdict_cell`."""
    return "verdict" if bar is None else "verdict [bounds that decide it]"


def rule_cells(row: LoggedRule) -> tuple[str, str, str, str]:
    """The cells on a rule's scores: turns kept, the mean over dialogs, dialogs, and the change."""
    change = signed(row.change) if row.change.n else "–"
    return _turns_kept(row), plain(row.adherence), str(row.adherence.n), change


def _turns_kept(row: LoggedRule) -> str:
    """'8 of 10'; a dash if no turn was judged."""
    return f"{row.applied - len(row.broken):,} of {row.applied:,}" if row.is_judged else "–"


def first_broken(row: LoggedRule) -> str:
    """'3 of 40 dialogs, earliest turn 2'.

    If half of all dialogs break the rule, ', half by turn 5' follows.
    """
    if not row.is_judged:
        return "not judged"
    breaks = row.first_broken
    if not breaks.broken:
        return "never"
    if row.adherence.n == 1:
        return f"in turn {breaks.turns[0]}"
    breach_text = f"{breaks.broken} of {row.adherence.n} dialogs, earliest turn {breaks.turns[0]}"
    if breaks.median_turn is None or 2 * breaks.broken < row.adherence.n:
        return breach_text
    approximately = "about " if breaks.estimated else ""
    return f"{breach_text}, half by {approximately}turn {breaks.median_turn}"
