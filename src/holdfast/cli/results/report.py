"""`holdfast report`: makes one page of one or more runs."""

from pathlib import Path
from typing import Annotated

from holdfast import report
from holdfast.analysis.drift_results import results_of
from holdfast.analysis.summary import summary_of
from holdfast.cli.shared.command import Arg, Command, Options, file_to_write
from holdfast.cli.shared.json_output import write_document
from holdfast.cli.shared.output import print_run
from holdfast.files import short_path


class ReportArguments(Options):
    folders: Annotated[list[Path], Arg("RUN", positional=True, nargs="+", action="store")]
    """a run's folder"""
    out: Annotated[Path | None, Arg("FILE.html", type=file_to_write)] = None
    """the page (default: report.html in the run's folder; of several runs, in the current one)"""


def run(arguments: ReportArguments) -> None:
    out = arguments.out or Path("report.html")
    if arguments.out is None and len(arguments.folders) == 1:
        out = arguments.folders[0] / "report.html"
    results = report.read_results(arguments.folders, out)
    page = report.write_page(results, out)
    for number, (folder, result) in enumerate(zip(arguments.folders, results, strict=True)):
        if number:
            print()
        if len(results) > 1:
            print(f"{folder}:\n")
        # on a page of several runs, sentences name the run, which the heading above does here
        print_run(result if len(results) == 1 else results_of(result.run))
    print(f"Report: {short_path(page)}")
    summaries = [summary_of(results_of(result.run)).to_json() for result in results]
    write_document({"page": page.resolve(), "summaries": summaries})


COMMAND = Command(
    "report",
    run,
    ReportArguments,
    description=(
        "Writes one self-contained page, with its figures as SVG and PNG files beside it, and"
        " prints for each run what `holdfast drift` printed."
    ),
    examples=(
        "examples:\n  holdfast report runs/fix\n"
        "  holdfast report runs/main runs/control --out both.html"
    ),
)
