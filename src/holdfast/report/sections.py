"""The sections of the page as HTML; every text that comes from records or command lines passes `escape`."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape

import numpy as np

from holdfast.report.charts import COLOURS, Line, difference_mark, line_chart, round_top
from holdfast.report.findings import Comparison, baseline_of, by_category, compare, overall_change, plain, signed
from holdfast.report.scores import KINDS, Series, category_of
from holdfast.report.statistics import Estimate, estimate_columns

CAPTIONS = {
    "stability": ("Keeps its own prompt", "stability, scored by its own probe"),
    "adoption": ("Takes on the other’s prompt", "adoption, scored by the user’s probe"),
    "mass": ("Attention mass on the agent’s system prompt", "mean over heads, layers and tokens of its replies"),
}


def section(name: str, title: str, body: str) -> str:
    """A landmark of its own, named by its heading."""
    return f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{escape(title)}</h2>{body}</section>'


def drift_section(series: Sequence[Series]) -> str:
    """Stability and adoption per round for every series, and their change from first to last round."""
    kinds = [kind for kind in KINDS if any(_measured(item, kind) for item in series)]
    panels = "".join(_panel(series, kind) for kind in kinds)
    single = " single" if len(kinds) == 1 else ""
    body = (
        f'<div class="options">{legend(series)}{_toggles()}</div>'
        f'<div class="panels{single}">{panels}</div>{_numbers(series, kinds)}'
    )
    if max(item.rounds for item in series) > 1:
        body += _changes(series)
    return section("drift", "Round by round", body)


def methods_section(series: Sequence[Series]) -> str | None:
    """Each series against its baseline on the same pairs; None for a single series."""
    others = [(item, baseline) for item in series if (baseline := baseline_of(series, item)) is not None]
    if not others:
        return None
    found = [(item, baseline, compare(item, baseline)) for item, baseline in others]
    lede = (
        "<p>Each conversation with a method is set against the conversation that had the same prompts without it, and the mean of these "
        "differences is shown with its 95 % interval. A line that crosses zero is a difference this run cannot tell from chance.</p>"
    )
    bodies = "".join(_comparison_row(series, item, baseline, result, found) for item, baseline, result in found)
    head = "".join(f'<th scope="col">{text}</th>' for text in (
        "Method, and what it is compared with", "Stability, last round", "Stability, all rounds", "Adoption, last round", "Adoption, all rounds"))
    return section("methods", "Methods compared", f'{lede}<table class="stack"><thead><tr>{head}</tr></thead><tbody>{bodies}</tbody></table>')


def categories_section(series: Sequence[Series]) -> str | None:
    """Small multiples by the category of the prompt that is scored; None where no prompt has one."""
    blocks = {kind: _multiples(series, kind) for kind in KINDS}
    shown = [kind for kind in KINDS if blocks[kind]]
    if not shown:
        return None
    choice = "" if len(shown) < 2 else (
        '<fieldset class="segments"><legend class="unseen">Show</legend>'
        '<label><input type="radio" name="category-kind" id="show-stability" checked>Stability</label>'
        '<label><input type="radio" name="category-kind" id="show-adoption">Adoption</label></fieldset>'
    )
    parts = "".join(f'<div class="choice-{kind}">{blocks[kind]}</div>' for kind in shown)
    return section("categories", "By category", f'<div class="options">{legend(series)}{choice}</div>{parts}')


def mass_section(series: Sequence[Series]) -> str | None:
    """Attention mass on the prompt per round; None where records carry none."""
    shown = [item for item in series if _measured(item, "mass")]
    if not shown:
        return None
    note = (
        "<p>How much of its attention the agent spends on its system prompt while it replies. This stands beside the behaviour above and "
        "is no proof of its cause: a model can keep an instruction it hardly attends to, and lose one it still attends to.</p>"
    )
    body = (
        f'<div class="options">{legend(series, shown)}</div>'
        f'<div class="panels single">{_panel(series, "mass")}<div class="aside">{note}</div></div>{_numbers(series, ["mass"])}'
    )
    return section("attention", "Attention on the prompt", body)


def minus(text: str) -> str:
    """Numbers with a true minus sign in place of the hyphen that terminals get."""
    return re.sub(r"-(?=[0-9])", "\N{MINUS SIGN}", text)


def legend(series: Sequence[Series], shown: Sequence[Series] | None = None) -> str:
    """Swatches with the labels of the series."""
    items = "".join(
        f'<li><svg class="swatch s{i % COLOURS}" viewBox="0 0 27 11" aria-hidden="true"><line x1="1" x2="26" y1="5.5" y2="5.5"{_dash(series, item)}/></svg>{escape(item.label)}</li>'
        for i, item in enumerate(series) if shown is None or item in shown
    )
    return f'<ul class="legend" aria-label="Legend">{items}</ul>'


def scroll_table(label: str, table: str) -> str:
    """A table that scrolls inside itself, reachable by keyboard."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}">{table}</div>'


