"""`holdfast report`: one page of one or more runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from holdfast.cli.printed import add_details, print_run


def add_parser(commands) -> None:
    report = commands.add_parser(
        "report",
        help="make one page of one or more runs",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=(
            "Writes one self-contained page, with its figures as SVG and PNG files beside it, and"
            " prints what\n`holdfast drift` printed of each run."
        ),
        epilog=(
            "examples:\n  holdfast report runs/fix --out report.html\n  holdfast report runs/main"
            " runs/control --out both.html"
        ),
    )
    report.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="run folders")
    report.add_argument(
        "--out", type=Path, default=Path("report.html"), help="default: %(default)s"
    )
    add_details(report.option)
    report.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    from holdfast import report
    from holdfast.records import read_run

    page = report.write(arguments.folders, arguments.out, "--out")
    for number, folder in enumerate(arguments.folders):
        if number:
            print()
        if len(arguments.folders) > 1:
            print(f"{folder}:\n")
        print_run(read_run(folder), arguments.details)
    print(f"Report: {page.resolve()}")
