"""The numbers behind the figures of the drift page, as rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from holdfast.analysis.comparisons import by_category
from holdfast.analysis.series import KINDS, MEASURED, Series
from holdfast.analysis.statistics import Estimate, estimate_columns

HEAD = ("run", "method", "measure", "category", "round", "n", "mean", "low", "high", "sd")


def figure_rows(series: Sequence[Series]) -> list[tuple[Any, ...]]:
    """Every point of every figure under `HEAD`; the category is empty where all are taken
    together.
    """
    rows: list[tuple[Any, ...]] = [HEAD]
    for item in series:
        for kind in MEASURED:
            if item.measured(kind):
                rows += _points(item, kind, "", estimate_columns(item.values(kind)))
        for kind in KINDS:
            for name, points in by_category(item, kind).items():
                rows += _points(item, kind, name, points)
    return rows


def _points(
    item: Series, kind: str, category: str, points: Sequence[Estimate]
) -> Iterator[tuple[Any, ...]]:
    for number, point in enumerate(points, start=1):
        if point.mean is not None:
            numbers = (point.mean, point.low, point.high, point.sd)
            shown = (None if value is None else round(value, 6) for value in numbers)
            yield (item.run, item.method, kind, category, number, point.n, *shown)
