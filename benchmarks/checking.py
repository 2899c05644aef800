"""Simulates how often `holdfast check` errs, and how many conversations it needs.

    python benchmarks/checking.py --out benchmarks/results/checking.json

Scores are 0 or 1, drawn independently for every round of every conversation. The hardest cases are
those at the bar: every round exactly there (a prompt that holds), or one round just below it and
all others perfect (a prompt that does not).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from stamp import measured_on, write_json

from holdfast.analysis.sequential import holds, is_below

BAR = 0.9  # the mean score that every round has to reach
ERROR = 0.05  # probability of a wrong verdict
ROUNDS = 8
BUDGET = 200  # conversations at most
CHECKS = 4000  # simulated for each of the worst cases
SEED = 0
BLOCK = 100  # checks that are simulated at once
MEANS = (1.0, 0.99, 0.98, 0.95, 0.9, 0.85, 0.8, 0.7, 0.5, 0.2, 0.0)


def simulate(means: np.ndarray, error: float, checks: int, seed: int) -> dict:
    """Simulates verdicts on a prompt with the given mean of each round.

    Args:
        means: [round].
        error: error probability of each verdict.
        checks: how many to simulate.
        seed: of the draws.
    """
    draws = np.random.default_rng(seed)
    passed = 0
    failed = 0
    conversations = 0
    for start in range(0, checks, BLOCK):
        size = (min(BLOCK, checks - start), BUDGET, len(means))
        values = (draws.random(size) < means).astype(float)
        until_pass = conversations_until(holds(values, BAR, error))
        until_fail = conversations_until(is_below(values, BAR, error))
        passed += int((until_pass < until_fail).sum())
        failed += int((until_fail < until_pass).sum())
        conversations += int(np.minimum(np.minimum(until_pass, until_fail), BUDGET).sum())
    return {
        "pass": passed / checks,
        "fail": failed / checks,
        "undecided": 1 - (passed + failed) / checks,
        "conversations": conversations / checks,
    }


def conversations_until(is_certain: np.ndarray) -> np.ndarray:
    """How many conversations each check needs to be certain, [check], or BUDGET + 1 if it never is.

    Args:
        is_certain: after each conversation, [check, conversation].
    """
    return np.where(is_certain.any(axis=1), is_certain.argmax(axis=1) + 1, BUDGET + 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--checks", type=int, default=CHECKS)
    arguments = parser.parse_args()
    one_below = np.array([1.0] * (ROUNDS - 1) + [BAR - 1e-6])
    worst = {
        "fails though every round is at the bar": simulate(
            np.full(ROUNDS, BAR), ERROR, arguments.checks, SEED
        )["fail"],
        "passes though one round is below it": simulate(
            one_below, ERROR, arguments.checks, SEED + 1
        )["pass"],
    }
    rows = [
        {"prompts": prompts, "mean": mean}
        | simulate(np.full(ROUNDS, mean), ERROR / prompts, arguments.checks // 4, SEED + 2 + index)
        for prompts in (1, 10)
        for index, mean in enumerate(MEANS)
    ]
    settings = {"bar": BAR, "error": ERROR, "rounds": ROUNDS, "budget": BUDGET}
    record = {
        "measured_on": measured_on(),
        "settings": {**settings, "checks": arguments.checks, "seed": SEED},
        "wrong": worst,
        "rows": rows,
    }
    write_json(record, arguments.out)


if __name__ == "__main__":
    main()
