"""Measures which rules a model loses over rounds of work, with the suite `bots`, and whether it can
still state them.

    python benchmarks/loss.py --model qwen-0.5b --out FILE.json
    python benchmarks/loss.py --model qwen-1.5b --seeds 0 1 2 --conversations 24 --rounds 8
        --batch 8 --out FILE.json

Interrupted runs are resumed. docs/what_is_lost.md shows the records.
"""

from __future__ import annotations

from argparse import Namespace

from commands import model_options, name_of, record_of, record_options, run_each

from holdfast.analysis.collapse import count_turns
from holdfast.analysis.loss_map_file import model_loss
from holdfast.report.loss_map_tables import loss_lines

ROUNDS = 16
PROBE_EVERY = 3  # rounds
CONVERSATIONS = 96
MAX_NEW_TOKENS = 160


def main() -> None:
    parser = record_options(__doc__, "runs/loss")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1], help="(default: 0 1)")
    parser.add_argument(
        "--conversations", type=int, default=CONVERSATIONS, help="of each seed (%(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="(default: %(default)s)")
    parser.add_argument(
        "--batch", type=int, default=24, help="conversations at a time (%(default)s)"
    )
    arguments = parser.parse_args()
    model = name_of(arguments)
    commands = {
        arguments.runs / f"{model}-{seed}": drift_command(arguments, seed)
        for seed in arguments.seeds
    }
    runs = run_each(commands)
    loss = model_loss(model, *runs)
    record_of(
        "loss",
        arguments,
        runs,
        seeds=arguments.seeds,
        loss=loss.to_json(),
        collapse=[count_turns(run.conversations).to_json() for run in runs],
    )
    print(*loss_lines(loss.rows), sep="\n")


def drift_command(arguments: Namespace, seed: int, probe_every: int = PROBE_EVERY) -> list[str]:
    """The command of one run, without its folder."""
    return [
        *("drift", *model_options(arguments)),
        *("--suite", "bots", "--pairs", "balanced", "--user-turns", "work"),
        *("--rounds", str(arguments.rounds), "--probe-every", str(probe_every)),
        *("--conversations", str(arguments.conversations), "--seed", str(seed)),
        *("--batch", str(arguments.batch)),
        *("--temperature", "0.7", "--max-new-tokens", str(MAX_NEW_TOKENS)),
        *("--recall", "--method", "none"),
    ]


if __name__ == "__main__":
    main()
