"""Simulates how often a 95% interval covers the mean change of prompts that a run did not draw.

    python benchmarks/other_prompts.py --out benchmarks/results/other_prompts.json

Each prompt passes its probe with one probability in the first round and another in the last; both
are drawn from beta distributions, whose parameters sum to the `concentration`. A run draws a few
prompts, and one of these for each conversation. The truth is the mean over all possible prompts.
Two intervals are assessed: over conversations, which is right for the prompts of the run, and over
prompts (the cluster bootstrap), which is meant for others.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from stamp import measured_on, write_json

from holdfast.analysis.statistics import DIFFERENCES, MIN_PROMPTS, estimate, over_prompts

CONVERSATIONS = 100
RUNS = 1000
SEED = 0
PROMPTS = (5, 10, 20, 30, 50, 100)
CONCENTRATIONS = {"unlike": 1.0, "alike": 10.0}
TRUTHS = {"no change": (0.8, 0.8), "a fall": (0.9, 0.6)}  # means of the first and the last round


def coverage(prompts: int, first: float, last: float, concentration: float, runs: int) -> dict:
    """The shares of runs whose intervals cover the mean change of all prompts.

    Args:
        prompts: how many a run draws.
        first, last: the mean probabilities of a pass in the first and the last round.
        concentration: of the beta distributions; small if prompts differ a lot.
        runs: how many to simulate.
    """
    rng = np.random.default_rng([SEED, prompts, int(100 * last), int(10 * concentration)])
    truth = last - first
    covered = {"over_conversations": 0, "over_prompts": 0}
    for _ in range(runs):
        pass_rates = [
            rng.beta(concentration * mean, concentration * (1 - mean), prompts)
            for mean in (first, last)
        ]
        prompt_of = rng.integers(prompts, size=CONVERSATIONS)
        before, after = (rng.random(CONVERSATIONS) < rates[prompt_of] for rates in pass_rates)
        change = after.astype(float) - before
        intervals = {
            "over_conversations": estimate(change, DIFFERENCES),
            "over_prompts": over_prompts(change, DIFFERENCES, prompt_of),
        }
        for name, interval in intervals.items():
            covered[name] += interval.low <= truth <= interval.high
    return {name: count / runs for name, count in covered.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=RUNS)
    arguments = parser.parse_args()
    rows = [
        {"prompts": prompts, "prompts_are": kind, "truth": truth}
        | coverage(prompts, *means, concentration, arguments.runs)
        for prompts in PROMPTS
        for kind, concentration in CONCENTRATIONS.items()
        for truth, means in TRUTHS.items()
    ]
    record = {
        "measured_on": measured_on(),
        "settings": {
            "conversations": CONVERSATIONS,
            "runs": arguments.runs,
            "seed": SEED,
            "min_prompts": MIN_PROMPTS,
            "concentrations": CONCENTRATIONS,
            "truths": TRUTHS,
        },
        "rows": rows,
    }
    write_json(record, arguments.out)


if __name__ == "__main__":
    main()
