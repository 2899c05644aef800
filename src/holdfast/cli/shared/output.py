"""Prints and writes the results of a command, and repeats the command as it was typed."""

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

from holdfast import report
from holdfast.analysis.drift_results import DriftResults
from holdfast.analysis.summary import summary_of, write
from holdfast.cli.shared.command import Options, option_of
from holdfast.cli.shared.options import ReportOptions
from holdfast.files import short_path, write_whole
from holdfast.plurals import duration
from holdfast.records import Run
from holdfast.records.typed_options import change_options
from holdfast.report import check_page
from holdfast.report.next_step import next_step
from holdfast.report.shortfalls import ending_shortfalls, reply_shortfalls
from holdfast.report.terminal import results_text


def command_line() -> str:
    """The command as it was typed, to be recorded in the manifest of its run."""
    return shlex.join(["holdfast", *sys.argv[1:]])


def command_with(**options: object) -> str:
    """The command as it was typed, with some options set to other values."""
    changed = {option_of(name): str(value) for name, value in options.items()}
    return change_options(["holdfast", *sys.argv[1:]], changed)


def command_of(name: str, arguments: Options) -> str:
    """The command line of the command `name` with these options, the model and suite first."""
    options = type(arguments).model_fields
    first = [option for option in ("model", "endpoint_model", "suite") if option in options]
    return shlex.join(["holdfast", name, *arguments.as_words(dict.fromkeys([*first, *options]))])


def page_path(arguments: ReportOptions, folder: Path) -> Path:
    """The path of the page; refuses one that cannot be written, before the command runs."""
    return check_page(arguments.report or folder / "report.html", page_option(arguments))


def page_option(arguments: ReportOptions) -> str:
    """The option that determines where the page is written."""
    return "--report" if arguments.report else "--out"


def write_page(arguments: ReportOptions, html: str, page: Path) -> None:
    """Writes the page of a study and prints where it is."""
    write_whole(page, html, f"another place with {page_option(arguments)}")
    print(f"Report: {short_path(page)}")


def write_run_page(arguments: ReportOptions, results: DriftResults, page: Path) -> None:
    """Writes the summary and the page of a run, and prints where the page is."""
    write(results.run.folder, summary_of(results))
    written = report.write_page([results], page, page_option(arguments))
    print(f"Report: {short_path(written)}")


def print_reply_shortfalls(run: Run) -> None:
    """Prints how many replies of a run are not scored, and why."""
    for shortfall in reply_shortfalls([*run.conversations, *run.dialogs]):
        print(shortfall.sentence)


def print_shortfalls(run: Run) -> None:
    """Prints how many conversations of a run ended early, and how many replies are missing."""
    for shortfall in ending_shortfalls(run.conversations):
        print(shortfall.sentence)


def print_figures(paths: Iterable[Path]) -> None:
    """Prints the paths of the figures that are PNG files; SVG files are beside them."""
    for path in paths:
        if path.suffix == ".png":
            print(f"Figure: {short_path(path)}")


def print_run(results: DriftResults) -> None:
    """Prints a run's results, how its dialogs ended, how long they took, and the next step."""
    run = results.run
    print(results_text(results))
    print("The page has more tables.")
    print_shortfalls(run)
    seconds = sum(record.seconds for record in run.conversations)
    print(f"The conversations took {duration(seconds)} in all.")
    print(f"\n{next_step(results)}")
