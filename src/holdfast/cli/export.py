"""`holdfast export`: a run as a file or an entry of other tools."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path


def add_parser(commands) -> None:
    export = commands.add_parser(
        "export",
        help="write a run for other tools",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=(
            "Writes a run's records as one tidy table, a row for each probe of each round of each"
            " conversation (docs/runs.md has the columns), or logs them elsewhere."
        ),
        epilog=(
            "examples:\n  holdfast export runs/fix --csv probes.csv\n"
            "  holdfast export runs/fix --parquet probes.parquet\n"
            "  holdfast export runs/fix --inspect logs/\n"
            "  WANDB_MODE=offline holdfast export runs/fix --wandb my-project\n"
            "  holdfast export runs/fix --mlflow http://localhost:5000"
        ),
    )
    export.add_argument("folder", type=Path, metavar="RUN", help="a run's folder")
    to = export.add_mutually_exclusive_group(required=True)
    to.add_argument("--csv", type=Path, metavar="FILE", help="a table as CSV")
    to.add_argument(
        "--parquet", type=Path, metavar="FILE", help="a table as Parquet (holdfast[parquet])"
    )
    to.add_argument(
        "--inspect",
        type=Path,
        metavar="FILE.eval|DIR",
        help="a log of each method for `inspect view` (holdfast[inspect])",
    )
    to.add_argument("--wandb", metavar="PROJECT", help="log to Weights & Biases (holdfast[wandb])")
    to.add_argument(
        "--mlflow",
        metavar="URI|DIR",
        help="log to an MLflow server, or into a folder (holdfast[mlflow])",
    )
    export.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    from holdfast import records

    data = records.read_run(arguments.folder)
    if arguments.csv is not None:
        print(f"Table: {records.write_csv(data, arguments.csv).resolve()}")
    elif arguments.parquet is not None:
        print(f"Table: {records.write_parquet(data, arguments.parquet).resolve()}")
    elif arguments.inspect is not None:
        records.tables.package("inspect_ai", "inspect", "--inspect")
        from holdfast.integrations.inspect.log import write_logs

        for path in write_logs(data, arguments.inspect):
            print(f"Log: {path.resolve()}")
    elif arguments.wandb is not None:
        from holdfast.integrations.trackers import log_to_wandb

        _tell(log_to_wandb(data, arguments.wandb), f"the project {arguments.wandb}")
    elif arguments.mlflow is not None:
        from holdfast.integrations.trackers import log_to_mlflow

        _tell(log_to_mlflow(data, arguments.mlflow), arguments.mlflow)


def _tell(names: Sequence[str], where: str) -> None:
    for name in names:
        print(f"Logged to {where}: {name}")
