"""The results of a drift run under each of its methods, as `summary.json` has them."""

from collections.abc import Iterator, Sequence

from holdfast.analysis import estimates
from holdfast.analysis.accuracy import accuracy_of
from holdfast.analysis.collapse import count_turns, without_collapsed
from holdfast.analysis.drift_results import DriftResults
from holdfast.analysis.estimates import by_prompt
from holdfast.analysis.method_differences import RowDifference, difference, rule_differences
from holdfast.analysis.outcome import findings_of
from holdfast.analysis.series import KINDS, MEASURED, Series
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.summarised_rounds import summarised_rounds_of
from holdfast.analysis.truncation import truncation_of, until_prompt_lost
from holdfast.analysis.unscored import unscored_by_reason
from holdfast.analysis.verdicts import verdict_on
from holdfast.records.run_summary import (
    AgainstFirstMethod,
    Collapse,
    MethodDifferences,
    MethodSummary,
    RuleSummary,
    WithoutCollapsed,
)


def method_summaries(results: DriftResults) -> Iterator[MethodSummary]:
    """Summarises the results of each method."""
    all_series = results.series
    with_prompt = until_prompt_lost(results.series)
    rules = estimates.rule_rows(all_series)
    against = {pair.row: pair for pair in rule_differences(all_series, rules)}
    collapses = [count_turns(series.records) for series in all_series]
    uncollapsed = list(map(without_collapsed, all_series, collapses))
    for series, series_with_prompt, collapse, rest in zip(
        all_series, with_prompt, collapses, uncollapsed, strict=True
    ):
        rows = {kind: estimates.row_of(series, kind) for kind in MEASURED if series.measured(kind)}
        scored = {kind: rows[kind] for kind in KINDS if kind in rows}
        levels = accuracy_of(series) or {}
        is_first = series is all_series[0]
        findings = results.findings if is_first else findings_of(series_with_prompt)
        yield MethodSummary(
            method=series.method,
            outcome=str(findings.outcome),
            conversations=len(series.records),
            unscored=dict(sorted(unscored_by_reason(series.records).items())),
            by_round={kind: tuple(row.points) for kind, row in rows.items()},
            over_all_rounds={kind: row.mean for kind, row in scored.items()},
            change={kind: verdict_on(row.change) for kind, row in scored.items()},
            against=_against(all_series, series),
            categories={kind: _categories(series, kind) for kind in scored},
            prompts=tuple(by_prompt(series)),
            rules=tuple(_rule(row, against.get(row)) for row in rules if row.series is series),
            accuracy={f"{name}_level": tuple(points) for name, points in levels.items()} or None,
            baseline=results.baseline if is_first else None,
            collapse=_collapse(collapse, uncollapsed, rest),
            truncation=truncation_of(series),
            summarised=summarised_rounds_of(series),
        )


def _categories(series: Series, kind: str) -> dict[str, tuple[Estimate, ...]]:
    return {row.group: tuple(row.points) for row in estimates.category_rows(series, kind)}


def _collapse(collapse: Collapse, uncollapsed: Sequence[Series], rest: Series) -> Collapse:
    """Adds the results of the conversations that did not collapse.

    Args:
        uncollapsed: all series without their collapsed conversations.
        rest: the one of them that is summarised.
    """
    if not collapse.collapsed_from_round:
        return collapse
    results = _without_collapsed(uncollapsed, rest)
    return collapse.model_copy(update={"without_collapsed": results})


def _against(all_series: Sequence[Series], series: Series) -> AgainstFirstMethod | None:
    """Summarises the differences from the first method; None for that method itself."""
    pairs = {kind: pair for kind in KINDS if (pair := difference(all_series, series, kind))}
    if not pairs:
        return None
    first = pairs["stability"]
    return AgainstFirstMethod(
        method=first.against.series.method,
        pairs=first.n,
        **{kind: _differences(pair) for kind, pair in pairs.items()},
    )


def _differences(pair: RowDifference) -> MethodDifferences:
    return MethodDifferences(
        last_round=verdict_on(pair.last), over_all_rounds=verdict_on(pair.mean)
    )


def _without_collapsed(uncollapsed: Sequence[Series], rest: Series) -> WithoutCollapsed | None:
    """Summarises a series without its collapsed conversations; None if no others are left."""
    if not rest.records:
        return None
    row = estimates.row_of(rest, "stability")
    return WithoutCollapsed(
        conversations=len(rest.records),
        stability_by_round=tuple(row.points),
        change=verdict_on(row.change),
        against=_against(uncollapsed, rest),
    )


def _rule(row: estimates.EstimateRow, pair: RowDifference | None) -> RuleSummary:
    return RuleSummary(
        rule=row.group,
        n=row.n,
        stability_by_round=tuple(row.points),
        first_broken_by_round=tuple(row.first_broken_by_round),
        kept_throughout=row.kept_throughout,
        kept_in_any_round=row.kept_in_any_round,
        never_followed=row.never_followed,
        change=verdict_on(row.change),
        lower_from_round=row.lower_from_round,
        lower_in_rounds=tuple(row.lower_in_rounds),
        against=None if pair is None else _differences(pair),
    )
