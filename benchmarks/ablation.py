"""Measures whether drift is caused by training on users who never write in a style.

Two models are trained further in the same way, except that in one training set users never write in
a style. Both start from the default model, are trained for another 800 steps of the second stage
(about 5 minutes each on 2 idle cores), and then run the same self-chats.

    python benchmarks/ablation.py --self-dialogue FILE --out benchmarks/results/ablation.json
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from default_model import rounded, summary
from stamp import ROOT, measured_on, write_json

import holdfast
from holdfast import drift
from holdfast.analysis.series import read_series
from holdfast.analysis.statistics import paired_difference
from holdfast.models.checkpoint import DEFAULT_FOLDER
from holdfast.models.local import LocalModel

# options of train.py, by the name of the model
MODELS = {"plain-users": (), "styled-users": ("--styled-users",)}
KINDS = ("stability", "adoption")  # of scores


def train_further(folder: Path, options: tuple[str, ...], steps: int, corpus: Path) -> LocalModel:
    """The default model, trained further; reuses a model that an earlier call trained."""
    if not (folder / "finished").exists():
        command = [
            *(sys.executable, ROOT / "training/train.py", "--init", DEFAULT_FOLDER),
            *("--first", 1, "--steps", steps, "--self-dialogue", corpus, "--out", folder),
            *options,
        ]
        subprocess.run(list(map(str, command)), check=True)
        (folder / "finished").touch()
    return holdfast.load(str(folder))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--self-dialogue", type=Path, required=True, help="see training/README.md")
    parser.add_argument("--runs", type=Path, default=Path("runs/ablation"))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/ablation.json"))
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--conversations", type=int, default=200)
    parser.add_argument(
        "--seed", type=int, default=2, help="one that the default model's numbers do not use"
    )
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)

    suite = drift.load_suite("starter")
    settings = drift.Settings(conversations=arguments.conversations, seed=arguments.seed)
    result: dict = {
        "benchmark": "ablation",
        "suite": suite.fingerprint,
        "seed": arguments.seed,
        "steps": arguments.steps,
        "models": {},
    }
    changes: list[dict[str, np.ndarray]] = []  # of each model, by kind of score
    fingerprints = {}
    for name, options in MODELS.items():
        folder = arguments.runs / f"model-{name}"
        model = train_further(folder, options, arguments.steps, arguments.self_dialogue)
        fingerprints[name] = model.fingerprint
        (series,) = read_series(drift.run(model, suite, arguments.runs / name, settings))
        result["models"][name] = summary(series)
        scores = {kind: series.values(kind) for kind in KINDS}
        changes.append({kind: values[:, -1] - values[:, 0] for kind, values in scores.items()})
    plain, styled = changes
    result["measured_on"] = measured_on(holdfast.load(), fingerprints)
    result["second_minus_first"] = {
        kind: rounded(paired_difference(styled[kind], plain[kind])) for kind in plain
    }
    write_json(result, arguments.out)
    for name, row in result["models"].items():
        print(name, [estimate["mean"] for estimate in row["stability"]], row["stability_change"])
    print(
        "second minus first, change from the first round to the last:", result["second_minus_first"]
    )


if __name__ == "__main__":
    main()
