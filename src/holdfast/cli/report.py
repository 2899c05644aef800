"""`holdfast report`: one page for one or more runs; `holdfast export`: a run for other tools."""

from pathlib import Path
from typing import Annotated

from holdfast import records, report
from holdfast.analysis.summary import results_of, summary_of
from holdfast.cli.json_output import FilesDocument, write_document
from holdfast.cli.options import Arg, Command, Options
from holdfast.cli.output import print_run


class ReportArguments(Options):
    folders: Annotated[list[Path], Arg("RUN", positional=True, nargs="+", action="store")]
    """a run's folder"""
    out: Annotated[Path, Arg("FILE.html")] = Path("report.html")
    """the page"""


def run(arguments: ReportArguments) -> None:
    results = report.read_results(arguments.folders, arguments.out)
    page = report.write_page(results, arguments.out)
    for number, (folder, result) in enumerate(zip(arguments.folders, results, strict=True)):
        if number:
            print()
        if len(results) > 1:
            print(f"{folder}:\n")
        # its sentences have no label, which tells runs on the same page apart
        print_run(result if len(results) == 1 else results_of(result.run))
    print(f"Report: {page.resolve()}")
    summaries = [summary_of(results_of(result.run)).to_json() for result in results]
    write_document({"page": page.resolve(), "summaries": summaries})


class _ExportRun(Options):
    folder: Annotated[Path, Arg("RUN", positional=True)]
    """a run's folder"""


class _ExportFormat(Options):
    exclusive = True
    csv: Annotated[Path | None, Arg("FILE")] = None
    """a table as CSV"""
    parquet: Annotated[Path | None, Arg("FILE")] = None
    """a table as Parquet (holdfast-llm[parquet])"""


class ExportArguments(_ExportRun, _ExportFormat):
    pass


def run_export(arguments: ExportArguments) -> None:
    data = records.read_run(arguments.folder)
    if arguments.csv is not None:
        table = records.write_csv(data, arguments.csv).resolve()
    else:
        assert arguments.parquet is not None  # one of the two is given
        table = records.write_parquet(data, arguments.parquet).resolve()
    print(f"Table: {table}")
    write_document(FilesDocument(files=[table]))


COMMAND = Command(
    "report",
    "make one page of one or more runs",
    run,
    ReportArguments,
    "Writes one self-contained page, with its figures as SVG and PNG files beside it, and prints"
    " what `holdfast drift` printed of each run.",
    "examples:\n  holdfast report runs/fix --out report.html\n  holdfast report runs/main"
    " runs/control --out both.html",
)
EXPORT = Command(
    "export",
    "write a run for other tools",
    run_export,
    ExportArguments,
    "Writes a run's records as one tidy table, a row for each probe of each round of each"
    " conversation. `holdfast docs runs` lists the columns.",
    "examples:\n  holdfast export runs/fix --csv probes.csv\n"
    "  holdfast export runs/fix --parquet probes.parquet",
)