def colour_of(series: Sequence[Series], item: Series) -> int:
    """The index of the colour a series has everywhere on the page."""
    return list(series).index(item) % COLOURS


def _dash(series: Sequence[Series], item: Series) -> str:
    return ' stroke-dasharray="5 4"' if _dashed(series, item) else ""


def _dashed(series: Sequence[Series], item: Series) -> bool:
    """Other runs than the first are dashed, and so are colours used a second time."""
    return item.run != series[0].run or list(series).index(item) >= COLOURS


def _lines(series: Sequence[Series], estimates: Sequence[Sequence[Estimate]]) -> list[Line]:
    return [Line(item.label, points, i % COLOURS, _dashed(series, item)) for i, (item, points) in enumerate(zip(series, estimates, strict=True))]


def _panel(series: Sequence[Series], kind: str) -> str:
    estimates = [estimate_columns(item.values(kind)) for item in series]
    rounds = max(item.rounds for item in series)
    peak = [point.mean + (point.sd or 0.0) for points in estimates for point in points if point.mean is not None]
    title, meaning = CAPTIONS[kind]
    chart = line_chart(_lines(series, estimates), rounds, title, _describe(series, estimates), top=round_top(peak) if kind == "mass" else 1.0)
    digits = 3 if kind == "mass" else 2
    data = [[[i % COLOURS, item.label, *_spoken(points[r], digits)] for i, (item, points) in enumerate(zip(series, estimates, strict=True))
             if r < len(points) and points[r].mean is not None] for r in range(rounds)]
    return (
        f'<figure><figcaption>{escape(title)}<br><span>{escape(meaning)}</span></figcaption>'
        f'<div class="plot" tabindex="0" role="slider" aria-label="{escape(title)}, by round" aria-valuemin="1" aria-valuemax="{rounds}" aria-valuenow="{rounds}" '
        f'aria-valuetext="Round {rounds}" data-points="{escape(json.dumps(data))}">{chart}</div><p class="readout"></p></figure>'
    )


def _spoken(point: Estimate, digits: int) -> list[str]:
    value = f"{point.mean:.{digits}f}"
    interval = "" if point.low is None else f"[{point.low:.{digits}f}, {point.high:.{digits}f}]"
    return [value, interval, "" if point.sd is None else f"{point.sd:.{digits}f}"]


def _describe(series: Sequence[Series], estimates: Sequence[Sequence[Estimate]]) -> str:
    said = []
    for item, points in zip(series, estimates, strict=True):
        seen = [(i, point.mean) for i, point in enumerate(points, start=1) if point.mean is not None]
        if seen:
            said.append(f"{item.label}: {seen[0][1]:.2f} at round {seen[0][0]}, {seen[-1][1]:.2f} at round {seen[-1][0]}")
    return "; ".join(said) + "."


def _toggles() -> str:
    return (
        '<fieldset class="toggles"><legend class="unseen">Show</legend>'
        '<label><input type="checkbox" data-hides="no-band" checked>95 % interval (band)</label>'
        '<label><input type="checkbox" data-hides="no-whisker" checked>one standard deviation (whisker)</label></fieldset>'
    )


def _numbers(series: Sequence[Series], kinds: Sequence[str]) -> str:
    """The figure as a table: mean, interval and standard deviation of every point."""
    rounds = max(item.rounds for item in series)
    head = "".join(f'<th scope="col" class="number">{r}</th>' for r in range(1, rounds + 1))
    rows = []
    for kind in kinds:
        digits = 3 if kind == "mass" else 2
        for item in series:
            if not _measured(item, kind):
                continue
            cells = "".join(f'<td class="number">{_cell(point, digits)}</td>' for point in estimate_columns(item.values(kind)))
            rows.append(f'<tr><th scope="row">{escape(item.label)}<br><span class="meta">{kind}, n = {len(item.records)}</span></th>{cells}</tr>')
    table = f'<table><thead><tr><th scope="col">Round</th>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'
    return (f'<details class="numbers"><summary>The numbers behind the {"figure" if len(kinds) == 1 else "figures"}</summary>'
            f'{scroll_table("Mean, 95 % interval and standard deviation by round", table)}</details>')


