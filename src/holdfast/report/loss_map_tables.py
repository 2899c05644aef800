"""The tables and the figure of `holdfast map`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.analysis.loss_rows import Grouping, LossRow
from holdfast.analysis.recalled_rules import RecallRow
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.verdicts import CANNOT_TELL, too_few
from holdfast.report import figures
from holdfast.report.wording import aligned, plain, signed, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEADERS = {  # without the first column
    Grouping.ALL: ("rules", "round 1", "last quarter", "change", ""),
    Grouping.ROUNDS: ("rules", "round 1", "then", "change", ""),
    Grouping.LENGTH: ("rules", "round 1", "then", "change", ""),
    Grouping.PRESSURE: ("rules", "after an ordinary one", "after it", "difference", ""),
}
_RECALL_HEADER = (
    "kind",
    "round 1",
    "last round",
    "broken there",
    "stated of these",
    "of the kept ones",
)
_WIDER_INTERVALS = (
    "Where it says “cannot tell” beside an interval without 0, the verdict needs a wider one,"
    " because a run may be extended and read again."
)
_NAMES_WITHOUT_GROUP = {Grouping.ADOPTION: "the user’s rules"}  # of rows without a group
_COLOURS = {"falls": "#b3423a", "rises": "#2f7d4f", "holds": "#3b5f8a"}
_UNDECIDED_COLOUR = "#9a9a9a"


def loss_lines(rows: Sequence[LossRow]) -> list[str]:
    """A table for each method and grouping."""
    lines: list[str] = []
    for method in dict.fromkeys(row.method for row in rows):
        lines.append(f"{method}:")
        for grouping in Grouping:
            group = [row for row in rows if row.method == method and row.grouping is grouping]
            if group:
                lines += [*aligned(table_of(group), "  "), ""]
    if any(row.verdict == CANNOT_TELL and _seems_certain(row.change) for row in rows):
        return [*lines, *wrapped([_WIDER_INTERVALS])]
    return lines[:-1]


def _seems_certain(change: Estimate) -> bool:
    """Whether a change has enough samples for a verdict, and a 95% interval without 0."""
    return change.excludes_zero and not too_few(change)


def table_of(rows: Sequence[LossRow]) -> list[tuple[str, ...]]:
    """The rows of one grouping as a table, the header first."""
    grouping = rows[0].grouping
    header = _HEADERS.get(grouping, _HEADERS[Grouping.ALL])
    title = "" if grouping is Grouping.ALL else str(grouping)
    table: list[tuple[str, ...]] = [(title, *header)]
    for row in rows:
        why = too_few(row.change)
        table.append(
            (
                row.group or _NAMES_WITHOUT_GROUP.get(grouping, "all rules"),
                str(row.rules),
                plain(row.first),
                plain(row.last),
                signed(row.change),
                f"{row.verdict}: {why}" if why else row.verdict,
            )
        )
    return table


def reminder_line(rows: Sequence[LossRow]) -> str:
    """The method that reminds of the kinds of rule that fall; "" if none falls.

    It starts before the earliest round in which one of them is lower.
    """
    first_falls = {row.group: row.falls_from for row in rows if row.falls_from is not None}
    if not first_falls:
        return ""
    last_good_round = min(number for number in first_falls.values() if number is not None) - 1
    spec = f"reminder:every=1,text=rules,kinds={'/'.join(first_falls)},after={last_good_round}"
    return f"To remind the model of the kinds of rules that fall, once they do: --method {spec}"


def recall_lines(rows: Sequence[RecallRow]) -> list[str]:
    """A table for each method: how many rules the model states when it is asked for them."""
    lines: list[str] = []
    for method in dict.fromkeys(row.method for row in rows):
        table = [_RECALL_HEADER, *(_recall_cells(row) for row in rows if row.method == method)]
        lines.append(f"{method}: the rules that the model states when it is asked for them")
        lines += [*aligned(table, "  "), ""]
    return lines[:-1]


def _recall_cells(row: RecallRow) -> tuple[str, ...]:
    return (
        row.kind or "all rules",
        plain(row.stated_first),
        plain(row.stated_last),
        str(row.broken),
        plain(row.stated_of_broken),
        plain(row.stated_of_kept),
    )


def write_loss_figure(maps: Mapping[str, Sequence[LossRow]], folder: Path) -> list[Path]:
    """Writes `loss_map`, the change of each kind of rule in each run, as SVG and PNG.

    Args:
        maps: the rows of each run under one method, by the label of the run.
    """
    kinds = dict.fromkeys(
        row.group for rows in maps.values() for row in rows if row.grouping is Grouping.KIND
    )
    with figures.styled():
        figure, axes = figures.panels(len(maps), len(maps), 3.2, 0.32 * len(kinds) + 1.2)
        for axis, (label, rows) in zip(axes, maps.items(), strict=True):
            _draw_changes(axis, rows, list(reversed(kinds)))
            axis.set_title(label)
        return figures.save({"loss_map": figure}, folder)


def _draw_changes(axis: Axes, rows: Sequence[LossRow], kinds: Sequence[str]) -> None:
    """Draws the change of each kind of rule with its interval, from the bottom to the top.

    Args:
        kinds: the kinds that every panel has, even if these rows lack some.
    """
    row_by_kind = {row.group: row for row in rows if row.grouping is Grouping.KIND}
    for height, kind in enumerate(kinds):
        row = row_by_kind.get(kind)
        if row is None or row.change.mean is None:
            continue
        colour = _COLOURS.get(row.verdict, _UNDECIDED_COLOUR)
        low, high = row.change.interval or (row.change.mean, row.change.mean)
        axis.plot([low, high], [height, height], color=colour, linewidth=1.6)
        axis.plot([row.change.mean], [height], "o", color=colour, markersize=4)
    axis.axvline(0, color="#444444", linewidth=0.8)
    axis.set(xlim=(-1, 1), xlabel="change of the score")
    axis.set_yticks(range(len(kinds)), kinds)
    axis.set_ylim(-0.5, len(kinds) - 0.5)
