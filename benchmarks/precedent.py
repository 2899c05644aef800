"""Prompt or precedent: how much of following a prompt is following one's own earlier replies.

    python benchmarks/precedent.py --model qwen-0.5b --runs runs/precedent --out FILE.json
    python benchmarks/precedent.py --model qwen-1.5b --every 10 --out FILE.json
    python benchmarks/precedent.py --model qwen-0.5b --every 6 --out FILE.json
        --method repetition:probability=1 boost:factor=4 attenuate:factor=0.03

The runs resume.
"""

from __future__ import annotations

import shlex
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

from commands import record_options
from commands import run as run_command
from stamp import measured_in, write_record

from holdfast.analysis.precedent_results import precedent_of
from holdfast.drift import load_suite
from holdfast.records import read_run

SUITE, DRAWS = "everyday", 1


def command(arguments: Namespace, folder: Path) -> list[str]:
    """Builds the command line of a run.

    It has one pair of histories for each prompt, and one for each rule that is asked separately.
    """
    suite = load_suite(SUITE)
    chosen = suite.only([case.id for case in suite.cases[:: arguments.every]])
    pairs = sum(len(case.rules_asked_together) for case in chosen.cases)
    prompts = ["--prompts", ",".join(case.id for case in chosen.cases)]
    return [
        *("precedent", "--model", arguments.model, "--dtype", arguments.dtype, "--suite", SUITE),
        *(prompts if arguments.every > 1 else ()),
        *("--conversations", str(pairs), "--draws", str(DRAWS)),
        *(word for method in methods_of(arguments) for word in ("--method", method)),
        *("--out", str(folder)),
    ]


def methods_of(arguments: Namespace) -> list[str]:
    """Returns the requested methods after "none", whose histories they all see; [] without any."""
    return ["none", *arguments.method] if arguments.method else []


def main() -> None:
    parser = record_options(__doc__, "runs/precedent")
    parser.add_argument(
        "--every", type=int, default=1, metavar="N", help="take only every Nth prompt"
    )
    parser.add_argument(
        "--method", nargs="+", default=[], metavar="SPEC", help="fixes against what is in view"
    )
    arguments = parser.parse_args()
    folder = arguments.runs / f"{arguments.model}{'-methods' if arguments.method else ''}"
    words = command(arguments, folder)
    run_command(words)
    run = read_run(folder)
    record = {
        "benchmark": "precedent",
        "measured_on": measured_in([run], arguments.commit),
        "model": arguments.model,
        "command": shlex.join(["holdfast", *words[:-2]]),
        "conversations": sum(chat.method == "none" for chat in run.precedents),
        "results": [asdict(result) for result in precedent_of(run.precedents)],
    }
    write_record(record, arguments.out)


if __name__ == "__main__":
    main()
