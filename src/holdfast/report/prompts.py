"""The section of the page that goes prompt by prompt: the least and most stable, and a sortable
table of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.analysis.comparisons import PromptRow, by_prompt
from holdfast.analysis.series import Series
from holdfast.report.charts import Spark, spark_line
from holdfast.report.panels import colour_of

LEAST_DRAWN = 5  # conversations of a prompt, for a place among the least or most stable
_EXTREMES = 5


@dataclass(frozen=True)
class Entry:
    """A row of the table: the prompt in the series at this place."""

    row: PromptRow
    at: int
    colour: int
    spark: Spark


@dataclass(frozen=True)
class Prompts:
    """Every system prompt the agent had, by series.

    extremes holds titled lists of prompts of the first series that were drawn `least` times or
    more; it is empty where fewer than two, `enough`, were.
    """

    rows: tuple[Entry, ...]
    count: int
    columns: tuple[tuple[str, str], ...]
    extremes: tuple[tuple[str, list[PromptRow]], ...]
    least: int
    enough: int


def prompts_section(series: Sequence[Series]) -> Prompts:
    """Every system prompt the agent had, by series, least stable first."""
    tables = [by_prompt(item) for item in series]
    drawn = [row for row in tables[0] if row.n >= LEAST_DRAWN]
    size = min(_EXTREMES, len(drawn) // 2)
    extremes = (("Least stable", drawn[:size]), ("Most stable", drawn[::-1][:size])) if size else ()
    entries = []
    for at, table in enumerate(tables):
        colour = colour_of(series, series[at])
        entries += [Entry(row, at, colour, spark_line(row.by_round)) for row in table]
    return Prompts(
        rows=tuple(entries),
        count=len({entry.row.id for entry in entries}),
        columns=_columns(series[0].rounds),
        extremes=extremes,
        least=LEAST_DRAWN,
        enough=len(drawn),
    )


def _columns(last: int) -> tuple[tuple[str, str], ...]:
    """Each column's name and what it is sorted as; "" for what is not sorted by."""
    return (
        ("Prompt", "text"),
        ("Category", "text"),
        ("n", "number"),
        ("Round 1", "number"),
        (f"Round {last}", "number"),
        ("Change", "number"),
        ("All rounds", "number"),
        ("By round", ""),
        ("Taken on", "number"),
    )
