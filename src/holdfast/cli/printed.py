"""The results that `holdfast drift` and `holdfast report` print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.report.wording import count_of

if TYPE_CHECKING:
    from holdfast.records import RunData


_UNITS = (("hour", 3600), ("minute", 60), ("second", 1))


def add_details(add) -> None:
    """Adds how much is printed."""
    add(
        "--details",
        bool,
        "print every table that the page has of methods and rules, and the tokens that the"
        " run took",
    )


def print_run(run: RunData, details: bool) -> None:
    """Prints a run's results, how its dialogs ended, how long it took, and what to do next."""
    from holdfast.analysis.endings import count_endings
    from holdfast.report.endings import ending_lines
    from holdfast.report.terminal import left_out, next_line, table

    print(table(run, details))
    if not details and (more := left_out(run)):
        print(more)
    for what, line in ending_lines(count_endings(run.records)):
        print(f"{what[0].upper()}{what[1:]}: {line}.")
    print(_tokens_line(run.records) if details else _time_line(run.records))
    print(f"\n{next_line(run)}")


def _time_line(records: list[dict]) -> str:
    """'Took 11 minutes.'"""
    seconds = round(sum(record["seconds"] for record in records))
    unit, size = next((u, s) for u, s in _UNITS if seconds >= 2 * s or s == 1)
    return f"Took {count_of(round(seconds / size), unit)}."


def _tokens_line(records: list[dict]) -> str:
    forwarded, least, seconds = (
        sum(values)
        for values in zip(
            *((r["tokens"]["forwarded"], r["tokens"]["least"], r["seconds"]) for r in records),
            strict=True,
        )
    )
    ratio = f", {forwarded / least:.3f} times the least possible" if least else ""
    compared = sum(record["tokens"].get("divergence", 0) for record in records)
    more = f" and {compared:,} more for divergences" if compared else ""
    return f"{forwarded:,} tokens forwarded{ratio}{more}, in {seconds:,.0f} s."
