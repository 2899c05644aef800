"""The data of those sections of the drift page that are more than a table of estimates; each is a
template `drift_ID.html.j2`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.analysis.accuracy import accuracy_of
from holdfast.analysis.comparisons import (
    Comparison,
    PromptRow,
    baseline_of,
    by_category,
    by_prompt,
    compare,
)
from holdfast.analysis.rules import RuleComparison, RuleRow, compare_rules, rule_rows
from holdfast.analysis.series import KINDS, Series, category_of
from holdfast.analysis.statistics import Estimate
from holdfast.report.charts import CAPTIONS, Chart, chart_of, round_top

LEAST_DRAWN = 5  # conversations of a prompt, for a place among the least or most stable
_EXTREMES = 5


@dataclass(frozen=True)
class NamedChart:
    """A small chart, with the number of its conversations."""

    name: str
    n: int
    chart: Chart


@dataclass(frozen=True)
class Multiples:
    """Small charts, and their numbers: name, series and estimates by round."""

    charts: tuple[NamedChart, ...]
    numbers: tuple[tuple[str, str, Sequence[Estimate]], ...]


def multiples(
    series: Sequence[Series],
    points: Mapping[str, Sequence[Sequence[Estimate]]],
    counts: Mapping[str, int],
    title: str,
) -> Multiples:
    """Small charts by name.

    Args:
        series: of the page.
        points: by name, the estimates of every series; empty where a series has none.
        counts: by name, the conversations.
        title: of each chart, with {} for its name.
    """
    return Multiples(
        tuple(
            NamedChart(name, counts[name], chart_of(series, estimates, title.format(name)))
            for name, estimates in points.items()
        ),
        tuple(
            (name, item.label, there)
            for name, estimates in points.items()
            for item, there in zip(series, estimates, strict=True)
            if there
        ),
    )


def accuracy_section(series: Sequence[Series]) -> Multiples | None:
    """Both accuracies of the series that have them; None where none has."""
    accuracies = [accuracy_of(item) for item in series]
    if not any(accuracies):
        return None
    points: dict[str, list[Sequence[Estimate]]] = {
        "Prompt level": [accuracy.prompt_level if accuracy else () for accuracy in accuracies],
        "Instruction level": [
            accuracy.instruction_level if accuracy else () for accuracy in accuracies
        ],
    }
    counts = {
        name: max(estimates[0].n for estimates in there if estimates)
        for name, there in points.items()
    }
    return multiples(series, points, counts, "{} accuracy")


@dataclass(frozen=True)
class Rules:
    """Small charts by rule with their numbers, the rules of each series, and the change that each
    method makes at each rule.
    """

    charts: tuple[NamedChart, ...]
    numbers: tuple[tuple[str, str, Sequence[Estimate]], ...]
    rows: Sequence[RuleRow]
    compared: Sequence[RuleComparison]


def rules_section(series: Sequence[Series]) -> Rules | None:
    """Stability rule by rule; None where no prompt gives several."""
    rows = rule_rows(series)
    if not rows:
        return None
    of = {(row.name, row.series): row for row in rows}
    names = dict.fromkeys(row.name for row in rows)
    points = {
        name: [of[name, item].points if (name, item) in of else () for item in series]
        for name in names
    }
    counts = {name: max(row.n for row in rows if row.name == name) for name in names}
    shown = multiples(series, points, counts, "Keeps {}")
    numbers = tuple((row.name, row.series.label, row.points) for row in rows)
    return Rules(shown.charts, numbers, rows, compare_rules(series, rows))


@dataclass(frozen=True)
class Methods:
    """Each series against its baseline, None where they share no conversations; reach is how far
    the axis of all differences goes to either side of 0.
    """

    rows: Sequence[tuple[Series, Series, Comparison | None]]
    reach: float


def methods_section(series: Sequence[Series]) -> Methods | None:
    """Each series against its baseline on the same pairs; None for a single series."""
    rows = [
        (item, baseline, compare(item, baseline))
        for item in series
        if (baseline := baseline_of(series, item)) is not None
    ]
    ends = [
        abs(end)
        for _, _, pair in rows
        for value in (pair.estimates if pair else ())
        for end in (value.mean, value.low, value.high)
        if end is not None
    ]
    return Methods(rows, round_top(ends)) if rows else None


def categories_section(series: Sequence[Series]) -> dict[str, Multiples]:
    """Small charts by the category of the prompt that is scored, for each kind of probe that has
    categories.
    """
    blocks = {}
    for kind in KINDS:
        by_series = [by_category(item, kind) for item in series]
        points: dict[str, list[Sequence[Estimate]]] = {}
        counts: dict[str, int] = {}
        for category in sorted({name for categories in by_series for name in categories}):
            name = category.replace("_", " ")
            points[name] = [categories.get(category, []) for categories in by_series]
            counts[name] = max(
                sum(category_of(record, kind) == category for record in item.records)
                for item in series
            )
        if points:
            blocks[kind] = multiples(series, points, counts, CAPTIONS[kind][0] + ": {}")
    return blocks


@dataclass(frozen=True)
class Prompts:
    """Every system prompt the agent had, with the place of its series; extremes holds titled lists
    of prompts of the first series that were drawn `least` times or more. It is empty where fewer
    than two, `enough`, were.
    """

    rows: Sequence[tuple[int, PromptRow]]
    count: int
    extremes: Sequence[tuple[str, Sequence[PromptRow]]]
    least: int
    enough: int


def prompts_section(series: Sequence[Series]) -> Prompts:
    """Every system prompt the agent had, by series, least stable first."""
    tables = [by_prompt(item) for item in series]
    drawn = [row for row in tables[0] if row.n >= LEAST_DRAWN]
    size = min(_EXTREMES, len(drawn) // 2)
    extremes = (("Least stable", drawn[:size]), ("Most stable", drawn[::-1][:size])) if size else ()
    rows = [(at, row) for at, table in enumerate(tables) for row in table]
    return Prompts(rows, len({row.id for _, row in rows}), extremes, LEAST_DRAWN, len(drawn))
