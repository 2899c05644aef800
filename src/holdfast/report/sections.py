"""What the sections of the drift page show; each is a template `drift_ID.html.j2`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.analysis.accuracy import accuracy_of
from holdfast.analysis.baseline import Baseline
from holdfast.analysis.comparisons import (
    Comparison,
    baseline_of,
    by_category,
    compare,
    overall_change,
)
from holdfast.analysis.rules import RuleComparison, RuleRow, compare_rules, rule_rows
from holdfast.analysis.series import KINDS, Series, category_of
from holdfast.analysis.statistics import Estimate
from holdfast.report.charts import Chart, Mark, difference_mark, round_top
from holdfast.report.panels import (
    CAPTIONS,
    Look,
    NumbersRow,
    Panel,
    colour_of,
    legend,
    numbers,
    panel,
    small_chart,
)
from holdfast.report.sentences import broken_text, fall

SHOWN_CATEGORIES = 6  # the rest is folded

Points = tuple[str, str, Sequence[Estimate]]


@dataclass(frozen=True)
class NamedChart:
    """The chart of a category or a rule, with the number of its conversations."""

    name: str
    n: int
    chart: Chart


# --- Round by round


@dataclass(frozen=True)
class ChangeRow:
    """The change of a series from its first round to its last."""

    label: str
    stability: Estimate
    adoption: Estimate
    n: int


@dataclass(frozen=True)
class Drift:
    """Stability and adoption per round; single where a series has one conversation, and so no
    interval.
    """

    panels: tuple[Panel, ...]
    numbers: tuple[NumbersRow, ...]
    changes: tuple[ChangeRow, ...]
    single: bool


def drift_section(series: Sequence[Series]) -> Drift:
    """Stability and adoption per round for every series, and their change from first to last
    round.
    """
    kinds = [kind for kind in KINDS if any(item.measured(kind) for item in series)]
    return Drift(
        panels=tuple(panel(series, kind) for kind in kinds),
        numbers=numbers(series, kinds),
        changes=tuple(map(_change_row, series)),
        single=any(len(item.records) < 2 for item in series),
    )


def _change_row(item: Series) -> ChangeRow:
    return ChangeRow(
        item.label,
        overall_change(item, "stability"),
        overall_change(item, "adoption"),
        len(item.records),
    )


# --- Accuracy


@dataclass(frozen=True)
class Accuracies:
    """Accuracy by prompt and by instruction, and their numbers by round."""

    charts: tuple[NamedChart, ...]
    numbers: tuple[Points, ...]


def accuracy_section(series: Sequence[Series]) -> Accuracies | None:
    """Both accuracies of the series that have them; None where none has."""
    accuracies = [accuracy_of(item) for item in series]
    levels = (
        ("Prompt level", [each.prompt_level if each else () for each in accuracies]),
        ("Instruction level", [each.instruction_level if each else () for each in accuracies]),
    )
    charts: list[NamedChart] = []
    numbers: list[Points] = []
    for name, points in levels:
        count = max((estimates[0].n for estimates in points if estimates), default=0)
        charts.append(NamedChart(name, count, small_chart(series, points, f"{name} accuracy")))
        numbers += [
            (name, item.label, estimates)
            for item, estimates in zip(series, points, strict=True)
            if estimates
        ]
    return Accuracies(tuple(charts), tuple(numbers)) if numbers else None


# --- Rules


@dataclass(frozen=True)
class RuleLine:
    """A rule in one series; in words when it was lost and how many conversations broke it."""

    row: RuleRow
    fall: str
    broken: str


@dataclass(frozen=True)
class Rules:
    """Small multiples by rule, their numbers, and what each method changes at each."""

    charts: tuple[NamedChart, ...]
    lines: tuple[RuleLine, ...]
    compared: tuple[RuleComparison, ...]

    @property
    def numbers(self) -> list[Points]:
        """Each rule's name, its series and its estimates by round."""
        rows = [line.row for line in self.lines]
        return [(row.name, row.series.label, row.points) for row in rows]


def rules_section(series: Sequence[Series], baseline: Baseline | None = None) -> Rules | None:
    """Stability rule by rule; None where no prompt gives several."""
    rows = rule_rows(series)
    if not rows:
        return None
    names = dict.fromkeys(row.name for row in rows)
    charts = [_rule_chart(series, [row for row in rows if row.name == name]) for name in names]
    lines = [RuleLine(row, fall(row, baseline), broken_text(row)) for row in rows]
    return Rules(tuple(charts), tuple(lines), tuple(compare_rules(series, rows)))


