"""Prompt or precedent: measures how much of following a prompt is following one's own earlier
replies, with `holdfast precedent`.

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

from commands import method_options, model_options, name_of, record_of, record_options, run_each
from tabled.precedent import precedent_fixes_table, precedent_table

from holdfast.analysis.precedent_results import precedent_of
from holdfast.analysis.series import NO_FIX
from holdfast.drift import load_suite

SUITE = "everyday"
DRAWS = 1  # for each reply of a history


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
    suffix = "-methods" if arguments.method else ""
    folder = arguments.runs / f"{name_of(arguments)}{suffix}"
    command = precedent_command(arguments)
    (run,) = run_each({folder: command})
    record = record_of(
        "precedent",
        arguments,
        [run],
        command=shlex.join(["holdfast", *command]),
        conversations=sum(chat.method == NO_FIX for chat in run.precedents),
        results=[asdict(result) for result in precedent_of(run.precedents)],
    )
    table = precedent_fixes_table if arguments.method else precedent_table
    print(table([record]))


def precedent_command(arguments: Namespace) -> list[str]:
    """The command to run, without its folder.

    Each prompt has one conversation for each group of rules that the same questions probe.
    """
    suite = load_suite(SUITE)
    suite = suite.only([case.id for case in suite.cases[:: arguments.every]])
    command = ["precedent", *model_options(arguments), "--suite", SUITE]
    if arguments.every > 1:
        command += ["--prompts", ",".join(case.id for case in suite.cases)]
    conversations = sum(len(case.rules_asked_together) for case in suite.cases)
    command += ["--conversations", str(conversations), "--draws", str(DRAWS)]
    if arguments.method:
        # no fix comes first, because the others use its histories
        command += method_options([NO_FIX, *arguments.method])
    return command


if __name__ == "__main__":
    main()
