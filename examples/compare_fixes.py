"""Compares fixes on the same conversations: the same prompts, the same random draws.

python examples/compare_fixes.py
python examples/compare_fixes.py --method boost:factor=2 --method spotlight:target=0.2
"""

import argparse
import json

import holdfast
from holdfast import drift, report

FIXES = ["split-softmax:exponent=0.5", "boost:factor=4", "repetition:probability=0.5"]


def main() -> None:
    arguments = read_arguments()
    settings = drift.Settings(rounds=8, conversations=arguments.conversations)
    methods = ["none", *(arguments.method or FIXES)]
    model = holdfast.load(arguments.model)
    run = drift.run(model, arguments.suite, arguments.out, settings, methods)
    print(report.table(run))

    summary = json.loads(report.write_summary(run.folder).read_text())
    for row in summary["results"][1:]:  # the first is the unmodified model
        gain = row["against"]["stability"]["over_all_rounds"]
        print(
            f"{row['method']}: stability {gain['mean']:+.3f} [{gain['low']:+.3f},"
            f" {gain['high']:+.3f}], {gain['verdict']}"
        )


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default", help="a folder, or a name on the hub")
    parser.add_argument("--suite", default="starter")
    parser.add_argument("--method", action="append", help="repeat for several")
    parser.add_argument("--conversations", type=int, default=24)
    parser.add_argument("--out", default="runs/fixes")
    return parser.parse_args()


if __name__ == "__main__":
    main()
