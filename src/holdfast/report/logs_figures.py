"""The figures of `holdfast logs`: kept by turn and by length, and not yet broken by turn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.analysis.adherence import TOKEN_BINS, TURN_BINS, Adherence
from holdfast.report.figures import legend_below, look, means, panels, save, styled, whiskers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = Sequence[Adherence]

_MOST_DRAWN = 12  # most rules in a figure: those kept least


def write_logs_figures(rows: Rows, folder: Path) -> list[Path]:
    """Writes `by_turn`, `by_tokens` and `survival` as SVG and PNG; returns the files."""
    judged = [row for row in rows if row.is_judged]
    drawn = sorted(judged, key=lambda row: row.overall.mean or 0)[:_MOST_DRAWN]
    with styled():
        return save(
            {
                "by_turn": _binned_figure(drawn, "by_turn", TURN_BINS, "turn of the dialog"),
                "by_tokens": _binned_figure(
                    drawn, "by_tokens", TOKEN_BINS, "tokens before the turn (4 bytes each)"
                ),
                "survival": _survival_figure(drawn),
            },
            folder,
        )


def _binned_figure(rows: Rows, name: str, bins: Sequence[int], label: str) -> Figure:
    figure, (axis,) = panels(1, 1, 6.4, 3.6)
    last = 0
    for number, row in enumerate(rows):
        points = [(x, item) for x, item in enumerate(getattr(row, name)) if item.mean is not None]
        x, kept = [column for column, _ in points], [item for _, item in points]
        low, high = means(kept) + whiskers(kept) * [[-1], [1]]
        axis.plot(x, means(kept), marker="o", markersize=3, linewidth=1.4, **look(number))
        axis.fill_between(x, low, high, color=look(number)["color"], alpha=0.12, lw=0)
        last = max([last, *x])
    names = [_bin_name(bins, column) for column in range(last + 1)]
    axis.set_xticks(range(last + 1), names)
    _finish(figure, axis, rows, label, "share kept", "band: 95% bootstrap interval over dialogs")
    return figure


def _bin_name(bins: Sequence[int], column: int) -> str:
    start = bins[column]
    after = bins[column + 1] if column + 1 < len(bins) else None
    if bins is TOKEN_BINS:
        low = f"{start // 1000}k" if start else "0"
        return f"{low}+" if after is None else f"{low}–{after // 1000}k"
    if after is None:
        return f"{start}+"
    return str(start) if after == start + 1 else f"{start}–{after - 1}"


def _survival_figure(rows: Rows) -> Figure:
    figure, (axis,) = panels(1, 1, 6.4, 3.6)
    end = max([2, *(turn for row in rows for turn in row.survival.turns)]) + 1
    for number, row in enumerate(rows):
        curve = row.survival
        x = [0, *curve.turns, end]
        last = [curve.share[-1] if curve.share else 1.0]
        axis.step(x, [1.0, *curve.share, *last], where="post", linewidth=1.4, **look(number))
        if curve.share:
            low, high = [1.0, *curve.low, curve.low[-1]], [1.0, *curve.high, curve.high[-1]]
            colour = look(number)["color"]
            axis.fill_between(x, low, high, step="post", color=colour, alpha=0.12, lw=0)
    note = "Kaplan-Meier; band: 95% interval"
    _finish(figure, axis, rows, "turn of the dialog", "share of dialogs never broken so far", note)
    axis.set_xlim(0, end)
    return figure


def _finish(figure: Figure, axis: Axes, rows: Rows, x: str, y: str, note: str) -> None:
    from matplotlib.lines import Line2D

    axis.set(xlabel=x, ylabel=y, ylim=(-0.02, 1.02))
    handles = [Line2D([], [], **look(number)) for number in range(len(rows))]
    legend_below(figure, handles, [row.rule for row in rows], note)
