"""The options of benchmarks that run commands of `holdfast`, and those commands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from holdfast.cli import main


def record_options(about: str, runs: str) -> argparse.ArgumentParser:
    """The parser of a benchmark that makes a record of one model.

    Args:
        about: its docstring, whose first line is shown.
        runs: the folder of its runs, if none is given.
    """
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--model", default="qwen-0.5b")
    parser.add_argument("--dtype", default="bfloat16", help="in which the model runs")
    parser.add_argument("--runs", type=Path, default=Path(runs))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--commit", help="at which the runs were made, if it is another")
    return parser


def run(command: Sequence[str]) -> None:
    """Runs a command; if it fails or is stopped, so does the benchmark, with its exit code."""
    own_words, sys.argv = sys.argv, ["holdfast", *command]  # which manifests record
    try:
        code = main(list(command))
    finally:
        sys.argv = own_words
    if code:
        sys.exit(code)
