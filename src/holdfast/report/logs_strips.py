"""How well each rule is kept over the dialog, as a strip of cells for each rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from holdfast.analysis.adherence import TOKEN_BINS, TURN_BINS, Adherence
from holdfast.analysis.statistics import Estimate
from holdfast.plurals import count_of
from holdfast.records import Run
from holdfast.report.logs_wording import IN_A_TABLE, rule_words
from holdfast.report.page import Table
from holdfast.report.wording import percent, plain


@dataclass(frozen=True)
class StripCell:
    """The turns of a rule in one bin.

    Args:
        label: of the bin, such as "9–16".
        share: of these turns that keep the rule, over dialogs; None if there are none.
        text: the share as percent; "" if there is none.
        count: of dialogs; "" if there are none.
        meaning: in full, for a screen reader and under the pointer.
    """

    label: str
    share: float | None
    text: str
    count: str
    meaning: str


@dataclass(frozen=True)
class Strip:
    """A rule, with a cell for each bin."""

    name: str
    count: str  # of its turns and dialogs
    cells: tuple[StripCell, ...]


@dataclass(frozen=True)
class StripFigure:
    """A strip for each rule, on the same bins, and the numbers that they show."""

    title: str
    note: str
    strips: tuple[Strip, ...]
    numbers: Table


def strip_figures(run: Run, rows: Sequence[Adherence]) -> list[StripFigure]:
    """By turn and by length; a figure with only one bin would show no course, and is left out."""
    judged = [row for row in rows if row.is_judged]
    figures = [
        _figure(run, judged, "by_turn", TURN_BINS, "Kept, by turn of the dialog", "turn"),
        _figure(run, judged, "by_tokens", TOKEN_BINS, "Kept, by length of the dialog", "tokens"),
    ]
    return [figure for figure in figures if figure is not None]


def _figure(
    run: Run,
    rows: Sequence[Adherence],
    name: Literal["by_turn", "by_tokens"],
    bins: Sequence[int],
    title: str,
    unit: str,
) -> StripFigure | None:
    estimates: list[tuple[Estimate, ...]] = [getattr(row, name) for row in rows]
    filled = {number for line in estimates for number, item in enumerate(line) if item.n}
    if len(filled) < 2:
        return None
    used = range(min(filled), max(filled) + 1)
    labels = [_bin_name(bins, number) for number in used]
    strips, numbers = [], [("rule", *(f"{unit} {label}" for label in labels))]
    for row, line in zip(rows, estimates, strict=True):
        cells = [
            _cell(line[number], label, unit) for number, label in zip(used, labels, strict=True)
        ]
        count = f"{count_of(row.applied, 'turn')} in {count_of(row.overall.n, 'dialog')}"
        strips.append(Strip(rule_words(run, row.rule), count, tuple(cells)))
        numbers.append(
            (
                rule_words(run, row.rule, IN_A_TABLE),
                *(f"{plain(line[n])}, n = {line[n].n}" if line[n].n else "–" for n in used),
            )
        )
    note = "Below each cell: the turn, and n, the number of dialogs."
    if unit == "tokens":
        note = "Below each cell: the tokens before the turn (4 bytes each), and n, the dialogs."
    table = Table("Mean over dialogs, 95% interval, and number of dialogs", numbers)
    return StripFigure(title, note, tuple(strips), table)


def _cell(item: Estimate, label: str, unit: str) -> StripCell:
    place = f"{unit} {label}"
    if item.mean is None:
        return StripCell(label, None, "", "", f"{place}: the rule does not apply")
    meaning = f"{place}: kept {plain(item)}, over {count_of(item.n, 'dialog')}"
    text = percent(item.mean).removesuffix("%")
    return StripCell(label, item.mean, text, f"n {item.n:,}", meaning)


def _bin_name(bins: Sequence[int], column: int) -> str:
    start = bins[column]
    after = bins[column + 1] if column + 1 < len(bins) else None
    if bins is TOKEN_BINS:
        low = f"{start // 1000}k" if start else "0"
        return f"{low}+" if after is None else f"{low}–{after // 1000}k"
    if after is None:
        return f"{start}+"
    return str(start) if after == start + 1 else f"{start}–{after - 1}"
