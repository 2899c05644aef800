"""The results of a command: its page, its tables, and the command that was typed."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.files import write_whole
from holdfast.report.wording import count_of

if TYPE_CHECKING:
    from holdfast.records import RunData

_UNITS = (("hour", 3600), ("minute", 60), ("second", 1))


def command_line() -> str:
    """The command as it was typed, for the manifest of its run."""
    return shlex.join(["holdfast", *sys.argv[1:]])


def command_with(**options: object) -> str:
    """The command as it was typed, with some options set to other values."""
    given = {f"--{name.replace('_', '-')}": str(value) for name, value in options.items()}
    words = sys.argv[1:]
    kept = [
        word
        for before, word in zip(["", *words], words, strict=False)
        if before not in given and word not in given and word.split("=")[0] not in given
    ]
    return shlex.join(["holdfast", *kept, *(word for pair in given.items() for word in pair)])


def page_path(arguments: argparse.Namespace, folder: Path) -> Path:
    """Where the page goes; a place where none can be written is refused, before the command
    runs.
    """
    from holdfast.report import check_page

    return check_page(arguments.report or folder / "report.html", page_option(arguments))


def write_page(arguments: argparse.Namespace, html: str, page: Path) -> None:
    """Writes a page and prints where it is."""
    write_whole(page, html, f"another place with {page_option(arguments)}")
    print(f"Report: {page.resolve()}")


def page_option(arguments: argparse.Namespace) -> str:
    """The option that says where the page goes."""
    return "--report" if arguments.report else "--out"


def print_figures(paths: Iterable[Path]) -> None:
    """Prints where the PNG files among these are."""
    for path in paths:
        if path.suffix == ".png":
            print(f"Figure: {path.resolve()}")


def print_run(run: RunData, details: bool) -> None:
    """Prints a run's results, how its dialogs ended, how long it took, and what to do next."""
    from holdfast.analysis.collapse import count_endings
    from holdfast.report.about import ending_lines
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
