"""`holdfast export`: a run as a table for other tools."""

from pathlib import Path
from typing import Annotated

from holdfast import records
from holdfast.cli.json_output import FilesDocument, write_document
from holdfast.cli.options import Arg, Command, Options


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


def run(arguments: ExportArguments) -> None:
    data = records.read_run(arguments.folder)
    if arguments.csv is not None:
        table = records.write_csv(data, arguments.csv).resolve()
    else:
        assert arguments.parquet is not None  # one of the two is given
        table = records.write_parquet(data, arguments.parquet).resolve()
    print(f"Table: {table}")
    write_document(FilesDocument(files=[table]))


COMMAND = Command(
    "export",
    "write a run for other tools",
    run,
    ExportArguments,
    "Writes a run's records as one tidy table, a row for each probe of each round of each"
    " conversation. `holdfast docs runs` lists the columns.",
    "examples:\n  holdfast export runs/fix --csv probes.csv\n"
    "  holdfast export runs/fix --parquet probes.parquet",
)
