"""What `holdfast drift` and `holdfast report` print of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.records import RunData


def add_details(add) -> None:
    """Adds how much is printed."""
    add(
        "--details",
        action="store_true",
        help=(
            "print every table that the page has of methods and rules, not only the few lines that"
            " matter most"
        ),
    )


def print_run(run: RunData, details: bool) -> None:
    """Prints what a run found, how its dialogs ended, and what it took."""
    from holdfast.analysis.endings import count_endings
    from holdfast.report.endings import ending_lines
    from holdfast.report.terminal import left_out, table

    print(table(run, details))
    if not details and (more := left_out(run)):
        print(more)
    for what, line in ending_lines(count_endings(run.records)):
        print(f"{what[0].upper()}{what[1:]}: {line}.")
    print(_tokens_line(run.records))


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
