"""Is drift planted by users who never write in a style? Two models, trained further alike but for that, in the same self-chats.

    python training/train.py --steps 10000 2500 --self-dialogue FILE --out /tmp/two-stages
    python training/train.py --init /tmp/two-stages --steps 800 --self-dialogue FILE --out /tmp/plain
    python training/train.py --init /tmp/two-stages --steps 800 --self-dialogue FILE --out /tmp/styled --styled-users
    python benchmarks/ablation.py plain-users=/tmp/plain styled-users=/tmp/styled --out benchmarks/results/ablation.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from default_model import rounded, summary

import holdfast
from holdfast import drift
from holdfast.report.scores import read_series
from holdfast.report.statistics import paired_difference


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs=2, metavar="NAME=FOLDER")
    parser.add_argument("--runs", type=Path, default=Path("runs/ablation"))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/ablation.json"))
    parser.add_argument("--conversations", type=int, default=200)
    parser.add_argument("--seed", type=int, default=2, help="one that the default model's own numbers do not use")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)

    suite, settings = drift.load_suite("starter"), drift.Settings(conversations=arguments.conversations, seed=arguments.seed)
    result: dict = {"benchmark": "ablation", "suite": suite.fingerprint, "seed": arguments.seed, "models": {}}
    changes = []
    for spelled in arguments.models:
        name, _, folder = spelled.partition("=")
        series = read_series(drift.run(holdfast.load(folder), suite, arguments.runs / name, settings))[0]
        result["models"][name] = summary(series)
        changes.append({kind: series.values(kind)[:, -1] - series.values(kind)[:, 0] for kind in ("stability", "adoption")})
    result["second_minus_first"] = {kind: rounded(paired_difference(changes[1][kind], changes[0][kind])) for kind in changes[0]}
    arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    for name, row in result["models"].items():
        print(name, [one["mean"] for one in row["stability"]], row["stability_change"], row["adoption_change"])
    print("second minus first, change from the first round to the last:", result["second_minus_first"])


if __name__ == "__main__":
    main()
