"""Labels of points, each as near to its point as it can be without overlapping another."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

_DISTANCES = (6, 12, 20, 30, 42, 56, 72)  # of a label from its point, in points
_DIRECTIONS = ((1, 0.6), (-1, 0.6), (1, -0.9), (-1, -0.9), (0, 1), (0, -1), (1, 0), (-1, 0))
_MARKER = 3  # the radius of a point's marker, in points
_FAR = 15  # points; a line joins a label that is farther away to its point


@dataclass(frozen=True)
class PointLabel:
    """A label of the point (x, y), in the coordinates of the data."""

    text: str
    x: float
    y: float
    colour: str


def place_labels(figure: Figure, axis: Axes, labels: Sequence[PointLabel]) -> None:
    """Writes labels around their points; everything else in the figure must be drawn already."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.transforms import Bbox

    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw_without_rendering()  # settles the layout
    frame = axis.get_window_extent(renderer)
    points = axis.transData.transform([(label.x, label.y) for label in labels]).reshape(-1, 2)
    taken = [Bbox.from_extents(x, y, x, y).padded(_MARKER * figure.dpi / 72) for x, y in points]
    for label in sorted(labels, key=lambda label: (label.x, label.y)):
        text = axis.annotate(
            label.text,
            xy=(label.x, label.y),
            xytext=(0, 0),
            textcoords="offset points",
            fontsize=7,
            color=label.colour,
            va="center",
        )
        text.set_in_layout(False)
        for distance, (across, up) in itertools.product(_DISTANCES, _DIRECTIONS):
            text.xyann = (across * distance, up * distance)
            text.set_horizontalalignment(_alignment(across))
            box = text.get_window_extent(renderer).padded(1)
            if _contains(frame, box) and not any(box.overlaps(other) for other in taken):
                break
        taken.append(box)
        if max(map(abs, text.xyann)) > _FAR:
            axis.annotate(
                "",
                xy=(label.x, label.y),
                xytext=text.xyann,
                textcoords="offset points",
                arrowprops={
                    "arrowstyle": "-",
                    "color": label.colour,
                    "linewidth": 0.4,
                    "alpha": 0.6,
                },
            ).set_in_layout(False)


def _contains(outer: Bbox, inner: Bbox) -> bool:
    return (
        outer.containsx(inner.x0)
        and outer.containsx(inner.x1)
        and outer.containsy(inner.y0)
        and outer.containsy(inner.y1)
    )


def _alignment(across: float) -> Literal["left", "right", "center"]:
    """The alignment of a label that lies to the right (1), left (-1) or above its point (0)."""
    if across == 0:
        return "center"
    return "left" if across > 0 else "right"
