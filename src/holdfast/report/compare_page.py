"""The page and the JSON of runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.analysis.run_comparison import MethodComparison, RunComparison
from holdfast.analysis.series import Series
from holdfast.analysis.verdicts import MIN_SAMPLES
from holdfast.records.comparison_summary import (
    ComparedMethod,
    ComparedRow,
    ComparisonSummary,
    ContrastSummary,
)
from holdfast.report import charts, series_charts
from holdfast.report.compare_sentences import (
    compare_lines,
    compare_title,
    describe_sample,
    pair_name,
)
from holdfast.report.compare_tables import contrast_rows, header_of, reasons, row_name
from holdfast.report.how_measured import about_runs
from holdfast.report.page import Table, render


@dataclass(frozen=True)
class ComparisonFigure:
    """The rounds of the first run and of another, with the numbers behind the curves."""

    title: str
    legend: list[charts.Curve]
    panel: series_charts.Panel
    number_rows: list[series_charts.NumberRow]

    @classmethod
    def of(cls, series: Sequence[Series]) -> ComparisonFigure:
        """The figure of these series."""
        runs = dict.fromkeys(item.run for item in series)
        return cls(
            " and ".join(runs),
            series_charts.looks(series),
            series_charts.panel(series, "stability"),
            series_charts.number_rows(series, ["stability"]),
        )


def comparison_page(comparison: RunComparison) -> str:
    """The HTML of runs side by side."""
    measured = [
        [item for item in series if item.measured("stability")] for series in comparison.figures
    ]
    figures = [ComparisonFigure.of(series) for series in measured if series]
    differences = [
        value
        for item in comparison.methods
        for row in item.rows
        for value in (row.over_rounds, row.last_round)
    ]
    ends = [end for value in differences for end in (value.mean, value.low, value.high)]
    contrasts = Table("What differs", contrast_rows(comparison)) if comparison.contrasts else None
    return render(
        "compare.html.j2",
        "compare",
        compare_title(comparison),
        lines=compare_lines(comparison),
        facts=[f"{len(comparison.runs)} runs", *map(describe_sample, comparison.methods[:1])],
        methods=comparison.methods,
        contrasts=contrasts,
        limits=comparison.limits,
        figures=figures,
        reach=charts.round_top([abs(end) for end in ends if end is not None]),
        pair_name=pair_name,
        row_name=row_name,
        header_of=header_of,
        reasons=reasons,
        enough=lambda item: [row for row in item.rows if not _is_small(row)],
        few=lambda item: [row for row in item.rows if _is_small(row)],
        runs=about_runs(comparison.runs, comparison.labels),
    )


def _is_small(row: ComparedRow) -> bool:
    """Whether a row is one of a rule or a kind with too few conversations for a verdict."""
    return row.grouping in ("kind", "rule") and row.over_rounds.n < MIN_SAMPLES


def comparison_summary(comparison: RunComparison) -> ComparisonSummary:
    """The comparison as `--json` prints it."""
    return ComparisonSummary(
        title=compare_title(comparison),
        runs=comparison.labels,
        folders=tuple(str(run.folder) for run in comparison.runs),
        differs=tuple(
            ContrastSummary(name=item.name, cause=item.cause or None, values=item.values)
            for item in comparison.contrasts
        ),
        limits=comparison.limits,
        methods=tuple(map(_method, comparison.methods)),
    )


def _method(item: MethodComparison) -> ComparedMethod:
    return ComparedMethod(
        run=item.now.run,
        against=item.before.run,
        method=item.now.method,
        against_method=item.before.method,
        pairs=item.pairs,
        prompts=item.prompts,
        rounds=item.rounds,
        rows=item.rows,
    )
