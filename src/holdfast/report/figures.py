"""Figures as SVG and PNG: their style, axes, legends and files.

Matplotlib is imported only when a figure is drawn.
"""

from __future__ import annotations

import io
import itertools
import textwrap
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from holdfast.analysis.statistics import Estimate
from holdfast.errors import cut
from holdfast.files import write_whole

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#4a5568", "#18795b", "#2b6cb0", "#b7701b", "#8a4a8f", "#c04a3a")
_STYLE: Any = {
    "font.family": "sans-serif",
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
_LINES = ("-", "--", ":", "-.")
_DPI = 200  # of PNG files, and of images inside SVG files
_FONT_SIZES = (None, 8, 7, 6)  # of a legend; None is that of the figure
_NOTE_CHARACTERS_PER_INCH = 15
_NAME_CHARACTERS_PER_INCH = 20  # at the smallest font size
_LEGEND_HEIGHT = 0.8  # inches; a figure with a taller legend grows


def styled() -> AbstractContextManager[None]:
    """A context that applies the style of the figures."""
    import matplotlib

    return matplotlib.rc_context(_STYLE)


def save(figures: dict[str, Figure], folder: Path) -> list[Path]:
    """Writes each figure as SVG and PNG without a date; returns the files.

    A figure is laid out once, as it is first drawn. `Figure.savefig` would lay it out and draw it
    once more for each format, which takes twice as long.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    paths = []
    for name, figure in figures.items():
        svg = io.BytesIO()
        png = io.BytesIO()
        figure.set_dpi(_DPI)
        FigureCanvasAgg(figure).print_png(png, metadata={"Software": None})
        figure.set_layout_engine("none")
        FigureCanvasSVG(figure).print_svg(svg, metadata={"Date": None})
        paths.append(write_whole(folder / f"{name}.svg", svg.getvalue()))
        paths.append(write_whole(folder / f"{name}.png", png.getvalue()))
    return paths


def panels(count: int, across: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A figure of `count` axes, each `width` by `height` inches."""
    from matplotlib.figure import Figure

    down = -(-count // across)
    figure = Figure(figsize=(width * across, height * down), layout="constrained")
    axes = list(figure.subplots(down, across, squeeze=False).flat)
    for axis in axes[count:]:
        axis.set_visible(False)
    return figure, axes[:count]


def means(points: Sequence[Estimate]) -> np.ndarray:
    """The means, [point]; NaN, which matplotlib leaves out, if nothing was measured."""
    return np.array([point.mean for point in points], dtype=float)


def whiskers(points: Sequence[Estimate]) -> np.ndarray:
    """How far the intervals reach below and above the means, [2, point]; 0 without an interval."""
    mean, low, high = np.array([(p.mean, p.low, p.high) for p in points], dtype=float).T
    return np.nan_to_num(np.maximum([mean - low, high - mean], 0))


@dataclass(frozen=True)
class CurveStyle:
    """The colour and the line style of a curve, as matplotlib writes them."""

    colour: str
    line: str = "-"


def style_of(number: int) -> CurveStyle:
    """The style of a curve by its number; lines change once all colours are used."""
    return CurveStyle(COLOURS[number % len(COLOURS)], _LINES[number // len(COLOURS) % len(_LINES)])


def error_bars(
    axis: Axes,
    x: ArrayLike,
    y: ArrayLike,
    colour: str,
    up: ArrayLike,
    across: ArrayLike | None = None,
) -> None:
    """Draws thin error bars around points: vertical ones, and horizontal ones if given."""
    axis.errorbar(
        x,
        y,
        up,
        across,
        fmt="none",
        ecolor=colour,
        alpha=0.35,
        elinewidth=0.7,
        capsize=1.5,
    )


def legend_below(
    figure: Figure,
    handles: Sequence[Artist],
    names: Sequence[str],
    note: str = "",
    columns: int = 2,
) -> None:
    """Draws a legend below the figure, with as large a font and as many columns as fit.

    Long names are cut, and the figure grows if the legend is tall.

    Args:
        note: a text above the entries; "" for none.
        columns: the largest number of columns to try.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    width = figure.get_figwidth()
    title = textwrap.fill(note, int(width * _NOTE_CHARACTERS_PER_INCH)) if note else None
    short_names = [cut(name, int(width * _NAME_CHARACTERS_PER_INCH)) for name in names]
    layouts = list(itertools.product(_FONT_SIZES, range(columns, 0, -1)))
    for size, across in layouts:
        legend = figure.legend(
            handles,
            short_names,
            ncols=across,
            fontsize=size,
            title=title,
            title_fontsize=8,
            loc="outside lower left",
            frameon=False,
            alignment="left",
        )
        box = legend.get_window_extent(FigureCanvasAgg(figure).get_renderer())
        if box.width <= figure.bbox.width or (size, across) == layouts[-1]:
            extra = max(0.0, box.height / figure.dpi - _LEGEND_HEIGHT)
            figure.set_figheight(figure.get_figheight() + extra)
            return
        legend.remove()
