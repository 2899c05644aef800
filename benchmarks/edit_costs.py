"""How much other abilities suffer from fixes; by default, from those that edit messages.

The dialogs have scripted messages under those prompts of `bots` that are reserved for confirmation;
the fourth message is a question about a fact that small models know. The leading fixes of
message_edits.py are compared on the same questions in the same dialogs, by the points that each
loses.

    python benchmarks/edit_costs.py --model qwen-0.5b --runs runs/edit_costs --out FILE.json
    python benchmarks/edit_costs.py --method boost:factor=4 --runs runs/steering --out FILE.json

Interrupted runs are resumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from commands import record_options
from commands import run as run_command
from message_edits import as_json
from stamp import measured_in, write_record

from holdfast.analysis.calibration_results import read_calibration
from holdfast.analysis.statistics import estimate
from holdfast.drift import load_suite
from holdfast.drift.families import half_of
from holdfast.records import read_run

MESSAGE_EDITS = (
    "repetition:probability=1",
    "reminder:every=1,text=rules,when=broken",
    "check-and-retry:n=2",
)
ROUNDS = 3
CONVERSATIONS = 24
QUESTIONS = 672
TOKENS = 120


def command(model: str, dtype: str, methods: Sequence[str], folder: Path) -> list[str]:
    """The command line of a run."""
    prompts = ",".join(case.id for case in half_of(load_suite("bots"), "confirm").cases)
    return [
        *("calibrate", "--model", model, "--dtype", dtype, "--suite", "bots"),
        *("--prompts", prompts, "--user-turns", "everyday", "--rounds", str(ROUNDS)),
        *("--ask-at", str(ROUNDS + 1), "--conversations", str(CONVERSATIONS)),
        *("--questions", str(QUESTIONS), "--max-new-tokens", str(TOKENS)),
        *(word for method in methods for word in ("--sweep", method)),
        *("--out", str(folder)),
    ]


def main() -> None:
    parser = record_options(__doc__, "runs/edit_costs")
    parser.add_argument("--method", nargs="+", default=MESSAGE_EDITS, metavar="SPEC")
    arguments = parser.parse_args()
    folder = arguments.runs / arguments.model
    run_command(command(arguments.model, arguments.dtype, arguments.method, folder))
    calibration = read_calibration(folder)
    record = {
        "benchmark": "edit_costs",
        "measured_on": measured_in([read_run(folder / "capability")], arguments.commit),
        "model": arguments.model,
        "conversations": CONVERSATIONS,
        "questions": calibration.questions,
        "right_without_a_fix": as_json(estimate(calibration.none.capability, (0.0, 100.0))),
        "rows": [
            {
                "method": candidate.method,
                "points_lost": as_json(calibration.drop(candidate)),
            }
            for candidate in calibration.candidates[1:]
        ],
    }
    write_record(record, arguments.out)


if __name__ == "__main__":
    main()
