"""Drift without probes: the divergence of the default model's replies from a fresh dialog, and what
measuring it costs.

    python benchmarks/divergence.py --runs runs/divergence --out benchmarks/results/divergence.json

It runs `holdfast drift --divergence` through Python (the runs stay in --runs and can be resumed and
reported). What it costs is timed on runs of their own, with and without, in alternation.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import tempfile
import time
from pathlib import Path

from stamp import measured_on

import holdfast
from holdfast import drift
from holdfast.analysis.series import Series, read_series
from holdfast.analysis.statistics import Estimate, change, estimate_columns

KINDS = ("stability", "mass", "divergence")
TIMED = 24  # conversations


def rounded(value: Estimate) -> dict:
    return {
        name: round(number, 4) if isinstance(number, float) else number
        for name, number in dataclasses.asdict(value).items()
    }


def summary(item: Series) -> dict:
    """Each kind by round and its change over the dialog."""
    row: dict = {"conversations": len(item.records)}
    for kind in KINDS:
        values = item.values(kind)
        row[kind] = [rounded(value) for value in estimate_columns(values)]
        row[f"{kind}_change"] = rounded(change(values, first=1 if kind == "divergence" else 0))
    tokens = [record["tokens"] for record in item.records]
    forwarded, compared = (
        sum(each[name] for each in tokens) for name in ("forwarded", "divergence")
    )
    row["tokens_for_divergence_over_others"] = round(compared / forwarded, 4)
    return row


def seconds(model, suite, settings: drift.Settings) -> float:
    """What a run takes."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        drift.run(model, suite, folder, settings)
        return time.perf_counter() - began


def cost(model, suite, repetitions: int) -> dict:
    """How much longer a run takes with divergences, in alternation."""
    plain = drift.Settings(conversations=TIMED, seed=2)
    measured = dataclasses.replace(plain, divergence=True)
    rows = []
    for _ in range(repetitions):
        without, with_it = (seconds(model, suite, each) for each in (plain, measured))
        rows.append({"without": without, "with": with_it, "ratio": with_it / without})
    ratio = statistics.median(row["ratio"] for row in rows)
    return {"conversations": TIMED, "median_ratio": ratio, "repetitions": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=Path, default=Path("runs/divergence"))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/divergence.json"))
    parser.add_argument("--conversations", type=int, default=200)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--repetitions", type=int, default=3)
    arguments = parser.parse_args()
    model, suite = holdfast.load("default"), drift.load_suite("starter")
    result: dict = {
        "benchmark": "divergence",
        "measured_on": measured_on(model),
        "suite": suite.fingerprint,
        "rounds": drift.Settings().rounds,
        "seeds": {},
    }
    for seed in arguments.seeds:
        settings = drift.Settings(conversations=arguments.conversations, seed=seed, divergence=True)
        out = arguments.runs / f"seed-{seed}"
        run = drift.run(model, suite, out, settings)
        (series,) = read_series(run)
        result["seeds"][seed] = summary(series)
        print(seed, json.dumps(result["seeds"][seed]["divergence_change"]), flush=True)
    result["cost"] = cost(model, suite, arguments.repetitions)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
