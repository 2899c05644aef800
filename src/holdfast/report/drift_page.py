"""The page of one or several runs of the drift benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.analysis.baseline import Baseline, baseline_beside
from holdfast.analysis.check_file import Check, read_check
from holdfast.analysis.comparisons import (
    Comparison,
    PromptRow,
    baseline_of,
    by_category,
    by_prompt,
    compare,
    figure_rows,
)
from holdfast.analysis.rules import RuleComparison, RuleRow, accuracy_of, compare_rules, rule_rows
from holdfast.analysis.series import KINDS, MEASURED, Series, category_of
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.summary import json_text, summarise
from holdfast.drift.cases import NO_CATEGORY
from holdfast.records import RunData
from holdfast.report.about import about_runs, conversation_kind, setting
from holdfast.report.charts import (
    CAPTIONS,
    COLOURS,
    NamedChart,
    chart_of,
    looks,
    number_rows,
    panel,
    round_top,
)
from holdfast.report.check_section import check_headline, check_lines, check_sections
from holdfast.report.collapse import collapse_lines, collapse_section
from holdfast.report.conversations import pack, script_chunks, script_json
from holdfast.report.judges import read_agreements
from holdfast.report.next_step import finding_of, next_step
from holdfast.report.page import Download, json_file, render, table_files
from holdfast.report.sentences import counted, opening

LEAST_DRAWN = 5  # conversations of a prompt, for a place among the least or most stable
_EXTREMES = 5


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


SHOWN_CATEGORIES = 6  # the rest is folded
_NAMED = (
    ("model", "model"),
    ("user_model", "user model"),
    ("dialogs", "replayed"),
    ("user_turns", "user turns of"),
    ("suite", "suite"),
)


def render_page(runs: Sequence[RunData], labels: Sequence[str], series: Sequence[Series]) -> str:
    """The HTML of the report.

    Texts of models reach it as escaped text, or as inert JSON that the script writes into text
    nodes."""
    index, chunks = pack(series)
    of_run = dict(zip(labels, runs, strict=True))
    for item, entry in zip(series, index["series"], strict=True):
        manifest = of_run[item.run].manifest
        entry["probedAfter"] = setting(manifest, "probe_at") == "after-round"
    checks = [read_check(run) for run in runs]
    baseline = baseline_beside(runs[0], series[0])
    rules = rules_section(series)
    categories = _agent_categories(series)
    unsorted = rules is not None or categories == [NO_CATEGORY]
    one_category = unsorted and len(categories) < 2  # the whole run again
    shown = list(zip(looks(series), series, strict=True))
    kinds = {kind: [look for look, item in shown if item.measured(kind)] for kind in MEASURED}
    measured = {kind: there for kind, there in kinds.items() if there}
    first, *lines = _opening(runs[0], checks[0], series, baseline)
    return render(
        "drift.html.j2",
        "drift" if checks[0] is None else "check",
        first,
        lines=lines,
        facts=_facts(runs, series),
        series=series,
        rounds=max(item.rounds for item in series),
        looks=looks(series),
        colours={item: index % COLOURS for index, item in enumerate(series)},
        measured=measured,
        scored=[kind for kind in KINDS if kind in measured],
        panel=panel,
        number_rows=number_rows,
        check=check_sections(checks, labels, series),
        accuracy=accuracy_section(series),
        rules=rules,
        methods=methods_section(series),
        categories={} if one_category else categories_section(series),
        CAPTIONS=CAPTIONS,
        shown_categories=SHOWN_CATEGORIES,
        baseline=baseline,
        judges=[agreement for run in runs for agreement in read_agreements(run.folder)],
        prompts=prompts_section(series),
        collapse=collapse_section(series),
        agent_categories=categories,
        downloads=_downloads(runs, labels, series),
        conversation_kinds=sorted({conversation_kind(run.manifest) for run in runs}),
        probe_places=sorted({str(setting(run.manifest, "probe_at", "in-place")) for run in runs}),
        diverged=any(setting(run.manifest, "divergence") for run in runs),
        runs=about_runs(runs, labels),
        index=script_json(index),
        chunks=script_chunks(chunks),
    )


def _opening(
    run: RunData, check: Check | None, series: Sequence[Series], baseline: Baseline | None
) -> list[str]:
    """The first sentences of the page: of a check its verdicts, which hold for any number of
    conversations, else those of the first run, and what to do next.
    """
    if check is not None:
        return [check_headline(check), *check_lines(check)]
    first = [item for item in series if item.run == series[0].run]
    lines = [*opening(series, baseline), *collapse_lines(first, run)]
    return [*lines, next_step(finding_of(run, first))]


def _downloads(
    runs: Sequence[RunData], labels: Sequence[str], series: Sequence[Series]
) -> list[Download]:
    """The figures' numbers, and the summary of every run."""
    files = table_files("figures", "every point of every figure", figure_rows(series))
    for run, label in zip(runs, labels, strict=True):
        name = f"summary-{label.replace('/', '-')}.json" if label else "summary.json"
        files.append(
            json_file(name, "what the run found, as in its folder", json_text(summarise(run)))
        )
    return files


def _facts(runs: Sequence[RunData], series: Sequence[Series]) -> list[str]:
    manifest = runs[0].manifest
    identity = manifest.get("identity", {})
    seed = setting(manifest, "seed")
    return [
        f"{len(runs)} runs" if len(runs) > 1 else "",
        counted(series),
        *(f"{word} {text}" for name, word in _NAMED if (text := _name(identity.get(name)))),
        "" if seed is None else f"seed {seed}",
        str(manifest.get("created") or "")[:10],
    ]


def _name(value: object) -> str:
    """The name of a model or suite, given as a name or as an object with one."""
    return str(value.get("name", "")) if isinstance(value, dict) else str(value or "")


def _agent_categories(series: Sequence[Series]) -> list[str]:
    records = [record for item in series for record in item.records]
    return sorted({name for record in records if (name := record["agent"]["category"])})
