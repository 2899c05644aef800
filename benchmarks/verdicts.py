"""Simulates how often a verdict is wrong: on one reading of a run, and when the printed next step
is followed until something is certain.

    python benchmarks/verdicts.py --out benchmarks/results/verdicts.json

Every difference has a true mean of 0, so every verdict is wrong. The functions are those that runs
are judged by: `statistics.estimate`, `verdicts.verdict_on` and `outcome.conversations_needed`. For
comparison, each difference is also judged by a percentile bootstrap, which judged runs before 0.4.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from stamp import measured_on, write_json

from holdfast.analysis.outcome import MATTERS, conversations_needed
from holdfast.analysis.statistics import DIFFERENCES, ERROR, estimate, estimate_columns
from holdfast.analysis.verdicts import error_at, verdict_on, within

# draws differences between conversations, in the shape that is given
Draw = Callable[[np.random.Generator, "int | tuple[int, int]"], np.ndarray]
SEED = 0
RUNS = 1000  # that are read once
EXTENDED_RUNS = 400
SIZES = (20, 24, 48, 100, 200)  # conversations
FIRST_LOOK = 20  # conversations
MAX_CONVERSATIONS = 1200  # the most that a user waits for


def passes(share: float) -> Draw:
    """Draws changes of a probe that is passed with the same probability before and after."""
    return lambda rng, size: rng.binomial(1, share, size) - rng.binomial(1, share, size)


def rare_losses(gain: float, loss: float) -> Draw:
    """Draws mostly small gains, and rarely large losses that cancel them on average."""
    return lambda rng, size: np.where(rng.random(size) < loss / (gain + loss), gain, -loss)


# Differences whose true mean is 0, by name.
EQUAL: dict[str, Draw] = {
    "binary, passed by 50%": passes(0.5),
    "binary, passed by 80%": passes(0.8),
    "binary, passed by 95%": passes(0.95),
    "skewed, +0.10 or -0.90": rare_losses(0.1, 0.9),
    "skewed, +0.05 or -0.95": rare_losses(0.05, 0.95),
    "skewed, and noisy": lambda rng, size: np.where(
        rng.random(size) < 0.9, rng.uniform(0, 0.1, size), -0.45
    ),
    "9 of 10 are 0": lambda rng, size: np.where(
        rng.random(size) < 0.1, rng.uniform(-1, 1, size), 0.0
    ),
    "U-shaped": lambda rng, size: rng.beta(0.2, 0.2, size) - rng.beta(0.2, 0.2, size),
    "uniform": lambda rng, size: rng.random(size) - rng.random(size),
    "all 0": lambda rng, size: np.zeros(size),
}


def one_look(draw: Draw, n: int, runs: int) -> dict[str, float]:
    """The shares of runs with a verdict, "lower" or "higher", and of bootstrap intervals without
    0, if runs of n conversations are read once.
    """
    rng = np.random.default_rng([SEED, n])
    values = draw(rng, (n, runs)).astype(float)
    judged = estimate_columns(values, DIFFERENCES, error_at(1))
    signs = np.array([verdict_on(change).sign for change in judged])
    shown = np.array([change.excludes_zero for change in estimate_columns(values, DIFFERENCES)])
    weights = rng.multinomial(n, np.full(n, 1 / n), size=2000) / n
    low, high = np.percentile(weights @ values, [2.5, 97.5], axis=0)
    return {
        "lower": float(np.mean(signs < 0)),
        "higher": float(np.mean(signs > 0)),
        "interval_excludes_0": float(np.mean(shown)),
        "bootstrap_lower": float(np.mean(high < -1e-9)),
        "bootstrap_higher": float(np.mean(low > 1e-9)),
    }


class ExtendedRun(NamedTuple):
    """A run that was extended as the next step says."""

    sign: int  # of its last verdict; 0 if it cannot tell
    looks: int  # how often it was read


def extend(values: np.ndarray) -> ExtendedRun:
    """Reads more and more of a run's differences, until something is certain."""
    n = FIRST_LOOK
    look = 1
    while True:
        change = estimate(values[:n], DIFFERENCES, error=error_at(look))
        sign = verdict_on(change).sign
        holds = within(change, -MATTERS, 1) == "supported"
        needed = conversations_needed(change, -MATTERS, look)
        if sign or holds or needed is None or needed > MAX_CONVERSATIONS:
            return ExtendedRun(sign, look)
        n = needed
        look += 1


def extended(draw: Draw, runs: int) -> dict[str, float]:
    """The shares of runs that ever get a verdict if they are extended as the next step says."""
    rng = np.random.default_rng([SEED, MAX_CONVERSATIONS])
    ends = [extend(draw(rng, MAX_CONVERSATIONS).astype(float)) for _ in range(runs)]
    return {
        "drifts": sum(end.sign < 0 for end in ends) / runs,
        "improves": sum(end.sign > 0 for end in ends) / runs,
        "mean_looks": sum(end.looks for end in ends) / runs,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument(
        "--followed", type=int, default=EXTENDED_RUNS, help="runs that are extended"
    )
    arguments = parser.parse_args()
    record = {
        "measured_on": measured_on(),
        "settings": {
            "runs": arguments.runs,
            "followed": arguments.followed,
            "seed": SEED,
            "error": ERROR,
            "first_look": FIRST_LOOK,
            "most": MAX_CONVERSATIONS,
        },
        "one_look": [
            {"differences": name, "n": n} | one_look(draw, n, arguments.runs)
            for name, draw in EQUAL.items()
            for n in SIZES
        ],
        "followed": [
            {"differences": name} | extended(EQUAL[name], arguments.followed)
            for name in ("binary, passed by 50%", "binary, passed by 80%", "uniform")
        ],
    }
    write_json(record, arguments.out)


if __name__ == "__main__":
    main()
