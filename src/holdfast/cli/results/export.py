"""`holdfast export`: a run as a table for other tools."""

from pathlib import Path
from typing import Annotated

from holdfast import records
from holdfast.cli.shared.command import Arg, Command, Options, file_to_write
from holdfast.cli.shared.json_output import FilesDocument, write_document
from holdfast.files import short_path


class _ExportRun(Options):
    folder: Annotated[Path, Arg("RUN", positional=True)]
    """a run's folder"""


class _ExportFormat(Options):
    exclusive = True
    csv: Annotated[Path | None, Arg("FILE", type=file_to_write)] = None
    """a table as CSV"""
    parquet: Annotated[Path | None, Arg("FILE", type=file_to_write)] = None
    """a table as Parquet (holdfast-llm[parquet])"""


class ExportArguments(_ExportRun, _ExportFormat):
    """A run, and the one table to write."""


def run(arguments: ExportArguments) -> None:
    table = _write_table(arguments).resolve()
    print(f"Table: {short_path(table)}")
    write_document(FilesDocument(files=[table]))


def _write_table(arguments: ExportArguments) -> Path:
    data = records.read_run(arguments.folder)
    if arguments.csv is not None:
        return records.write_csv(data, arguments.csv)
    if arguments.parquet is not None:
        return records.write_parquet(data, arguments.parquet)
    raise AssertionError("the parser requires --csv or --parquet")


COMMAND = Command(
    "export",
    run,
    ExportArguments,
    description=(
        "Writes a run's records as one tidy table, with a row for each probe of each round of each"
        " conversation. `holdfast docs runs` lists the columns."
    ),
    examples=(
        "examples:\n  holdfast export runs/fix --csv probes.csv\n"
        "  holdfast export runs/fix --parquet probes.parquet"
    ),
)
