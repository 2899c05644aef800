"""The tables and the figure of `holdfast precedent`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from holdfast.analysis.precedent_results import CLEAR, Cell, Precedent
from holdfast.analysis.verdicts import verdict_on
from holdfast.report import figures
from holdfast.report.wording import aligned, plain, signed

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class _Condition(NamedTuple):
    """What the model sees before its next reply."""

    history: str  # whether its earlier replies "kept" the rule or have it "broken"
    prompted: bool  # whether the system prompt is in view
    head: str  # of its column
    label: str  # of its line

    def holds_for(self, cell: Cell) -> bool:
        """Whether a cell was measured under it."""
        return cell.history == self.history and cell.prompted == self.prompted


_CONDITIONS = (
    _Condition("kept", True, "kept history", "kept replies, system prompt in view"),
    _Condition("kept", False, "kept, no prompt", "kept replies, without it"),
    _Condition("broken", True, "broken history", "broken replies, system prompt in view"),
    _Condition("broken", False, "broken, no prompt", "broken replies, without it"),
)


def precedent_lines(results: Sequence[Precedent]) -> list[str]:
    """A table of scores per method and group of rules, and what prompt and precedent are worth."""
    lines: list[str] = []
    for result in results:
        lines += [
            f"{result.method}, {result.rules} rules: {result.used} of {result.of} have a history"
            f" that keeps them (mean score of {CLEAR:g} or more) and one that breaks them",
            *aligned(_rows(result), "  "),
        ]
        deepest = result.depths[-1]
        if deepest.prompt_after_broken is not None and deepest.prompt_after_kept is not None:
            lines += [
                f"  The system prompt is worth {signed(deepest.prompt_after_broken)} after"
                f" {deepest.seen} broken replies, and {signed(deepest.prompt_after_kept)} after"
                f" {deepest.seen} kept ones."
            ]
        verdict = verdict_on(deepest.precedent).word("higher", "lower")
        lines += [
            f"  With it in view, a kept history is worth {signed(deepest.precedent)} against a"
            f" broken one: {verdict}.",
            "",
        ]
    return lines[:-1]


def _rows(result: Precedent) -> list[tuple[str, ...]]:
    """The scores of the next reply: a row per number of replies seen, a column per condition."""
    conditions = [c for c in _CONDITIONS if any(map(c.holds_for, result.cells))]
    rows = [("replies seen", *(condition.head for condition in conditions))]
    for depth in result.depths:
        cells = [cell for cell in result.cells if cell.seen == depth.seen]
        scores = [plain(cell.score) for c in conditions for cell in filter(c.holds_for, cells)]
        rows.append((str(depth.seen), *scores))
    return rows


def write_precedent_figures(results: Sequence[Precedent], folder: Path) -> list[Path]:
    """Writes `precedent`, the score of the next reply by replies seen, as SVG and PNG."""
    shown = [result for result in results if result.rules == "all"]
    with figures.styled():
        figure, axes = figures.panels(len(shown), min(len(shown), 3), 4.6, 3.2)
        for axis, result in zip(axes, shown, strict=True):
            for colour, condition in zip(figures.COLOURS, _CONDITIONS, strict=False):
                _draw_line(axis, condition, colour, result)
            axis.set(title=f"next reply, {result.method}", xlabel="earlier replies in view")
            axis.set(ylabel="score", ylim=(-0.02, 1.02), xticks=[d.seen for d in result.depths])
        figures.legend_below(figure, *axes[0].get_legend_handles_labels())
        return figures.save({"precedent": figure}, folder)


def _draw_line(axis: Axes, condition: _Condition, colour: str, result: Precedent) -> None:
    """The scores under one condition, with their intervals as a band."""
    cells = filter(condition.holds_for, result.cells)
    measured = [cell for cell in cells if cell.score.mean is not None]
    seen, scores = [cell.seen for cell in measured], [cell.score for cell in measured]
    axis.plot(
        seen,
        figures.means(scores),
        "-" if condition.prompted else "--",
        marker="o",
        markersize=3,
        color=colour,
        label=condition.label,
    )
    intervals = [score.interval for score in scores if score.interval is not None]
    if intervals and len(intervals) == len(scores):
        low, high = zip(*intervals, strict=True)
        axis.fill_between(seen, low, high, color=colour, alpha=0.12)
