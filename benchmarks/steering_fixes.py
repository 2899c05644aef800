"""Steering of a model that you run: rules kept, by kind, beside the fixes that edit messages.

First, settings are explored in the families of `bots` reserved for exploration. Those that do best
are named in `NAMED`, in a commit of their own; then they are confirmed in the other families and on
other seeds, beside `repetition` and `check-and-retry`. The dialogs are those of message_edits.py.

    python benchmarks/steering_fixes.py explore --out FILE.json
    python benchmarks/steering_fixes.py confirm --out FILE.json

On qwen-1.5b, settings named for qwen-0.5b are confirmed without an exploration of their own, but
for guidance and the combination, which gained least over what they are compared with:

    python benchmarks/steering_fixes.py confirm --model qwen-1.5b --seeds 3 --batch 24 --method none
        repetition:probability=1 check-and-retry:n=2 split-softmax:exponent=0.5 boost:factor=4
        --out FILE.json

Interrupted runs are resumed.
"""

from __future__ import annotations

from commands import record_options
from commands import run as run_command
from message_edits import NONE, REPETITION, command, rows_of
from stamp import measured_in, write_record

from holdfast.records import read_run

# the 50 heads of qwen-0.5b on which `reproduce zhang2024` steers (results/zhang2024_qwen05)
PROFILED = (
    "1.9/2.4/2.5/4.7/4.11/4.13/6.3/7.1/7.2/8.0/9.8/9.12/10.6/10.8/10.10/11.1/11.6/11.9/12.1/12.4"
    "/12.7/12.9/13.0/13.2/13.5/14.5/14.11/15.8/15.9/15.11/15.12/15.13/16.2/16.5/16.10/17.3/17.11"
    "/18.1/19.9/20.2/20.5/20.6/20.7/20.11/20.12/21.3/21.6/21.11/22.6/23.0"
)
LAST_THIRD = "16-23.0-13"  # of the 24 layers of qwen-0.5b
EXPLORED = (
    NONE,
    "guidance:scale=1.5",
    "guidance:scale=2,plausibility=0.1",
    "split-softmax:exponent=0.5",
    f"split-softmax:exponent=0.5,heads={LAST_THIRD}",
    "boost:factor=4",
    f"boost:factor=8,heads={PROFILED}",
    f"pasta:alpha=0.01,heads={PROFILED}",
    "attenuate:factor=0.3",
    "attenuate:factor=0.1",
    "attenuate:factor=0.03",
)
# the two that gained most (results/steering_explored), the paper's own, and the best with a retry
NAMED = (
    "boost:factor=4",
    "guidance:scale=1.5",
    "split-softmax:exponent=0.5",
    "check-and-retry:n=2+boost:factor=4",
)
CONFIRMED = (NONE, REPETITION, "check-and-retry:n=2", *NAMED)

# the families of prompts, methods and seeds of each stage
STAGES = {"explore": (EXPLORED, (4,)), "confirm": (CONFIRMED, (2, 3))}


def main() -> None:
    parser = record_options(__doc__, "runs/steering_fixes")
    parser.add_argument("stage", choices=STAGES)
    parser.add_argument("--method", nargs="+", metavar="SPEC", help="instead of the stage's own")
    parser.add_argument("--seeds", type=int, nargs="+", help="instead of the stage's own")
    parser.add_argument("--batch", type=int, default=48)
    arguments = parser.parse_args()
    methods, seeds = STAGES[arguments.stage]
    methods = tuple(arguments.method or methods)
    seeds = tuple(arguments.seeds or seeds)
    folders = [arguments.runs / f"{arguments.model}-{arguments.stage}-{seed}" for seed in seeds]
    for seed, folder in zip(seeds, folders, strict=True):
        run_command(
            command(
                arguments.model,
                arguments.dtype,
                seed,
                methods,
                folder,
                arguments.batch,
                families=arguments.stage,
            )
        )
    runs = [read_run(folder) for folder in folders]
    record = {
        "benchmark": "steering_fixes",
        "measured_on": measured_in(runs, arguments.commit),
        "model": arguments.model,
        "families": arguments.stage,
        "seeds": list(seeds),
        "rows": rows_of(runs, methods),
    }
    write_record(record, arguments.out)


if __name__ == "__main__":
    main()
