"""How many points other abilities lose under fixes; by default, under those that edit messages.

    python benchmarks/edit_costs.py --model qwen-0.5b --out FILE.json
    python benchmarks/edit_costs.py --model qwen-0.5b --out FILE.json --runs runs/steering_costs
        --method split-softmax:exponent=0.5 boost:factor=4

The dialogs have scripted messages under those prompts of `bots` that are reserved for confirmation;
the fourth message is a question about a fact that small models know. All fixes get the same
questions in the same dialogs.

Interrupted runs are resumed.
"""

from __future__ import annotations

from argparse import Namespace

from commands import model_options, name_of, record_of, record_options, run
from stamp import estimate_json
from tabled.edits import edit_costs_table

from holdfast.analysis.calibration_reading import read_calibration
from holdfast.analysis.statistics import estimate
from holdfast.drift import load_suite
from holdfast.drift.families import half_of
from holdfast.records import read_run

# the leading fixes of fixes.py
MESSAGE_EDITS = (
    "repetition:probability=1",
    "reminder:every=1,text=rules,when=broken",
    "check-and-retry:n=2",
)
ROUNDS = 3
CONVERSATIONS = 24
QUESTIONS = 672
TOKENS = 120


def main() -> None:
    parser = record_options(__doc__, "runs/edit_costs")
    parser.add_argument(
        "--method", nargs="+", default=MESSAGE_EDITS, metavar="SPEC", help="the fixes"
    )
    arguments = parser.parse_args()
    folder = arguments.runs / name_of(arguments)
    run([*command(arguments), "--out", str(folder)])
    calibration = read_calibration(folder)
    record = record_of(
        "edit_costs",
        arguments,
        [read_run(folder / "capability")],
        conversations=CONVERSATIONS,
        questions=calibration.questions,
        right_without_a_fix=estimate_json(estimate(calibration.none.capability, (0.0, 100.0))),
        rows=[
            {
                "method": candidate.method,
                "points_lost": estimate_json(calibration.drop(candidate)),
            }
            for candidate in calibration.candidates[1:]
        ],
    )
    print(edit_costs_table([record]))


def command(arguments: Namespace) -> list[str]:
    """The command line, but for the folder."""
    prompts = ",".join(case.id for case in half_of(load_suite("bots"), "confirm").cases)
    return [
        *("calibrate", *model_options(arguments), "--suite", "bots"),
        *("--prompts", prompts, "--user-turns", "everyday", "--rounds", str(ROUNDS)),
        *("--ask-at", str(ROUNDS + 1), "--conversations", str(CONVERSATIONS)),
        *("--questions", str(QUESTIONS), "--max-new-tokens", str(TOKENS)),
        *(word for method in arguments.method for word in ("--sweep", method)),
    ]


if __name__ == "__main__":
    main()
