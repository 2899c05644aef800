"""`holdfast report`: one page of one or more runs."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_parser(commands) -> None:
    report = commands.add_parser(
        "report",
        help="make one page of one or more runs",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description=(
            "Writes one self-contained page, with its figures as SVG and PNG files beside it."
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
    report.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    from holdfast import report

    page = report.write(arguments.folders, arguments.out, "--out")
    print(f"Report: {page.resolve()}")
