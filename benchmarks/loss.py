"""Which rules a model loses over rounds of work: the suite `bots`, with its rules asked for.

    python benchmarks/loss.py --model qwen-0.5b --runs runs/loss --out FILE.json
    python benchmarks/loss.py --model qwen-1.5b --dtype bfloat16 --conversations 24 --rounds 8
        --batch 8 --runs runs/loss --out FILE.json

Interrupted runs are resumed. docs/what_is_lost.md shows the records.
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from commands import record_options
from commands import run as run_command
from stamp import measured_in, write_record

from holdfast.analysis.loss_map_file import model_loss
from holdfast.records import read_run

ROUNDS = 16
PROBE_EVERY = 3
CONVERSATIONS = 96
TOKENS = 160


def command(arguments: Namespace, seed: int, folder: Path) -> list[str]:
    """The command line of one run."""
    return [
        *("drift", "--model", arguments.model, "--dtype", arguments.dtype),
        *("--suite", "bots", "--pairs", "balanced", "--user-turns", "work"),
        *("--rounds", str(arguments.rounds), "--probe-every", str(PROBE_EVERY)),
        *("--conversations", str(arguments.conversations), "--seed", str(seed)),
        *("--batch", str(arguments.batch)),
        *("--temperature", "0.7", "--max-new-tokens", str(TOKENS)),
        *("--recall", "--method", "none", "--out", str(folder)),
    ]


def main() -> None:
    parser = record_options(__doc__, "runs/loss")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--conversations", type=int, default=CONVERSATIONS, help="of each seed")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--batch", type=int, default=24, help="conversations at a time")
    arguments = parser.parse_args()
    folders = [arguments.runs / f"{arguments.model}-{seed}" for seed in arguments.seeds]
    for seed, folder in zip(arguments.seeds, folders, strict=True):
        run_command(command(arguments, seed, folder))
    runs = [read_run(folder) for folder in folders]
    record = {
        "benchmark": "loss",
        "measured_on": measured_in(runs, arguments.commit),
        "seeds": arguments.seeds,
        "loss": model_loss(arguments.model, *runs).to_json(),
    }
    write_record(record, arguments.out)


if __name__ == "__main__":
    main()
