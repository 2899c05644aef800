"""How the default model keeps the four rules of the suite `bot`, with and without a fix.

    python benchmarks/bot.py

The command is the one in docs/measuring.md, with more conversations and more fixes.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from stamp import ROOT, measured_on, write_json

import holdfast
from holdfast.cli import main as command_line

METHODS = ("none", "boost:factor=2", "boost:factor=4", "split-softmax:exponent=0.5")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, default=Path("runs/record-bot"))
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "bot.json")
    arguments = parser.parse_args()
    stamp = measured_on(holdfast.load())

    words = ["drift", "--suite", "bot", "--conversations", "96", "--baseline"]
    for method in METHODS:
        words += ["--method", method]
    if status := command_line([*words, "--out", str(arguments.runs)]):
        raise SystemExit(status)

    summary = json.loads((arguments.runs / "summary.json").read_text())
    record = {
        "benchmark": "bot",
        "command": " ".join(["holdfast", *words]),
        "measured_on": stamp,
        "conversations": summary["identity"]["settings"]["conversations"],
        "rounds": summary["identity"]["settings"]["rounds"],
        "unprompted": summary["results"][0]["baseline"],
        "methods": [
            {
                "method": row["method"],
                "stability": row["by_round"]["stability"],
                "against": row["against"] and row["against"]["stability"],
                "rules": [
                    {key: rule[key] for key in ("rule", "stability_by_round", "against")}
                    for rule in row["rules"]
                ],
            }
            for row in summary["results"]
        ],
    }
    write_json(record, arguments.out)


if __name__ == "__main__":
    main()
