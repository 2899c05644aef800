"""The results of a drift run under each of its methods, as `summary.json` has them."""

from collections.abc import Iterator, Sequence

from holdfast.analysis import estimates
from holdfast.analysis.accuracy import accuracy_of
from holdfast.analysis.collapse import COUNTED, Collapse, count_turns, without_collapsed
from holdfast.analysis.drift_results import DriftResults
from holdfast.analysis.method_differences import Difference, difference, rule_differences
from holdfast.analysis.outcome import findings_of
from holdfast.analysis.prompt_effect import Baseline, BaselineRow
from holdfast.analysis.prompt_rows import PromptRow, by_prompt
from holdfast.analysis.series import KINDS, MEASURED, Series
from holdfast.analysis.summarised_rounds import BeforeAndAfter, summarised_rounds_of
from holdfast.analysis.summary_numbers import each_estimated, estimated, judged, rounded
from holdfast.analysis.truncation import truncation_of, until_prompt_lost
from holdfast.analysis.unscored import unscored_by_reason
from holdfast.records.run_summary import (
    Against,
    BaselineScores,
    BaselineSummary,
    CollapseSummary,
    Compared,
    Estimated,
    MethodSummary,
    PromptSummary,
    RuleSummary,
    SurvivalSummary,
    TruncationSummary,
    WithoutCollapsed,
)


def method_summaries(results: DriftResults) -> Iterator[MethodSummary]:
    """The results by method."""
    series, whole = results.series, until_prompt_lost(results.series)
    rules = estimates.rule_rows(series)
    against = {pair.row: pair for pair in rule_differences(series, rules)}
    counted = [count_turns(item.records) for item in series]
    left = [without_collapsed(item, turns) for item, turns in zip(series, counted, strict=True)]
    for item, read, turns, rest in zip(series, whole, counted, left, strict=True):
        rows = {kind: estimates.row_of(item, kind) for kind in MEASURED if item.measured(kind)}
        scored = {kind: rows[kind] for kind in KINDS if kind in rows}
        levels = accuracy_of(item) or {}
        first = item is series[0]
        findings = results.findings if first else findings_of(read)
        yield MethodSummary(
            method=item.method,
            outcome=str(findings.outcome),
            conversations=len(item.records),
            unscored=dict(sorted(unscored_by_reason(item.records).items())),
            by_round={kind: each_estimated(row.points) for kind, row in rows.items()},
            over_all_rounds={kind: estimated(row.mean) for kind, row in scored.items()},
            change={kind: judged(row.change) for kind, row in scored.items()},
            against=_against(series, item),
            categories={kind: _categories(item, kind) for kind in scored},
            prompts=tuple(map(_prompt, by_prompt(item))),
            rules=tuple(_rule(row, against.get(row)) for row in rules if row.series is item),
            accuracy={f"{name}_level": each_estimated(points) for name, points in levels.items()}
            or None,
            baseline=_baseline(results.baseline) if first else None,
            collapse=_collapse(turns, _without(left, rest) if turns.collapsed else None),
            truncation=_truncation(item),
            summarised=_summarised(item),
        )


def _categories(item: Series, kind: str) -> dict[str, tuple[Estimated, ...]]:
    return {row.group: each_estimated(row.points) for row in estimates.category_rows(item, kind)}


def _collapse(turns: Collapse, rest: WithoutCollapsed | None) -> CollapseSummary:
    """How much of what models wrote is broken, and the results of the other conversations."""
    return CollapseSummary(
        turns=turns.turns,
        **{name: rounded(turns.share(name)) for name in COUNTED},
        collapsed_from_round={str(number): first for number, first in turns.collapsed.items()},
        without_collapsed=rest,
    )


def _truncation(item: Series) -> TruncationSummary | None:
    """The rounds from which a server read less than it was sent; None if nothing shows that."""
    cut = truncation_of(item)
    if cut is None:
        return None
    return TruncationSummary(
        verdict=cut.verdict,
        from_round={str(number): first for number, first in cut.cut_from.items()},
        most_prompt_tokens=cut.limit,
        canary_before=estimated(cut.canary_before),
        canary_after=estimated(cut.canary_after),
    )


def _summarised(item: Series) -> tuple[SurvivalSummary, ...]:
    """All rules together, then each rule, before and after older rounds were summarised."""
    scores = summarised_rounds_of(item)
    if scores is None:
        return ()
    rules = (_survival(rule, row) for rule, row in scores.rules.items())
    return (_survival(None, scores.overall), *rules)


def _survival(rule: str | None, scores: BeforeAndAfter) -> SurvivalSummary:
    return SurvivalSummary(
        rule=rule,
        before=estimated(scores.before),
        after=estimated(scores.after),
        difference=judged(scores.difference),
    )


def _against(series: Sequence[Series], item: Series) -> Against | None:
    """The differences from the first method; None for that method itself."""
    pairs = {kind: pair for kind in KINDS if (pair := difference(series, item, kind))}
    if not pairs:
        return None
    first = pairs["stability"]
    return Against(
        method=first.against.series.method,
        pairs=first.n,
        **{kind: _compared(pair) for kind, pair in pairs.items()},
    )


def _compared(pair: Difference) -> Compared:
    return Compared(last_round=judged(pair.last), over_all_rounds=judged(pair.mean))


def _without(left: Sequence[Series], rest: Series) -> WithoutCollapsed | None:
    """The numbers of a series without its collapsed conversations; None if no others are left."""
    if not rest.records:
        return None
    row = estimates.row_of(rest, "stability")
    return WithoutCollapsed(
        conversations=len(rest.records),
        stability_by_round=each_estimated(row.points),
        change=judged(row.change),
        against=_against(left, rest),
    )


def _baseline(baseline: Baseline | None) -> BaselineSummary | None:
    if baseline is None:
        return None
    return BaselineSummary(
        all=_scores(baseline.overall),
        measures=tuple(map(_scores, baseline.measures)),
        cases=tuple(map(_scores, baseline.cases)),
    )


def _scores(row: BaselineRow) -> BaselineScores:
    return BaselineScores(
        name=row.name,
        n=row.n,
        prompted=estimated(row.prompted),
        unprompted=estimated(row.unprompted),
        difference=judged(row.difference),
        verdict=row.verdict,
    )


def _prompt(row: PromptRow) -> PromptSummary:
    return PromptSummary(
        id=row.id,
        category=row.category,
        n=row.n,
        stability_by_round=tuple(map(rounded, row.by_round)),
        stability=rounded(row.mean),
        adopted_last_round=rounded(row.adopted),
        n_adopted=row.n_adopted,
    )


def _rule(row: estimates.EstimateRow, pair: Difference | None) -> RuleSummary:
    return RuleSummary(
        rule=row.group,
        n=row.n,
        stability_by_round=each_estimated(row.points),
        first_broken_by_round=tuple(row.broken),
        kept_throughout=row.kept,
        kept_in_any_round=row.kept_once,
        never_followed=row.never_followed,
        change=judged(row.change),
        lower_from_round=row.lower_from,
        lower_in_rounds=tuple(row.lower_in),
        against=None if pair is None else _compared(pair),
    )
