"""How well each rule is kept over the dialog, as a strip of cells for each rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from holdfast.analysis.adherence import TOKEN_BINS, TURN_BINS
from holdfast.analysis.statistics import Estimate
from holdfast.plurals import count_of
from holdfast.records import Run
from holdfast.records.logs_summary import LoggedRule
from holdfast.records.mean_estimate import EstimateFrom
from holdfast.report.logs_words import IN_A_TABLE, rule_words
from holdfast.report.page import Table
from holdfast.report.wording import percent, plain


@dataclass(frozen=True)
class _Axis:
    """The place of turns in their dialog, by which scores are averaged in bins."""

    unit: Literal["turn", "tokens"]
    bins: Sequence[int]  # where each begins
    title: str  # of the figure
    note: str


_BY_TURN = _Axis(
    unit="turn",
    bins=TURN_BINS,
    title="Kept, by turn of the dialog",
    note="Below each cell: the turn, and n, the number of dialogs.",
)
_BY_LENGTH = _Axis(
    unit="tokens",
    bins=TOKEN_BINS,
    title="Kept, by length of the dialog",
    note=(
        "Below each cell: the tokens before the turn (estimated at 4 bytes each), and n, the"
        " number of dialogs."
    ),
)


@dataclass(frozen=True)
class StripCell:
    """The turns of a rule in one bin.

    Attributes:
        label: the name of the bin, such as "9–16".
        share: how many of these turns keep the rule, over dialogs; None if there are none.
        text: the share in percent, without the sign; "" if there is none.
        count: the number of dialogs; "" if there are none.
        meaning: the cell in words, for a screen reader and under the pointer.
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
    """A strip for each rule, on the same bins, and the numbers in them."""

    title: str
    note: str
    strips: tuple[Strip, ...]
    numbers: Table


def strip_figures(run: Run, rows: Sequence[LoggedRule]) -> list[StripFigure]:
    """The figures by turn and by length; one with only a single bin is left out."""
    judged_rows = [row for row in rows if row.is_judged]
    figures = [
        _figure(run, judged_rows, [row.by_turn for row in judged_rows], _BY_TURN),
        _figure(run, judged_rows, [row.by_tokens for row in judged_rows], _BY_LENGTH),
    ]
    return [figure for figure in figures if figure is not None]


def _figure(
    run: Run,
    rows: Sequence[LoggedRule],
    estimates: Sequence[Sequence[EstimateFrom]],
    axis: _Axis,
) -> StripFigure | None:
    """The figure of the estimates of each rule; None if they are all in one bin."""
    starts = {item.start for estimates_of_rule in estimates for item in estimates_of_rule}
    if len(starts) < 2:
        return None
    bins = [start for start in axis.bins if min(starts) <= start <= max(starts)]
    labels = [_bin_name(axis, start) for start in bins]
    strips: list[Strip] = []
    numbers: list[tuple[str, ...]] = [("rule", *(f"{axis.unit} {label}" for label in labels))]
    for row, estimates_of_rule in zip(rows, estimates, strict=True):
        by_start = {item.start: item for item in estimates_of_rule}
        items = [by_start.get(start) for start in bins]
        cells = [_cell(item, label, axis) for item, label in zip(items, labels, strict=True)]
        count = f"{count_of(row.applied, 'turn')} in {count_of(row.adherence.n, 'dialog')}"
        strips.append(Strip(rule_words(run, row.rule), count, tuple(cells)))
        texts = (f"{plain(item)}, n = {item.n}" if item else "–" for item in items)
        numbers.append((rule_words(run, row.rule, IN_A_TABLE), *texts))
    table = Table("Mean over dialogs, 95% interval, and number of dialogs", numbers)
    return StripFigure(axis.title, axis.note, tuple(strips), table)


def _cell(item: Estimate | None, label: str, axis: _Axis) -> StripCell:
    """The cell of a bin; `item` is None if no turn in it has a score."""
    bin_name = f"{axis.unit} {label}"
    if item is None or item.mean is None:
        return StripCell(label, None, "", "", f"{bin_name}: the rule does not apply")
    meaning = f"{bin_name}: kept {plain(item)}, over {count_of(item.n, 'dialog')}"
    text = percent(item.mean).removesuffix("%")
    return StripCell(label, item.mean, text, f"n {item.n:,}", meaning)


def _bin_name(axis: _Axis, start: int) -> str:
    """'9–16' or '513+' turns, '8k–16k' or '256k+' tokens."""
    index = axis.bins.index(start)
    next_start = axis.bins[index + 1] if index + 1 < len(axis.bins) else None
    if axis.unit == "tokens":
        low = f"{start // 1000}k" if start else "0"
        return f"{low}+" if next_start is None else f"{low}–{next_start // 1000}k"
    if next_start is None:
        return f"{start}+"
    return str(start) if next_start == start + 1 else f"{start}–{next_start - 1}"
