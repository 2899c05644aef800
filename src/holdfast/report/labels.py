"""Where the words of a figure stand: labels of points beside one another, and legends that fit."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

_STEPS = (6, 12, 20, 30, 42, 56, 72)  # points from the place, nearest first
_WAYS = ((1, 0.6), (-1, 0.6), (1, -0.9), (-1, -0.9), (0, 1), (0, -1), (1, 0), (-1, 0))
_DOT = 3  # points around a place, for its marker
_FAR = 15  # points; a label beyond is joined to its place by a line
_SIZES = (None, 8, 7, 6)  # of a legend's letters, the largest that fits is taken
_PER_INCH, _SMALL_PER_INCH = 15, 20  # letters of a note, and of a name in the smallest size
_USUAL = 0.8  # inches of a figure's height that a legend may take


@dataclass(frozen=True)
class Label:
    """A text, where it belongs in the units of the data, and its colour."""

    text: str
    x: float
    y: float
    colour: str


def place_labels(figure: Figure, axis: Axes, labels: Sequence[Label], size: float = 7) -> None:
    """Writes every label as near to its place as it can stand without touching another.

    The figure must be finished otherwise: the place of everything else decides.
    """
    from matplotlib.transforms import Bbox

    renderer = _renderer(figure)
    figure.draw_without_rendering()  # settles the layout
    inside = axis.get_window_extent(renderer)
    points = axis.transData.transform([(label.x, label.y) for label in labels]).reshape(-1, 2)
    taken = [Bbox.from_extents(x, y, x, y).padded(_DOT * figure.dpi / 72) for x, y in points]
    for label in sorted(labels, key=lambda label: (label.x, label.y)):
        text = axis.annotate(
            label.text,
            (label.x, label.y),
            xytext=(0, 0),
            textcoords="offset points",
            fontsize=size,
            color=label.colour,
            va="center",
        )
        text.set_in_layout(False)
        for way in _places():
            _move(text, *way)
            if _stands_free(text.get_window_extent(renderer).padded(1), inside, taken):
                break
        taken.append(text.get_window_extent(renderer).padded(1))
        if max(map(abs, text.xyann)) > _FAR:
            start = text.xyann
            axis.annotate(
                "",
                (label.x, label.y),
                xytext=start,
                textcoords="offset points",
                arrowprops={
                    "arrowstyle": "-",
                    "color": label.colour,
                    "linewidth": 0.4,
                    "alpha": 0.6,
                },
            ).set_in_layout(False)


def legend_below(
    figure: Figure, handles: Sequence[Any], names: Sequence[str], note: str = "", columns: int = 2
) -> None:
    """The legend under the figure, in as many columns and as large as fits.

    A name too long for a line is cut, and the figure grows where the legend is high.
    """
    title = textwrap.fill(note, int(figure.get_figwidth() * _PER_INCH)) if note else None
    room = int(figure.get_figwidth() * _SMALL_PER_INCH)
    short = [name if len(name) <= room else f"{name[: room - 1]}…" for name in names]
    sizes = [(size, across) for size in _SIZES for across in range(columns, 0, -1)]
    for size, across in sizes:
        legend = figure.legend(
            handles,
            short,
            loc="outside lower left",
            frameon=False,
            ncols=across,
            fontsize=size,
            title=title,
            title_fontsize=8,
            alignment="left",
        )
        box = legend.get_window_extent(_renderer(figure))
        if box.width <= figure.bbox.width or (size, across) == sizes[-1]:
            figure.set_figheight(
                figure.get_figheight() + max(0.0, box.height / figure.dpi - _USUAL)
            )
            return
        legend.remove()


def _stands_free(box: Bbox, inside: Bbox, taken: Sequence[Bbox]) -> bool:
    """Whether a box lies inside the axes and touches no other."""
    whole = (
        inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0 and box.y1 <= inside.y1
    )
    return whole and not any(box.overlaps(other) for other in taken)


def _places() -> Iterator[tuple[float, float, str]]:
    """Offsets in points with the side that is set there, nearest first."""
    for step in _STEPS:
        for across, up in _WAYS:
            yield across * step, up * step, {1: "left", -1: "right", 0: "center"}[across]


def _move(text: Any, across: float, up: float, side: str) -> None:
    text.xyann = (across, up)
    text.set_horizontalalignment(side)


def _renderer(figure: Figure) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    return FigureCanvasAgg(figure).get_renderer()
