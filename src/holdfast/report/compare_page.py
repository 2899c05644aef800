"""The page and the JSON of runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.analysis.run_comparison import RunComparison
from holdfast.analysis.series import Series
from holdfast.analysis.verdicts import MIN_SAMPLES
from holdfast.records.comparison_summary import (
    ComparisonSummary,
    MethodComparison,
    RuleGroupComparison,
)
from holdfast.report import charts, series_charts
from holdfast.report.compare_sentences import (
    compare_lines,
    compare_title,
    describe_sample,
    pair_name,
)
from holdfast.report.compare_tables import contrast_rows, header_of
from holdfast.report.how_measured import about_runs
from holdfast.report.page import Table, render


@dataclass(frozen=True)
class ComparisonFigure:
    """The rounds of the first run and of another, with the numbers behind the curves."""

    title: str
    legend: list[charts.Curve]
    panel: series_charts.Panel
    number_rows: list[series_charts.NumberRow]


@dataclass(frozen=True)
class ComparisonTable:
    """The differences between two runs under one method.

    Attributes:
        rare: the rows of rules and kinds with too few conversations for a verdict.
    """

    title: str
    header: tuple[str, ...]
    rows: list[RuleGroupComparison]
    rare: list[RuleGroupComparison]


def comparison_page(comparison: RunComparison) -> str:
    """The HTML of runs side by side."""
    measured_runs = [
        [series for series in all_series if series.measured("stability")]
        for all_series in comparison.figures
    ]
    contrasts = None
    if comparison.contrasts:
        contrasts = Table("What differs", contrast_rows(comparison))
    content = {
        "figures": [_figure(all_series) for all_series in measured_runs if all_series],
        "tables": [*map(_table, comparison.methods)],
        "reach": _reach(comparison),
        "contrasts": contrasts,
        "limits": comparison.limits,
    }
    return render(
        "compare.html.j2",
        "compare",
        compare_title(comparison),
        content,
        lines=compare_lines(comparison),
        facts=[f"{len(comparison.runs)} runs", *map(describe_sample, comparison.methods[:1])],
        runs=about_runs(comparison.runs, comparison.labels),
    )


def _figure(all_series: Sequence[Series]) -> ComparisonFigure:
    runs = dict.fromkeys(series.run for series in all_series)
    return ComparisonFigure(
        title=" and ".join(runs),
        legend=series_charts.legend_of(all_series),
        panel=series_charts.panel(all_series, "stability"),
        number_rows=series_charts.number_rows(all_series, ["stability"]),
    )


def _table(method_comparison: MethodComparison) -> ComparisonTable:
    return ComparisonTable(
        title=pair_name(method_comparison),
        header=header_of(method_comparison),
        rows=[row for row in method_comparison.rows if not _is_rare(row)],
        rare=[row for row in method_comparison.rows if _is_rare(row)],
    )


def _is_rare(row: RuleGroupComparison) -> bool:
    """Whether a rule or a kind of rule has too few conversations for a verdict."""
    return row.grouping in ("kind", "rule") and row.over_rounds.n < MIN_SAMPLES


def _reach(comparison: RunComparison) -> float:
    """A round number at or above the ends of every interval, whatever their sign."""
    differences = [
        value
        for method_comparison in comparison.methods
        for row in method_comparison.rows
        for value in (row.over_rounds, row.last_round)
    ]
    ends = [end for value in differences for end in (value.mean, value.low, value.high)]
    return charts.round_top([abs(end) for end in ends if end is not None])


def comparison_summary(comparison: RunComparison) -> ComparisonSummary:
    """The comparison as `--json` prints it."""
    return ComparisonSummary(
        title=compare_title(comparison),
        runs=comparison.labels,
        folders=tuple(str(run.folder) for run in comparison.runs),
        differs=comparison.contrasts,
        limits=comparison.limits,
        methods=comparison.methods,
    )