def _cell(point: Estimate, digits: int) -> str:
    if point.mean is None:
        return "–"
    value, interval, sd = _spoken(point, digits)
    return f'<span class="big">{value}</span>' + (f'<br><span class="range">{interval}</span>' if interval else "") + (f'<br><span class="range">sd {sd}</span>' if sd else "")


def _changes(series: Sequence[Series]) -> str:
    last = max(item.rounds for item in series)
    rows = []
    for item in series:
        cells = "".join(f'<td data-label="{kind.capitalize()}">{_difference(overall_change(item, kind))}</td>' for kind in KINDS)
        rows.append(f'<tr><th scope="row">{escape(item.label)}</th>{cells}<td data-label="Conversations">{len(item.records)}</td></tr>')
    few = "" if all(len(item.records) > 1 for item in series) else '<p class="note">No intervals with fewer than two conversations: one cannot show how much they vary.</p>'
    return (
        f'<h3 style="margin-top:2rem">Change from round 1 to round {last}, within each conversation</h3>'
        '<table class="stack"><thead><tr><th scope="col">Series</th><th scope="col">Stability</th><th scope="col">Adoption</th><th scope="col">Conversations</th></tr></thead>'
        f'<tbody>{"".join(rows)}</tbody></table>{few}'
    )


def _difference(item: Estimate) -> str:
    if item.mean is None:
        return '<span class="unclear">not measured</span>'
    value, _, interval = minus(signed(item)).partition(" ")
    weight = "big" if item.excludes_zero else "unclear"
    return f'<span><span class="{weight}">{value}</span> <span class="range">{interval}</span></span>'


def _comparison_row(series: Sequence[Series], item: Series, baseline: Series, result: Comparison | None, found: Sequence[tuple[Series, Series, Comparison | None]]) -> str:
    against = f'<br><span class="meta">against {escape(baseline.label)}'
    if result is None:
        return f'<tr><th scope="row">{escape(item.label)}{against}</span></th><td class="wide" colspan="4">Not compared: the two do not hold conversations with the same agent prompts.</td></tr>'
    all_marks = [e for _, _, other in found if other for e in _estimates(other)]
    reach = round_top([abs(value) for e in all_marks for value in (e.mean, e.low, e.high) if value is not None])
    cells = "".join(
        f'<td data-label="{label}"><span>{_difference(e)}{difference_mark(e, reach)}</span></td>'
        for label, e in zip(("Stability, last round", "Stability, all rounds", "Adoption, last round", "Adoption, all rounds"), _estimates(result), strict=True)
    )
    return f'<tr class="s{colour_of(series, item)}"><th scope="row">{escape(item.label)}{against}, {result.n} pairs</span></th>{cells}</tr>'


def _estimates(result: Comparison) -> tuple[Estimate, ...]:
    return result.stability_last, result.stability_mean, result.adoption_last, result.adoption_mean


def _multiples(series: Sequence[Series], kind: str) -> str:
    found = [by_category(item, kind) for item in series]
    names = sorted({name for categories in found for name in categories})
    if not names:
        return ""
    charts = []
    for name in names:
        estimates = [categories.get(name, []) for categories in found]
        title = f"{CAPTIONS[kind][0]}: {name.replace('_', ' ')}"
        count = max(sum(category_of(record, kind) == name for record in item.records) for item in series)
        chart = line_chart(_lines(series, estimates), max(item.rounds for item in series), title, _describe(series, estimates), small=True)
        charts.append(f'<div><h3>{escape(name.replace("_", " "))} <span>{count} conversations</span></h3>{chart}</div>')
    whose = "the agent’s" if kind == "stability" else "the user’s"
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(item.label)}</td>' + "".join(f'<td class="number">{plain(point)}</td>' for point in categories[name]) + "</tr>"
        for name in names for item, categories in zip(series, found, strict=True) if name in categories
    )
    head = "".join(f'<th scope="col" class="number">{r}</th>' for r in range(1, max(item.rounds for item in series) + 1))
    table = f'<table><thead><tr><th scope="col">Category</th><th scope="col">Series</th>{head}</tr></thead><tbody>{rows}</tbody></table>'
    return (f'<p>{CAPTIONS[kind][0]}, by {whose} category and round; the band is the 95 % interval.</p><div class="multiples">{"".join(charts)}</div>'
            f'<details class="numbers"><summary>The numbers behind the figures</summary>{scroll_table("By category and round", table)}</details>')


def _measured(item: Series, kind: str) -> bool:
    return not bool(np.isnan(item.values(kind)).all())
