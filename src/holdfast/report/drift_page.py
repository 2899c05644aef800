"""The page of one or several runs of the drift benchmark."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from holdfast.analysis.accuracy import accuracy_of
from holdfast.analysis.drift_results import DriftResults
from holdfast.analysis.estimate_rows import MIN_UNITS, EstimateRow, category_rows, row_of, rule_rows
from holdfast.analysis.prompt_rows import prompt_rows
from holdfast.analysis.row_differences import (
    RowDifference,
    baseline_of,
    difference,
    rule_differences,
)
from holdfast.analysis.series import KINDS, MEASURED, Series
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.truncation import until_prompt_lost
from holdfast.drift.cases import NO_CATEGORY
from holdfast.records import Run
from holdfast.records.drift_summary import PromptSummary
from holdfast.records.identity import ConversationsIdentity
from holdfast.records.judge_records import read_agreements
from holdfast.report import charts, series_charts
from holdfast.report.check_section import check_headline, check_lines, check_sections
from holdfast.report.collapse_section import collapse_lines, collapse_section
from holdfast.report.context_section import survival_lines, survival_table, truncation_lines
from holdfast.report.conversations import pack, script_chunks, script_json
from holdfast.report.how_measured import about_runs, conversation_kind
from holdfast.report.next_step import next_step
from holdfast.report.opening_sentences import opening
from holdfast.report.page import render
from holdfast.report.score_phrases import describe_conversations

_MAX_EXTREMES = 5  # prompts in each list of the least and the most stable


class RoundsSection(NamedTuple):
    """Stability and adoption round by round.

    Attributes:
        changes: from the first round to the last, by series and kind, in the order of the panels.
    """

    panels: list[series_charts.Panel]
    numbers: list[series_charts.NumberRow]
    changes: list[list[Estimate]]


class AttentionSection(NamedTuple):
    """The attention mass on the system prompt round by round."""

    legend: list[charts.Curve]
    panel: series_charts.Panel
    numbers: list[series_charts.NumberRow]


class RulesSection(NamedTuple):
    """How well each rule is kept.

    Attributes:
        rows: the rules in enough conversations for an interval; `charts` has a chart for each.
        rare: the rules in too few conversations.
        differences: what each method changes at each of `rows`.
    """

    charts: series_charts.Multiples
    rows: list[EstimateRow]
    rare: list[EstimateRow]
    differences: list[RowDifference]


class MethodRow(NamedTuple):
    """A series compared with its baseline; a difference is None if it cannot be measured."""

    series: Series
    baseline: Series
    differences: list[RowDifference | None]  # by kind


class MethodsSection(NamedTuple):
    """The methods compared, and the reach of the axis on which the differences are drawn."""

    rows: list[MethodRow]
    reach: float


class RankedPrompts(NamedTuple):
    """The prompts at one end of the ranking, such as "Least stable"."""

    title: str
    prompts: list[PromptSummary]


class PromptsSection(NamedTuple):
    """Every prompt that the agent had.

    Attributes:
        by_series: the prompts of each series, the least stable first.
        prompts: how many different ones there are.
        extremes: both ends of the ranking in the first series; [] if too few prompts are in enough
            conversations.
        num_ranked: how many prompts of the first series are in enough conversations for a rank.
    """

    by_series: list[list[PromptSummary]]
    prompts: int
    extremes: list[RankedPrompts]
    num_ranked: int


def render_page(results: Sequence[DriftResults]) -> str:
    """The HTML of the report; the output of models is escaped, or inert JSON."""
    runs = [result.run for result in results]
    labels = [result.series[0].run for result in results]
    all_series = [series for result in results for series in result.series]
    headline, *lines = _opening(results[0])
    return render(
        "drift.html.j2",
        "drift" if results[0].check is None else "check",
        headline,
        _content(results, runs, labels, all_series),
        lines=lines,
        facts=_facts(runs, all_series),
        runs=about_runs(runs, labels),
    )


def _content(
    results: Sequence[DriftResults],
    runs: Sequence[Run],
    labels: Sequence[str],
    all_series: Sequence[Series],
) -> dict[str, Any]:
    """Gathers the sections of the page; those without data are None or empty."""
    measured_kinds = [
        kind for kind in MEASURED if any(series.measured(kind) for series in all_series)
    ]
    scored_kinds = [kind for kind in KINDS if kind in measured_kinds]
    identities = [run.identity_as(ConversationsIdentity) for run in runs]
    agents = [record.agent for series in all_series for record in series.records]
    categories = sorted({agent.category for agent in agents if agent.category})
    rules = _rules_section(all_series)
    # a single category without meaning would only repeat the whole run
    is_one_category = len(categories) < 2 and (rules is not None or categories == [NO_CATEGORY])
    entries = [_series_entry(series, result.run) for result in results for series in result.series]
    packed_conversations = pack(all_series)
    return {
        "series": all_series,
        "rounds": max(series.rounds for series in all_series),
        "legend": series_charts.legend_of(all_series),
        "colours": {series: index % charts.COLOURS for index, series in enumerate(all_series)},
        "measured": measured_kinds,  # the kinds of `MEASURED` that at least one series has
        "scored": scored_kinds,  # those of them that are scores of replies
        "check": check_sections([result.check for result in results], labels, all_series),
        "by_round": _rounds_section(all_series, scored_kinds),
        "accuracy": _accuracy_section(all_series),
        "rules": rules,
        "methods": _methods_section(all_series),
        "categories": {} if is_one_category else _categories_section(all_series),
        "baseline": results[0].baseline,
        "judges": [agreement for run in runs for agreement in read_agreements(run.folder)],
        "prompts": _prompts_section(all_series),
        "attention": _attention_section(all_series) if "mass" in measured_kinds else None,
        "collapse": collapse_section(all_series),
        "compaction": survival_table(all_series),
        "agent_categories": categories,  # for the filter of the list of conversations
        "conversation_kinds": sorted({conversation_kind(identity) for identity in identities}),
        "probe_places": sorted({identity.settings.probe_at for identity in identities}),
        "index": script_json({"series": entries, **packed_conversations.listing}),
        "chunks": script_chunks(packed_conversations.chunks),
    }


def _opening(results: DriftResults) -> list[str]:
    """The opening sentences of the page: on a check if there is one, else on the first run."""
    all_series = results.series
    cut_off = truncation_lines(all_series)
    survival = survival_lines(all_series, results.run)
    if (check := results.check) is not None:
        return [check_headline(check), *check_lines(check), *cut_off, *survival]
    sentences = opening(until_prompt_lost(all_series), results.findings, results.baseline)
    lines = [*cut_off, *sentences, *collapse_lines(results), *survival]
    return [*lines, next_step(results)]


def _facts(runs: Sequence[Run], all_series: Sequence[Series]) -> list[str]:
    """Says what was measured, in a few words each; "" where a run has no such thing."""
    identity = runs[0].identity_as(ConversationsIdentity)
    names = {
        "model": identity.model,
        "user model": identity.user_model and identity.user_model.name,
        "replayed": identity.dialogs and identity.dialogs.name,
        "user turns of": identity.user_turns and identity.user_turns.name,
        "suite": identity.suite,
    }
    return [
        f"{len(runs)} runs" if len(runs) > 1 else "",
        describe_conversations(all_series),
        *(f"{word} {name}" for word, name in names.items() if name),
        "" if identity.settings.seed is None else f"seed {identity.settings.seed}",
        (runs[0].manifest.created or "")[:10],
    ]


def _rounds_section(all_series: Sequence[Series], scored_kinds: Sequence[str]) -> RoundsSection:
    return RoundsSection(
        panels=[series_charts.panel(all_series, kind) for kind in scored_kinds],
        numbers=series_charts.number_rows(all_series, scored_kinds),
        changes=[[row_of(series, kind).change for kind in scored_kinds] for series in all_series],
    )


def _accuracy_section(all_series: Sequence[Series]) -> series_charts.Multiples | None:
    """Charts of both accuracies, for the series that have them; None if none do."""
    groups = [
        series_charts.CurveGroup(f"{level.capitalize()} level", series, points[0].n, points)
        for series in all_series
        for level, points in (accuracy_of(series) or {}).items()
    ]
    return series_charts.multiples(all_series, groups, "{} accuracy") if groups else None


def _rules_section(series: Sequence[Series]) -> RulesSection | None:
    """None if no prompt has several rules."""
    rows = rule_rows(series)
    if not rows:
        return None
    enough = [row for row in rows if row.n >= MIN_UNITS]
    groups = series_charts.groups_of(enough)
    return RulesSection(
        charts=series_charts.multiples(series, groups, "Keeps {}"),
        rows=enough,
        rare=[row for row in rows if row not in enough],
        differences=rule_differences(series, enough),
    )


def _methods_section(all_series: Sequence[Series]) -> MethodsSection | None:
    """None if no series has a baseline to be compared with."""
    rows = [
        MethodRow(series, baseline, [difference(all_series, series, kind) for kind in KINDS])
        for series in all_series
        if (baseline := baseline_of(all_series, series)) is not None
    ]
    if not rows:
        return None
    pairs = [pair for row in rows for pair in row.differences if pair]
    values = [value for pair in pairs for value in (pair.last_round, pair.over_all_rounds)]
    ends = [end for value in values for end in (value.mean, value.low, value.high)]
    return MethodsSection(rows, charts.round_top([abs(end) for end in ends if end is not None]))


def _categories_section(all_series: Sequence[Series]) -> dict[str, series_charts.Multiples]:
    """By kind of score, a small chart for each category of the prompt that is scored."""
    by_kind = {}
    for kind in KINDS:
        rows = [row for series in all_series for row in category_rows(series, kind)]
        if not rows:
            continue
        groups = series_charts.groups_of(sorted(rows, key=lambda row: row.group))
        spaced = [group._replace(name=group.name.replace("_", " ")) for group in groups]
        title = f"{series_charts.CAPTIONS[kind].title}: {{}}"
        by_kind[kind] = series_charts.multiples(all_series, spaced, title)
    return by_kind


def _prompts_section(all_series: Sequence[Series]) -> PromptsSection:
    tables = [prompt_rows(series) for series in all_series]
    ranked = [row for row in tables[0] if row.n >= MIN_UNITS]
    size = min(_MAX_EXTREMES, len(ranked) // 2)
    extremes: list[RankedPrompts] = []
    if size:
        extremes = [
            RankedPrompts("Least stable", ranked[:size]),
            RankedPrompts("Most stable", ranked[::-1][:size]),
        ]
    return PromptsSection(
        by_series=tables,
        prompts=len({row.id for table in tables for row in table}),
        extremes=extremes,
        num_ranked=len(ranked),
    )


def _attention_section(all_series: Sequence[Series]) -> AttentionSection:
    pairs = zip(series_charts.legend_of(all_series), all_series, strict=True)
    return AttentionSection(
        legend=[entry for entry, series in pairs if series.measured("mass")],
        panel=series_charts.panel(all_series, "mass"),
        numbers=series_charts.number_rows(all_series, ["mass"]),
    )


def _series_entry(series: Series, run: Run) -> dict[str, Any]:
    """A series as the page's script reads it."""
    identity = run.identity_as(ConversationsIdentity)
    return {
        "label": series.label,
        "run": series.run,
        "method": series.method,
        "isGiven": conversation_kind(identity) in ("scripted", "replayed"),
        "probedAfter": identity.settings.probe_at == "after-round",
    }
