"""A check of three prompts, which the tests of checks and of their pages read."""

from typing import NamedTuple

import pytest
from three_prompts import ROUNDS, SHARES, SUITE, TERMS, KeepsShares

from holdfast import drift
from holdfast.records import Run
from holdfast.study.checking import CheckOptions, check


class CheckRun(NamedTuple):
    """A check by `KeepsShares`: one prompt passes, one fails, and one is undecided.

    Args:
        checks: the outcome of each prompt.
        looks: after how many conversations the outcomes were looked at, and their verdicts then.
    """

    model: KeepsShares
    run: Run
    checks: tuple
    looks: list


@pytest.fixture(scope="module")
def check_run(tmp_path_factory) -> CheckRun:
    model, looks = KeepsShares(SHARES), []

    def on_look(count, checks):
        looks.append((count, [item.verdict for item in checks]))

    out, settings = tmp_path_factory.mktemp("check") / "run", drift.Settings(rounds=ROUNDS)
    run, checks = check(model, SUITE, out, settings, TERMS, CheckOptions(on_look=on_look))
    return CheckRun(model, run, checks, looks)
