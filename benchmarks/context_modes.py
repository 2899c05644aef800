"""Measures what rules lose once older rounds leave a model's view, with the suite `bots`.

    python benchmarks/context_modes.py --model qwen-0.5b --out FILE.json

The same conversations are held in four modes of `--context`: "stop" (every round stays in view),
"slide" (only the last rounds do), "summarise" (a summary replaces older rounds) and "compact" (the
summary replaces the system prompt too). Each mode is compared with "stop".

Interrupted runs are resumed. docs/what_is_lost.md shows the records.
"""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Sequence

from commands import name_of, record_of, record_options, run_each
from loss import drift_command
from tabled.context_modes import context_table

from holdfast.analysis.context_losses import context_loss
from holdfast.drift.suites import load_suite

EVERY_ROUND = "stop"
SHORTENED = ("slide", "summarise", "compact")
ROUNDS = 8
CONVERSATIONS = (32, 16)  # of each seed


def main() -> None:
    parser = record_options(__doc__, "runs/context_modes")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1], help="(default: 0 1)")
    parser.add_argument(
        "--conversations",
        type=int,
        nargs="+",
        default=CONVERSATIONS,
        help="of each seed, in the same order (default: 32 16)",
    )
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help="the first and the last are probed (%(default)s)"
    )
    parser.add_argument("--window", type=int, default=4, help="rounds in view (%(default)s)")
    parser.add_argument(
        "--batch", type=int, default=32, help="conversations at a time (%(default)s)"
    )
    arguments = parser.parse_args()
    if len(arguments.conversations) != len(arguments.seeds):
        parser.error("--conversations needs a number for each seed")
    modes = (EVERY_ROUND, *SHORTENED)
    commands = {
        arguments.runs / f"{name_of(arguments)}-{mode}-{seed}": command(
            Namespace(**vars(arguments) | {"conversations": conversations}), mode, seed
        )
        for seed, conversations in zip(arguments.seeds, arguments.conversations, strict=True)
        for mode in modes
    }
    runs = run_each(commands)
    every_round, *shortened = (runs[number :: len(modes)] for number in range(len(modes)))
    suite = load_suite("bots")
    losses = [context_loss(runs_of_mode, every_round, suite) for runs_of_mode in shortened]
    record = record_of(
        "context_modes",
        arguments,
        runs,
        seeds=arguments.seeds,
        conversations=sum(len(run.conversations) for run in every_round),
        rounds=arguments.rounds,
        window=arguments.window,
        commands=[shlex.join(["holdfast", *words]) for words in commands.values()],
        losses=[loss.to_json() for loss in losses],
    )
    print(context_table([record]))


def command(arguments: Namespace, mode: str, seed: int) -> Sequence[str]:
    """The command of one run, without its folder."""
    window = () if mode == EVERY_ROUND else ("--window", str(arguments.window))
    return [
        *drift_command(arguments, seed, probe_every=arguments.rounds),
        "--context",
        mode,
        *window,
    ]


if __name__ == "__main__":
    main()
