"""Scores dialogs of a real model with `holdfast logs`: SmolLM2-135M-Instruct under `everyday`.

The dialogs are those of `on_smollm2.py drift`, which are generated if missing, written as OpenAI
messages. The user talks about everyday topics and seldom asks about anything in the prompt, so only
a rule about every reply, such as a language, can be followed in every turn.

    python benchmarks/logs_smollm2.py --runs runs/smollm2 --out benchmarks/results/logs_smollm2.json
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from on_smollm2 import run_drift
from stamp import measured_on, write_json

import holdfast
from holdfast.analysis.statistics import SCORES, estimate
from holdfast.records import LogDialog, read_run

ROLES = {"user": "user", "agent": "assistant"}


class DriftRun(NamedTuple):
    """A run of `on_smollm2.py drift`."""

    side: str  # who plays the user
    seed: int


RUNS = (DriftRun("scripted", 1), DriftRun("scripted", 2), DriftRun("suite", 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, default=Path("runs/smollm2"))
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder) / "dialogs.jsonl"
        out = Path(folder) / "run"
        sources = write_logs(logs, arguments.runs)
        printed = score_logs(logs, out)
        scored = read_run(out).dialogs
    record = {
        "benchmark": "logs_smollm2",
        "measured_on": measured_on(),
        "sources": sources,
        "dialogs": len(scored),
        "categories": adherence_by_category(scored),
        "printed": printed[:-1],  # the last line is the path of the page
    }
    print(json.dumps(record, indent=1))
    if arguments.out:
        write_json(record, arguments.out)


def write_logs(logs: Path, runs: Path) -> list[dict]:
    """Writes the dialogs of `RUNS` as OpenAI messages; returns how many each run has."""
    sources = []
    with logs.open("w", encoding="utf-8") as lines:
        for side, seed in RUNS:
            folder = runs / f"drift-{side}-{seed}"
            if not folder.exists():
                model = holdfast.load("smollm2", dtype="bfloat16")
                run_drift(model, runs, seed, side)
            records = read_run(folder).records
            sources.append({"run": folder.name, "dialogs": len(records)})
            for record in records:
                system = {"role": "system", "content": record.agent.system_prompt}
                turns = [
                    {"role": ROLES[turn.speaker], "content": turn.text} for turn in record.turns
                ]
                lines.write(json.dumps({"messages": [system, *turns]}) + "\n")
    return sources


def score_logs(logs: Path, out: Path) -> list[str]:
    """Scores the dialogs by the rules of `everyday`; returns the lines that the command prints."""
    command = ["holdfast", "logs", str(logs), "--suite", "everyday", "--out", str(out)]
    completed = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, check=True
    )
    return completed.stdout.splitlines()


def adherence_by_category(dialogs: Sequence[LogDialog]) -> dict[str, dict]:
    """How often the rules of each category of prompts are kept, with its interval over dialogs."""
    scores_by_category: dict[str, list[list[float]]] = defaultdict(list)
    for dialog in dialogs:
        scores = [probe.score for probe in dialog.probes]
        if scores:
            scores_by_category[dialog.agent.category].append(scores)
    rows = {}
    for category, scores_of_dialogs in sorted(scores_by_category.items()):
        means = np.array([np.mean(scores) for scores in scores_of_dialogs])
        adherence = estimate(means, SCORES)
        rows[category] = {
            "dialogs": len(scores_of_dialogs),
            "turns": sum(map(len, scores_of_dialogs)),
            "adherence": {"mean": adherence.mean, "low": adherence.low, "high": adherence.high},
        }
    return rows


if __name__ == "__main__":
    main()
