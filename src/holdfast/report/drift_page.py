"""The page of one or several runs of the drift benchmark."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from holdfast.analysis import estimates
from holdfast.analysis.accuracy import accuracy_of
from holdfast.analysis.drift_results import DriftResults
from holdfast.analysis.method_differences import (
    Difference,
    baseline_of,
    difference,
    rule_differences,
)
from holdfast.analysis.prompt_rows import PromptRow, by_prompt
from holdfast.analysis.series import KINDS, MEASURED, Series
from holdfast.analysis.truncation import until_prompt_lost
from holdfast.drift.cases import NO_CATEGORY
from holdfast.records import Run
from holdfast.records.identity import ConversationsIdentity
from holdfast.report import charts, series_charts
from holdfast.report.check_section import check_headline, check_lines, check_sections
from holdfast.report.collapse_section import collapse_lines, collapse_section
from holdfast.report.context_section import survival_lines, survival_table, truncation_lines
from holdfast.report.conversations import pack, script_chunks, script_json
from holdfast.report.how_measured import about_runs, conversation_kind
from holdfast.report.judge_agreement import read_agreements
from holdfast.report.next_step import next_step
from holdfast.report.opening_sentences import counted, opening
from holdfast.report.page import render

_EXTREMES = 5
SHOWN_CATEGORIES = 6  # the others are folded away


class ComparedMethods(NamedTuple):
    """Each series with its baseline and its differences by kind, and the reach of the axis."""

    rows: list[tuple[Series, Series, list[Difference | None]]]
    reach: float


class PromptsSection(NamedTuple):
    """Every prompt that the agent had, the least stable of each series first.

    Attributes:
        rows: each with the number of its series.
        prompts: how many different ones there are.
        extremes: titles, each with prompts of the first series; () if too few are in enough
            conversations.
        enough: how many prompts of the first series are in enough conversations to be ranked.
    """

    rows: list[tuple[int, PromptRow]]
    prompts: int
    extremes: Sequence[tuple[str, list[PromptRow]]]
    enough: int


def _methods_section(series: Sequence[Series]) -> ComparedMethods | None:
    """None if there is nothing to compare."""
    rows = [
        (item, baseline, [difference(series, item, kind) for kind in KINDS])
        for item in series
        if (baseline := baseline_of(series, item)) is not None
    ]
    pairs = [pair for _, _, differences in rows for pair in differences if pair]
    values = [value for pair in pairs for value in (pair.last, pair.mean)]
    ends = [end for value in values for end in (value.mean, value.low, value.high)]
    reach = charts.round_top([abs(end) for end in ends if end is not None])
    return ComparedMethods(rows, reach) if rows else None


def _accuracy_section(series: Sequence[Series]) -> series_charts.Multiples | None:
    """Charts of both accuracies, for the series that have them; None if none do."""
    groups = [
        series_charts.CurveGroup(f"{level.capitalize()} level", item, points[0].n, points)
        for item in series
        for level, points in (accuracy_of(item) or {}).items()
    ]
    return series_charts.multiples(series, groups, "{} accuracy") if groups else None


def _categories_section(series: Sequence[Series]) -> dict[str, series_charts.Multiples]:
    """By kind of probe, a small chart for each category of the scored prompt."""
    blocks = {}
    for kind in KINDS:
        rows = [row for item in series for row in estimates.category_rows(item, kind)]
        if rows:
            groups = series_charts.groups_of(sorted(rows, key=lambda row: row.group))
            spaced = [group._replace(name=group.name.replace("_", " ")) for group in groups]
            blocks[kind] = series_charts.multiples(
                series, spaced, series_charts.CAPTIONS[kind][0] + ": {}"
            )
    return blocks


def _prompts_section(series: Sequence[Series]) -> PromptsSection:
    tables = [by_prompt(item) for item in series]
    drawn = [row for row in tables[0] if row.results.n >= estimates.MIN_UNITS]
    size = min(_EXTREMES, len(drawn) // 2)
    return PromptsSection(
        rows=[(at, row) for at, table in enumerate(tables) for row in table],
        prompts=len({row.results.id for table in tables for row in table}),
        extremes=(("Least stable", drawn[:size]), ("Most stable", drawn[::-1][:size]))
        if size
        else (),
        enough=len(drawn),
    )


def _series_entry(item: Series, run: Run) -> dict[str, Any]:
    """A series in the index of conversations."""
    identity = run.identity_as(ConversationsIdentity)
    return {
        "label": item.label,
        "run": item.run,
        "method": item.method,
        "isGiven": conversation_kind(identity) in ("scripted", "replayed"),
        "probedAfter": identity.settings.probe_at == "after-round",
    }


def render_page(results: Sequence[DriftResults]) -> str:
    """The HTML of the report; model output is escaped, or inert JSON."""
    runs = [result.run for result in results]
    labels = [result.series[0].run for result in results]
    series = [item for result in results for item in result.series]
    entries = [_series_entry(item, result.run) for result in results for item in result.series]
    packed = pack(series)
    identities = [run.identity_as(ConversationsIdentity) for run in runs]
    checks = [result.check for result in results]
    baseline = results[0].baseline
    rules = estimates.rule_rows(series)
    enough = [row for row in rules if row.n >= estimates.MIN_UNITS]
    agents = [record.agent for item in series for record in item.records]
    categories = sorted({agent.category for agent in agents if agent.category})
    one_category = len(categories) < 2 and (rules or categories == [NO_CATEGORY])
    shown = list(zip(series_charts.looks(series), series, strict=True))
    kinds = {kind: [look for look, item in shown if item.measured(kind)] for kind in MEASURED}
    measured = {kind: drawn for kind, drawn in kinds.items() if drawn}
    first, *lines = _opening(results[0])
    return render(
        "drift.html.j2",
        "drift" if checks[0] is None else "check",
        first,
        lines=lines,
        facts=_facts(runs, series),
        series=series,
        rounds=max(item.rounds for item in series),
        looks=series_charts.looks(series),
        colours={item: index % charts.COLOURS for index, item in enumerate(series)},
        measured=measured,
        scored=[kind for kind in KINDS if kind in measured],
        panel=series_charts.panel,
        row_of=estimates.row_of,
        number_rows=series_charts.number_rows,
        check=check_sections(checks, labels, series),
        accuracy=_accuracy_section(series),
        rules=series_charts.multiples(series, series_charts.groups_of(enough), "Keeps {}")
        if rules
        else None,
        rule_rows=enough,
        MIN_UNITS=estimates.MIN_UNITS,
        few_rules=[row for row in rules if row not in enough],
        rule_differences=rule_differences(series, enough),
        methods=_methods_section(series),
        # a single category without meaning would only repeat the whole run
        categories={} if one_category else _categories_section(series),
        CAPTIONS=series_charts.CAPTIONS,
        shown_categories=SHOWN_CATEGORIES,
        baseline=baseline,
        judges=[agreement for run in runs for agreement in read_agreements(run.folder)],
        prompts=_prompts_section(series),
        collapse=collapse_section(series),
        compaction=survival_table(series),
        agent_categories=categories,
        conversation_kinds=sorted({conversation_kind(identity) for identity in identities}),
        probe_places=sorted({identity.settings.probe_at for identity in identities}),
        runs=about_runs(runs, labels),
        index=script_json({"series": entries, **packed.listing}),
        chunks=script_chunks(packed.chunks),
    )


def _opening(results: DriftResults) -> list[str]:
    """The opening sentences of the page: on a check if there is one, else on the first run."""
    series = results.series
    cut_off = truncation_lines(series)
    kept = survival_lines(series, results.run)
    if (check := results.check) is not None:
        return [check_headline(check), *check_lines(check), *cut_off, *kept]
    opened = opening(until_prompt_lost(series), results.findings, results.baseline)
    lines = [*cut_off, *opened, *collapse_lines(results), *kept]
    return [*lines, next_step(results)]


def _facts(runs: Sequence[Run], series: Sequence[Series]) -> list[str]:
    identity = runs[0].identity_as(ConversationsIdentity)
    named = {
        "model": identity.model,
        "user model": identity.user_model and identity.user_model.name,
        "replayed": identity.dialogs and identity.dialogs.name,
        "user turns of": identity.user_turns and identity.user_turns.name,
        "suite": identity.suite,
    }
    return [
        f"{len(runs)} runs" if len(runs) > 1 else "",
        counted(series),
        *(f"{word} {name}" for word, name in named.items() if name),
        "" if identity.settings.seed is None else f"seed {identity.settings.seed}",
        (runs[0].manifest.created or "")[:10],
    ]
