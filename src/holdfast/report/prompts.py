"""The section of the page that goes prompt by prompt: the least and most stable, and a sortable table of all."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from holdfast.report.charts import spark_line
from holdfast.report.findings import PromptRow, by_prompt, signed_number
from holdfast.report.scores import Series
from holdfast.report.sections import colour_of, minus, scroll_table, section

_EXTREMES = 5


def prompts_section(series: Sequence[Series]) -> str:
    """Every system prompt the agent had, by series."""
    tables = {item: by_prompt(item) for item in series}
    first = tables[series[0]]
    last = series[0].rounds
    few = min((row.n for row in first), default=0)
    lede = (
        f"<p>Stability of each system prompt, averaged over all rounds of the conversations in which the agent had it. "
        f"A prompt was drawn {few} times at least in {escape(series[0].label)}, so read the ends of this list as places to look, not as rankings. "
        "<em>Taken on</em> is the adoption at the last round where the prompt was the user’s.</p>"
    )
    extremes = ""
    if len(first) >= 2:
        size = min(_EXTREMES, len(first) // 2)
        extremes = (
            f'<div class="extremes">{_extreme("Least stable", first[:size])}{_extreme("Most stable", list(reversed(first[-size:])))}</div>'
        )
    body = "".join(_row(row, at, colour_of(series, item)) for at, item in enumerate(series) for row in tables[item])
    columns = (("Prompt", "text"), ("Category", "text"), ("n", "number"), ("Round 1", "number"), (f"Round {last}", "number"), ("Change", "number"),
               ("All rounds", "number"), ("By round", ""), ("Taken on", "number"))
    head = "".join(_head(name, kind, name == "All rounds") for name, kind in columns)
    table = f'<table class="prompts" id="prompt-table"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return section("prompts", "By prompt", f"{lede}{extremes}{_controls(series)}{scroll_table('Stability by prompt', table)}")


def _controls(series: Sequence[Series]) -> str:
    options = "".join(f'<option value="{at}">{escape(item.label)}</option>' for at, item in enumerate(series))
    return (
        '<div class="controls needs-script">'
        f'<label>Series<select id="prompt-series">{options}</select></label>'
        '<label class="grow">Find in prompts<input type="search" id="prompt-find" autocomplete="off"></label></div>'
        '<p class="count" id="prompt-count" role="status"></p>'
    )


def _extreme(title: str, rows: Sequence[PromptRow]) -> str:
    items = "".join(
        f'<li><span class="score">{row.mean:.2f}</span><div><span class="clamp">{escape(row.text) or "(empty)"}</span>'
        f'<span class="meta">{escape(row.category.replace("_", " "))} · {row.first:.2f} → {row.last:.2f} · n = {row.n}</span></div></li>'
        for row in rows
    )
    return f"<div><h3>{title}</h3><ol>{items}</ol></div>"


def _head(name: str, kind: str, sorted_by: bool) -> str:
    number = ' class="number"' if kind == "number" else ""
    if not kind:
        return f'<th scope="col">{name}</th>'
    return f'<th scope="col"{number} data-sort="{kind}"{" aria-sort=ascending" if sorted_by else ""}><button type="button">{escape(name)}</button></th>'


def _row(row: PromptRow, at: int, colour: int) -> str:
    adopted = "–" if row.adopted is None else f"{row.adopted:.2f}"
    numbers = "".join(
        f'<td class="number" data-value="{value:.6f}">{text}</td>'
        for value, text in ((row.n, str(row.n)), (row.first, f"{row.first:.2f}"), (row.last, f"{row.last:.2f}"),
                            (row.last - row.first, minus(signed_number(row.last - row.first))), (row.mean, f"{row.mean:.2f}"))
    )
    return (
        f'<tr data-series="{at}" class="s{colour}"><td data-value="{escape(row.text)}"><span class="clamp">{escape(row.text) or "(empty)"}</span>'
        f'<span class="meta">{escape(str(row.id))}</span> <button type="button" class="link needs-script" data-prompt="{escape(str(row.id))}" data-of="{at}">read</button></td>'
        f'<td data-value="{escape(row.category)}">{escape(row.category.replace("_", " "))}</td>{numbers}<td>{spark_line(row.by_round)}</td>'
        f'<td class="number" data-value="{-1.0 if row.adopted is None else row.adopted:.6f}">{adopted}</td></tr>'
    )
