"""The tables and the figure of `holdfast precedent`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.analysis.precedent_results import CLEAR, Cell, DepthEffects, Precedent
from holdfast.analysis.verdicts import MIN_SAMPLES, verdict_on
from holdfast.plurals import count_of
from holdfast.report import figures
from holdfast.report.wording import aligned, plain, signed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class _HistoryLine:
    """The line of the scores after one history; dashed and hollow without the system prompt."""

    history: str
    prompted: bool  # whether the system prompt was in view
    head: str  # of its column in the table
    label: str
    colour: str
    marker: str
    offset: float  # to the right, so that the points of equal scores stand side by side


_LINES = (
    _HistoryLine(
        history="kept",
        prompted=True,
        head="kept history",
        label="kept replies, prompt in view",
        colour=figures.COLOURS[1],
        marker="o",
        offset=-0.15,
    ),
    _HistoryLine(
        history="kept",
        prompted=False,
        head="kept, no prompt",
        label="kept replies, without it",
        colour=figures.COLOURS[2],
        marker="o",
        offset=0.05,
    ),
    _HistoryLine(
        history="broken",
        prompted=True,
        head="broken history",
        label="broken replies, prompt in view",
        colour=figures.COLOURS[5],
        marker="s",
        offset=-0.05,
    ),
    _HistoryLine(
        history="broken",
        prompted=False,
        head="broken, no prompt",
        label="broken replies, without it",
        colour=figures.COLOURS[3],
        marker="s",
        offset=0.15,
    ),
)


def precedent_lines(results: Sequence[Precedent]) -> list[str]:
    """A table of scores for each method and group of rules, and sentences on what they show."""
    lines: list[str] = []
    for result in results:
        lines += [
            f"{result.method}, {result.rules} rules: {result.used} of {result.of} have a history"
            f" that keeps them (mean score of {CLEAR:g} or more) and one that breaks them",
            *aligned(_score_rows(result), "  "),
        ]
        lines += [*(f"  {sentence}" for sentence in _depth_sentences(result.depths[-1])), ""]
    return lines[:-1]


def _depth_sentences(deepest: DepthEffects) -> list[str]:
    """Says what the longest histories show; with few conversations, that they show nothing yet."""
    count = deepest.precedent.n
    if not count:
        return ["No rule counts, so nothing was measured."]
    sentences = []
    if deepest.prompt_after_broken is not None and deepest.prompt_after_kept is not None:
        sentences.append(
            f"The system prompt is worth {signed(deepest.prompt_after_broken)} after"
            f" {count_of(deepest.seen, 'broken reply')}, and"
            f" {signed(deepest.prompt_after_kept)} after"
            f" {count_of(deepest.seen, 'kept reply')}."
        )
    sentences.append(
        "With the system prompt in view, a kept history is worth"
        f" {signed(deepest.precedent)} against a broken one:"
        f" {verdict_on(deepest.precedent).verdict}."
    )
    if count < MIN_SAMPLES:
        sentences.append(
            f"With {count_of(count, 'conversation')} whose rules count, this is an example and not"
            f" a measurement, which takes {MIN_SAMPLES}."
        )
    return sentences


def _score_rows(result: Precedent) -> list[tuple[str, ...]]:
    """A row for each number of replies seen and a column for each line; the header comes first."""
    lines = [line for line in _LINES if _cells_on(line, result)]
    rows = [("replies seen", *(line.head for line in lines))]
    for depth in result.depths:
        scores = [
            plain(cell.score)
            for line in lines
            for cell in _cells_on(line, result)
            if cell.seen == depth.seen
        ]
        rows.append((str(depth.seen), *scores))
    return rows


def _cells_on(line: _HistoryLine, result: Precedent) -> list[Cell]:
    """The scores on a line, by replies seen; [] if they were not measured."""
    key = (line.history, line.prompted)
    return [cell for cell in result.cells if (cell.history, cell.prompted) == key]


def write_precedent_figures(results: Sequence[Precedent], folder: Path) -> list[Path]:
    """Writes `precedent`, the score of the next reply by replies seen, as SVG and PNG."""
    with figures.styled():
        return figures.save({"precedent": draw_precedent(results)}, folder)


def draw_precedent(results: Sequence[Precedent]) -> Figure:
    """Draws the scores by replies seen, with a panel for each method."""
    results_of_all = [result for result in results if result.rules == "all"]
    figure, axes = figures.panels(len(results_of_all), 1, 4.6, 3.2)
    for axis, result in zip(axes, results_of_all, strict=True):
        for line in _LINES:
            _draw_history(axis, line, _cells_on(line, result))
        method = "without a fix" if result.method == "none" else result.method
        axis.set(title=f"next reply, {method}", xlabel="earlier replies in view")
        depths = [depth.seen for depth in result.depths]
        axis.set(ylabel="score", ylim=(-0.05, 1.05), xticks=depths)
    figures.legend_below(figure, *axes[0].get_legend_handles_labels())
    return figure


def _draw_history(axis: Axes, line: _HistoryLine, cells: Sequence[Cell]) -> None:
    """Draws the scores after one history.

    Where two lines coincide, the wide solid one shows in the gaps of the dashed one.
    """
    cells = [cell for cell in cells if cell.score.mean is not None]
    if not cells:
        return
    points = [cell.score for cell in cells]
    x_values = [cell.seen + line.offset for cell in cells]
    axis.plot(
        x_values,
        figures.means(points),
        "-" if line.prompted else "--",
        linewidth=2.2 if line.prompted else 1.2,
        marker=line.marker,
        markersize=5,
        markerfacecolor=line.colour if line.prompted else "white",
        color=line.colour,
        label=line.label,
    )
    figures.error_bars(axis, x_values, figures.means(points), line.colour, figures.whiskers(points))
