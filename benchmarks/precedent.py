"""Prompt or precedent: how much of following a prompt is following one's own earlier replies.

    python benchmarks/precedent.py --model qwen-0.5b --out FILE.json
    python benchmarks/precedent.py --model qwen-1.5b --every 10 --out FILE.json
    python benchmarks/precedent.py --model qwen-0.5b --every 6 --out FILE.json
        --method repetition:probability=1 boost:factor=4 attenuate:factor=0.03

Interrupted runs are resumed.
"""

from __future__ import annotations

import shlex
from argparse import Namespace
from dataclasses import asdict

from commands import model_options, name_of, record_of, record_options, run_each
from tabled.precedent import precedent_fixes_table, precedent_table

from holdfast.analysis.precedent_results import precedent_of
from holdfast.drift import load_suite

SUITE, DRAWS = "everyday", 1


def main() -> None:
    parser = record_options(__doc__, "runs/precedent")
    parser.add_argument(
        "--every", type=int, default=1, metavar="N", help="take only every Nth prompt"
    )
    parser.add_argument(
        "--method",
        nargs="+",
        default=[],
        metavar="SPEC",
        help="fixes under which the last reply is drawn too",
    )
    arguments = parser.parse_args()
    folder = arguments.runs / f"{name_of(arguments)}{'-methods' if arguments.method else ''}"
    words = command(arguments)
    (run,) = run_each({folder: words})
    record = record_of(
        "precedent",
        arguments,
        [run],
        command=shlex.join(["holdfast", *words]),
        conversations=sum(chat.method == "none" for chat in run.precedents),
        results=[asdict(result) for result in precedent_of(run.precedents)],
    )
    print(precedent_fixes_table([record]) if arguments.method else precedent_table([record]))


def command(arguments: Namespace) -> list[str]:
    """The command line, but for the folder.

    It has one pair of histories for each prompt, and one for each rule that is asked separately.
    """
    suite = load_suite(SUITE)
    chosen = suite.only([case.id for case in suite.cases[:: arguments.every]])
    pairs = sum(len(case.rules_asked_together) for case in chosen.cases)
    prompts = ["--prompts", ",".join(case.id for case in chosen.cases)]
    # all methods see the histories of no method, the first
    methods = ["none", *arguments.method] if arguments.method else []
    return [
        *("precedent", *model_options(arguments), "--suite", SUITE),
        *(prompts if arguments.every > 1 else ()),
        *("--conversations", str(pairs), "--draws", str(DRAWS)),
        *(word for method in methods for word in ("--method", method)),
    ]


if __name__ == "__main__":
    main()