def _rule_chart(series: Sequence[Series], rows: Sequence[RuleRow]) -> NamedChart:
    """The chart of one rule, whose rows are by series."""
    name = rows[0].name
    points = {row.series: row.points for row in rows}
    chart = small_chart(series, [points.get(item, ()) for item in series], f"Keeps {name}")
    return NamedChart(name, max(row.n for row in rows), chart)


# --- Methods


@dataclass(frozen=True)
class Marked:
    """A difference and its drawing."""

    estimate: Estimate
    mark: Mark


@dataclass(frozen=True)
class MethodRow:
    """A series against its baseline on n pairs; no cells where the two cannot be compared."""

    label: str
    against: str
    colour: int
    n: int
    cells: tuple[Marked, ...]


def methods_section(series: Sequence[Series]) -> list[MethodRow]:
    """Each series against its baseline on the same pairs; empty for a single series."""
    compared = [
        (item, baseline, compare(item, baseline))
        for item in series
        if (baseline := baseline_of(series, item)) is not None
    ]
    reach = _reach([comparison for *_, comparison in compared if comparison])
    return [
        MethodRow(
            label=item.label,
            against=baseline.label,
            colour=colour_of(series, item),
            n=comparison.n if comparison else 0,
            cells=_marked(comparison, reach) if comparison else (),
        )
        for item, baseline, comparison in compared
    ]


def _reach(comparisons: Sequence[Comparison]) -> float:
    """How far the axis of all differences goes to either side of 0."""
    ends = []
    for comparison in comparisons:
        for value in comparison.estimates:
            ends += [abs(end) for end in (value.mean, value.low, value.high) if end is not None]
    return round_top(ends)


def _marked(comparison: Comparison, reach: float) -> tuple[Marked, ...]:
    return tuple(Marked(value, difference_mark(value, reach)) for value in comparison.estimates)


# --- Categories


@dataclass(frozen=True)
class CategoryRow:
    """A category in one series."""

    name: str
    label: str
    points: Sequence[Estimate]


@dataclass(frozen=True)
class Categories:
    """Small multiples by the category of the prompt that is scored, and their numbers."""

    kind: str
    title: str
    whose: str
    charts: tuple[NamedChart, ...]
    rows: tuple[CategoryRow, ...]

    @property
    def numbers(self) -> list[Points]:
        """Each category's name, its series and its estimates by round."""
        return [(row.name, row.label, row.points) for row in self.rows]


def categories_section(series: Sequence[Series]) -> list[Categories]:
    """By the category of the prompt that is scored, for each kind; empty where no prompt has
    one.
    """
    return [block for kind in KINDS if (block := _categories(series, kind)).charts]


def _categories(series: Sequence[Series], kind: str) -> Categories:
    by_series = [by_category(item, kind) for item in series]
    names = sorted({name for categories in by_series for name in categories})
    charts, rows = [], []
    for name in names:
        estimates = [categories.get(name, []) for categories in by_series]
        spaced = name.replace("_", " ")
        title = f"{CAPTIONS[kind][0]}: {spaced}"
        count = max(_count(item, kind, name) for item in series)
        charts.append(NamedChart(spaced, count, small_chart(series, estimates, title)))
        rows += [
            CategoryRow(name, item.label, points)
            for item, points in zip(series, estimates, strict=True)
            if points
        ]
    whose = "the agent’s" if kind == "stability" else "the user’s"
    return Categories(kind, CAPTIONS[kind][0], whose, tuple(charts), tuple(rows))


def _count(item: Series, kind: str, category: str) -> int:
    """Conversations whose scored prompt is of a category."""
    return sum(category_of(record, kind) == category for record in item.records)


# --- Attention


@dataclass(frozen=True)
class Attention:
    """Attention mass per round."""

    legend: list[Look]
    panel: Panel
    numbers: tuple[NumbersRow, ...]


def attention_section(series: Sequence[Series]) -> Attention | None:
    """Attention mass on the prompt per round; None where records carry none."""
    measured = [item.measured("mass") for item in series]
    if not any(measured):
        return None
    looks = [look for look, shown in zip(legend(series), measured, strict=True) if shown]
    return Attention(looks, panel(series, "mass"), numbers(series, ["mass"]))


# --- Divergence


@dataclass(frozen=True)
class Divergence:
    """Divergence from a fresh dialog per round."""

    legend: list[Look]
    panel: Panel
    numbers: tuple[NumbersRow, ...]


def divergence_section(series: Sequence[Series]) -> Divergence | None:
    """Divergence per round; None where records carry none."""
    measured = [item.measured("divergence") for item in series]
    if not any(measured):
        return None
    looks = [look for look, shown in zip(legend(series), measured, strict=True) if shown]
    return Divergence(looks, panel(series, "divergence"), numbers(series, ["divergence"]))
