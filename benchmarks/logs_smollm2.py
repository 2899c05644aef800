"""`holdfast logs` on dialogs of a real model: SmolLM2-135M-Instruct under prompts of `everyday`.

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
from pathlib import Path

import numpy as np
from on_smollm2 import drift_of
from stamp import measured_on, write_json

import holdfast
from holdfast.analysis.statistics import SCORES, estimate
from holdfast.records import read_run

DIALOGS = (("scripted", 1), ("scripted", 2), ("suite", 1))  # the user's side, the seed
ROLES = {"user": "user", "agent": "assistant"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, default=Path("runs/smollm2"))
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder) / "dialogs.jsonl"
        out = Path(folder) / "run"
        sources = []
        with logs.open("w", encoding="utf-8") as lines:
            for side, seed in DIALOGS:
                run = arguments.runs / f"drift-{side}-{seed}"
                if not run.exists():
                    model = holdfast.load("smollm2", dtype="bfloat16")
                    drift_of(model, arguments.runs, seed, side)
                records = read_run(run).records
                sources.append({"run": run.name, "dialogs": len(records)})
                for record in records:
                    system = {"role": "system", "content": record.agent.system_prompt}
                    turns = [
                        {"role": ROLES[turn.speaker], "content": turn.text} for turn in record.turns
                    ]
                    lines.write(json.dumps({"messages": [system, *turns]}) + "\n")
        command = ["holdfast", "logs", str(logs), "--suite", "everyday", "--out", str(out)]
        completed = subprocess.run(
            [sys.executable, "-m", *command], capture_output=True, text=True, check=True
        )
        records = read_run(out).records
    by_category = defaultdict(list)
    for record in records:
        scores = [probe.score for probe in record.probes]
        if scores:
            by_category[record.agent.category].append(scores)
    rows = {}
    for category, dialogs in sorted(by_category.items()):
        value = estimate(np.array([np.mean(scores) for scores in dialogs]), SCORES)
        rows[category] = {
            "dialogs": len(dialogs),
            "turns": sum(map(len, dialogs)),
            "adherence": {"mean": value.mean, "low": value.low, "high": value.high},
        }
    record = {
        "benchmark": "logs_smollm2",
        "measured_on": measured_on(),
        "sources": sources,
        "dialogs": len(records),
        "categories": rows,
        "printed": completed.stdout.splitlines()[:-1],
    }
    print(json.dumps(record, indent=1))
    if arguments.out:
        write_json(record, arguments.out)


if __name__ == "__main__":
    main()
