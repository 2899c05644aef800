"""The table of `holdfast logs` for the terminal, whose cells the page shows too."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.analysis.adherence import Adherence
from holdfast.records import Run
from holdfast.report.logs_sentences import Rows, have_verdicts, headline, lines, notes
from holdfast.report.logs_wording import IN_A_COLUMN, rule_id, rule_words
from holdfast.report.wording import aligned, plain, signed

KEY = (
    "turns kept    of those that the rule applies to",
    "kept          the mean over dialogs, each counting once however long it is",
    "first broken  how many dialogs break the rule, in which turn the earliest does, and by which",
    "              half have (about: an estimate, as some end before they break it)",
)


def logs_table(run: Run, rows: Rows, shown: Rows, bar: float | None) -> str:
    """The text for the terminal: the opening sentences of the page, then a row for each rule or
    category that is shown.
    """
    compared = any(row.earlier for row in rows)
    head = ["rule", "turns kept", "kept [95%]", "dialogs", "first to last turn", "first broken"]
    ids = [rule_id(run, row.rule) for row in shown]
    if compared:
        head.append("against")
    if have_verdicts(rows):
        head.append(verdict_head(bar))
    if any(ids):
        head.append("id")
    cells = [head]
    for row, name in zip(shown, ids, strict=True):
        line = [rule_words(run, row.rule, IN_A_COLUMN), *rule_cells(row), first_broken(row)]
        if compared:
            line.append(signed(row.earlier.difference) if row.earlier else "–")
        if have_verdicts(rows):
            line.append(verdict_cell(row, bar))
        if any(ids):
            line.append(name)
        cells.append(line)
    table = aligned(without_empty(cells))
    above = [headline(run, rows), *lines(run, rows, bar), *notes(run, rows)]
    return "\n".join([*above, "", *table, "", *KEY])


def without_empty(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """The rows of a table without the columns in which every cell below the head is a dash."""
    kept = [column for column in zip(*rows, strict=True) if len(rows) < 2 or {*column[1:]} != {"–"}]
    return [list(row) for row in zip(*kept, strict=True)]


def verdict_cell(row: Adherence, bar: float | None) -> str:
    """'fail [0.41, 0.78]', with the bounds that decide it if there is a bar."""
    low, high = row.bounds
    return row.verdict if bar is None else f"{row.verdict} [{low:.2f}, {high:.2f}]"


def verdict_head(bar: float | None) -> str:
    """The head of the column of `verdict_cell`."""
    return "verdict" if bar is None else "verdict [bounds that decide it]"


def rule_cells(row: Adherence) -> tuple[str, str, str, str]:
    """How many turns keep a rule, the mean over dialogs, the dialogs, and the change in them."""
    change = signed(row.change) if row.change.n else "–"
    return turns_kept(row), plain(row.overall), str(row.overall.n), change


def turns_kept(row: Adherence) -> str:
    """'8 of 10'."""
    return f"{row.applied - len(row.broken):,} of {row.applied:,}" if row.is_judged else "–"


def first_broken(row: Adherence) -> str:
    """'3 of 40 dialogs, earliest turn 2', with the turn by which half of all dialogs have broken
    the rule if they have.
    """
    if not row.is_judged:
        return "not judged"
    survival = row.survival
    if not survival.broken:
        return "never"
    if row.overall.n == 1:
        return f"in turn {survival.turns[0]}"
    broken = f"{survival.broken} of {row.overall.n} dialogs, earliest turn {survival.turns[0]}"
    if survival.median is None or 2 * survival.broken < row.overall.n:
        return broken
    return f"{broken}, half by {'about ' if survival.estimated else ''}turn {survival.median}"
