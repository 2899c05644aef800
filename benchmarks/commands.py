"""Benchmarks that run commands of `holdfast` with one model, and make a record of their runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from stamp import measured_in, write_json

from holdfast.cli import main
from holdfast.models.model_names import is_url
from holdfast.records import Run, read_run


def record_options(description: str, runs: str) -> argparse.ArgumentParser:
    """The parser of a benchmark that makes a record of one model.

    Args:
        description: the benchmark's docstring, which `--help` shows.
        runs: the folder of its runs, if none is given.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--model", default="qwen-0.5b", help="as `holdfast drift` takes it (%(default)s)"
    )
    parser.add_argument("--endpoint-model", metavar="NAME", help="its name, if --model is a URL")
    parser.add_argument(
        "--dtype", default="bfloat16", help="in which it runs, if it runs here (%(default)s)"
    )
    parser.add_argument(
        "--runs", type=Path, default=Path(runs), help="the folder of the runs (%(default)s)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="the record as JSON, beside the printed table"
    )
    parser.add_argument(
        "--commit", help="at which the runs were made, if it is not the one that is checked out"
    )
    return parser


def model_options(arguments: argparse.Namespace) -> list[str]:
    """The options of `holdfast` that name the model."""
    options = ["--model", arguments.model]
    if not is_url(arguments.model):
        return [*options, "--dtype", arguments.dtype]
    name = arguments.endpoint_model
    return [*options, "--endpoint-model", name] if name else options


def method_options(methods: Iterable[str]) -> list[str]:
    """The options of `holdfast` that name methods, each by its spec string."""
    return [word for method in methods for word in ("--method", method)]


def name_of(arguments: argparse.Namespace) -> str:
    """The name of the model in tables and folders: without the path to it."""
    model = arguments.model
    if is_url(model):
        model = arguments.endpoint_model or urlsplit(model).netloc
    return Path(model).name


def run_each(commands: Mapping[Path, Sequence[str]]) -> list[Run]:
    """Runs a command for each folder, continuing what an earlier call began; returns the runs."""
    for folder, command in commands.items():
        run([*command, "--out", str(folder)])
    return [read_run(folder) for folder in commands]


def run(command: Sequence[str]) -> None:
    """Runs a command; if it fails or is stopped, so does the benchmark, with its exit code."""
    own_argv = sys.argv
    sys.argv = ["holdfast", *command]  # manifests record it
    try:
        code = main(list(command))
    finally:
        sys.argv = own_argv
    if code:
        sys.exit(code)


def record_of(
    benchmark: str, arguments: argparse.Namespace, runs: Sequence[Run], **results: object
) -> dict:
    """The record of runs of the model of `--model`, which is written to the file of `--out`."""
    record = {
        "benchmark": benchmark,
        "measured_on": measured_in(runs, arguments.commit),
        "model": name_of(arguments),
        **results,
    }
    if arguments.out is not None:
        write_json(record, arguments.out)
    return record
