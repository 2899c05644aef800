"""The page's figures as SVG and PNG files, through matplotlib (imported only here, and only when
called).
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.analysis.comparisons import by_category
from holdfast.analysis.series import KINDS, Series
from holdfast.analysis.statistics import Estimate, estimate_columns
from holdfast.files import write_whole
from holdfast.report.charts import round_top
from holdfast.report.labels import legend_below
from holdfast.report.rounds import MOST_DOTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#4a5568", "#18795b", "#2b6cb0", "#b7701b", "#8a4a8f", "#c04a3a")
NAMES = {
    "stability": "keeps its own prompt (stability)",
    "adoption": "takes on the other’s prompt (adoption)",
    "mass": "attention mass on the prompt",
    "divergence": "divergence from a fresh dialog, nats per token",
}
_OF_TURNS = {  # what a figure of them says of its curves
    "mass": "mean over heads, layers and tokens of the agent’s replies",
    "divergence": "mean over the tokens of the agent’s replies; band: 95 % bootstrap interval",
}
_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#e6e6e6",
    "axes.axisbelow": True,
    "svg.hashsalt": "holdfast",
    "svg.fonttype": "none",
    "xtick.color": "#555555",
    "ytick.color": "#555555",
}


def write_figures(series: Sequence[Series], folder: Path, whiskers: bool = False) -> list[Path]:
    """Write drift, categories and, where recorded, mass and divergence, each as SVG and PNG;
    returns the files written.

    With `whiskers`, all but the categories show one standard deviation, as the papers do. The bytes
    depend on the records alone: no date, fixed identifiers."""
    with styled():
        figures = {"drift": _drift(series, whiskers)}
        for kind in KINDS:
            drawn = _categories(series, kind)
            if drawn is not None:
                figures[f"categories_{kind}"] = drawn
        for kind, note in _OF_TURNS.items():
            if any(item.measured(kind) for item in series):
                figures[kind] = _of_turns(series, kind, note, whiskers)
        return save(figures, folder)


def styled():
    """A context in which figures look like ours."""
    import matplotlib

    return matplotlib.rc_context(_STYLE)


def save(figures: dict[str, Figure], folder: Path) -> list[Path]:
    """Writes each figure as SVG and PNG without a date; returns the files."""
    written = []
    for name, figure in figures.items():
        for suffix, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
            path = folder / f"{name}.{suffix}"
            drawn = io.BytesIO()
            figure.savefig(drawn, format=suffix, dpi=200, metadata=metadata)
            written.append(write_whole(path, drawn.getvalue()))
    return written


def _drift(series: Sequence[Series], whiskers: bool) -> Figure:
    kinds = [kind for kind in KINDS if any(item.measured(kind) for item in series)]
    figure, axes = panels(
        len(kinds), len(kinds), 4.6 if len(kinds) > 1 else 6.4, 3.2
    )  # one panel alone has to hold the note
    for kind, axis in zip(kinds, axes, strict=True):
        _draw(
            axis,
            series,
            [estimate_columns(item.values(kind)) for item in series],
            whiskers=whiskers,
        )
        axis.set(title=NAMES[kind], xlabel="round", ylim=(0, 1.02))
    told = "; whisker: one standard deviation" if whiskers else ""
    _legend(figure, f"band: 95 % bootstrap interval over conversations{told}")
    return figure


def _of_turns(series: Sequence[Series], kind: str, note: str, whiskers: bool) -> Figure:
    """What was measured of the agent's turns, by round."""
    figure, axes = panels(1, 1, 4.6, 3.2)
    shown = [item for item in series if item.measured(kind)]
    estimates = [estimate_columns(item.values(kind)) for item in shown]
    _draw(
        axes[0],
        shown,
        estimates,
        whiskers=whiskers,
        colours=[list(series).index(item) for item in shown],
    )
    highest = [
        point.mean + (point.sd or 0)
        for points in estimates
        for point in points
        if point.mean is not None
    ]
    axes[0].set(title=NAMES[kind], xlabel="round", ylim=(0, round_top(highest)))
    _legend(figure, note)
    return figure


def _categories(series: Sequence[Series], kind: str) -> Figure | None:
    by_series = [by_category(item, kind) for item in series]
    names = sorted({name for categories in by_series for name in categories})
    if not names:
        return None
    figure, axes = panels(len(names), min(3, len(names)), 2.6, 2.1)
    for name, axis in zip(names, axes, strict=False):
        present = [place for place, categories in enumerate(by_series) if name in categories]
        _draw(
            axis,
            [series[place] for place in present],
            [by_series[place][name] for place in present],
            whiskers=False,
            colours=present,
        )
        axis.set(title=name.replace("_", " ").replace("$", r"\$"), ylim=(0, 1.02))
    _legend(figure, f"{NAMES[kind]}, by category and round; band: 95 % bootstrap interval")
    return figure


def panels(count: int, across: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A figure of `count` axes, each so many inches wide and high."""
    from matplotlib.figure import Figure

    down = -(-count // across)
    figure = Figure(figsize=(width * across, height * down), layout="constrained")
    axes = list(figure.subplots(down, across, squeeze=False).flat)
    for axis in axes[count:]:
        axis.set_visible(False)
    return figure, axes[:count]


def means(points: Sequence[Estimate]) -> np.ndarray:
    """The means, [point]; NaN, which is not drawn, where nothing was measured."""
    return np.array([np.nan if point.mean is None else point.mean for point in points])


def whiskers(points: Sequence[Estimate]) -> np.ndarray:
    """How far the intervals reach below and above the means, [2, point]; 0 where there is none."""
    reach = [
        (0.0, 0.0)
        if point.mean is None or point.low is None or point.high is None
        else (max(0.0, point.mean - point.low), max(0.0, point.high - point.mean))
        for point in points
    ]
    return np.array(reach).T.reshape(2, len(points))


def _draw(
    axis: Axes,
    series: Sequence[Series],
    estimates: Sequence[Sequence[Estimate]],
    *,
    whiskers: bool,
    colours: Sequence[int] | None = None,
) -> None:
    from matplotlib.ticker import MaxNLocator

    for at, (item, points) in enumerate(zip(series, estimates, strict=True)):
        index = colours[at] if colours else at
        colour, style = (
            COLOURS[index % len(COLOURS)],
            "--" if index >= len(COLOURS) or _is_control(series, item) else "-",
        )
        rounds = np.arange(1, len(points) + 1)
        mean, low, high, sd = np.array(
            [(point.mean, point.low, point.high, point.sd) for point in points], dtype=float
        ).T
        if np.isnan(mean).all():
            continue
        axis.fill_between(rounds, low, high, color=colour, alpha=0.15, linewidth=0)
        if whiskers:
            axis.errorbar(
                rounds + 0.05 * (at - (len(series) - 1) / 2),
                mean,
                sd,
                fmt="none",
                ecolor=colour,
                alpha=0.35,
                elinewidth=0.7,
                capsize=1.5,
            )
        axis.plot(
            rounds,
            mean,
            style,
            color=colour,
            linewidth=1.6,
            marker="o" if len(points) <= MOST_DOTS else "",
            markersize=3,
            gid="curve",
            label=item.label.replace("$", r"\$"),
        )
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))


def _legend(figure: Figure, note: str) -> None:
    """One entry per series, wherever it is drawn first; not the axes' own, which leave out names
    with an underscore.
    """
    curves = {
        str(line.get_label()): line
        for axis in reversed(figure.axes)
        for line in axis.get_lines()
        if line.get_gid() == "curve"
    }
    order = sorted(curves, key=lambda label: COLOURS.index(str(curves[label].get_color())))
    legend_below(figure, [curves[label] for label in order], order, note)


def _is_control(series: Sequence[Series], item: Series) -> bool:
    return item.run != series[0].run
