"""The one rule for what may be concluded from a number, which all verdicts follow."""

import numpy as np
import pytest
from oracles import clopper_pearson

from holdfast.analysis.statistics import Estimate, estimate, estimate_columns
from holdfast.analysis.verdicts import (
    CONTRADICTED,
    LEAST_MOVED,
    MIN_SAMPLES,
    SUPPORTED,
    UNDECIDED,
    all_of,
    bounds,
    judge,
    tell,
    within,
)
from holdfast.report.wording import with_interval

CLEAR = -0.3 + 0.1 * np.random.default_rng(0).standard_normal(50)
BLURRED = np.random.default_rng(1).standard_normal(50)


def test_a_clear_difference_is_reported_with_its_sign():
    assert tell(estimate(CLEAR)).sign == -1 and tell(estimate(-CLEAR)).sign == 1
    assert tell(estimate(CLEAR)).word("rises", "falls") == "falls"
    assert judge(estimate(CLEAR), -1) == SUPPORTED and judge(estimate(CLEAR), +1) == CONTRADICTED


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (CLEAR[: MIN_SAMPLES - 1], "n = 19, fewer than 20"),
        (CLEAR[:1], "n = 1, fewer than 20"),
        (np.full(50, np.nan), "nothing was measured"),
        (BLURRED - BLURRED.mean(), "its interval includes 0"),
        (np.zeros(50), "none of 50 differ"),
        (np.repeat([0.0, 1.0], [45, 5]), "only 5 of 50 differ, fewer than 6"),
    ],
)
def test_anything_else_is_undecided_and_says_why(values, why):
    told = tell(estimate(values))
    assert (told.sign, told.why) == (0, why)
    assert told.word("rises", "falls") == "cannot tell"
    assert judge(estimate(values), +1) == judge(estimate(values), -1) == UNDECIDED


def test_the_minimum_numbers_are_enough():
    assert tell(estimate(CLEAR[:MIN_SAMPLES])).sign == -1
    assert tell(estimate(np.repeat([0.0, 1.0], [50 - LEAST_MOVED, LEAST_MOVED]))).sign == 1
    assert tell(estimate(np.full(MIN_SAMPLES, 0.5))).sign == 1  # all of them rose


def test_an_estimate_without_its_values_is_judged_by_its_interval():
    assert tell(Estimate(40, 0.1, None, 0.02, 0.2)).sign == 1
    assert tell(Estimate(40, 0.1, None, None, None)).why == "it has no interval"


def test_differences_are_rarely_found_between_equals():
    """Why there is a minimum: from 20 values on, about 1 in 20 is wrong; with 3 to 10, far more."""
    rng = np.random.default_rng(0)

    def wrong(n: int, rule) -> float:
        """The share of 400 experiments that find a difference between equals."""
        found = estimate_columns(rng.beta(5, 1, (n, 400)) - rng.beta(5, 1, (n, 400)))
        return np.mean([rule(one) for one in found])

    for n in (20, 40, 100):
        assert wrong(n, lambda one: bool(tell(one).sign)) < 0.09, n
    assert wrong(3, lambda one: one.excludes_zero) > 0.2
    assert wrong(8, lambda one: one.excludes_zero) > 0.1
    assert wrong(8, lambda one: bool(tell(one).sign)) == 0


def test_a_claim_of_several_parts_needs_all_of_them():
    assert all_of(SUPPORTED, SUPPORTED) == SUPPORTED
    assert all_of(SUPPORTED, UNDECIDED) == UNDECIDED
    assert all_of(UNDECIDED, CONTRADICTED) == CONTRADICTED


def test_within_needs_the_whole_interval():
    narrow, wide = 0.01 * BLURRED, BLURRED - BLURRED.mean()
    assert within(estimate(narrow), -0.1, 0.1, -1, 1) == SUPPORTED
    assert within(estimate(wide), -0.1, 0.1, -1, 1) == UNDECIDED
    assert within(estimate(narrow - 0.3), -0.1, 0.1, -1, 1) == CONTRADICTED
    assert within(estimate(narrow[:10]), -0.1, 0.1, -1, 1) == UNDECIDED


@pytest.mark.parametrize("n", (20, 60, 200))
def test_values_that_are_all_alike_are_bounded_exactly(n):
    low, high = bounds(estimate(np.ones(n)), 0, 1)
    assert (low, high) == pytest.approx((clopper_pearson(n, n)[0], 1.0), abs=1e-6)
    low, high = bounds(estimate(np.zeros(n)), -1, 1)
    unseen = clopper_pearson(0, n)[1]
    assert (low, high) == pytest.approx((-unseen, unseen), abs=1e-6)
    assert within(estimate(np.zeros(n)), -0.1, 0.1, -1, 1) == (UNDECIDED if n == 20 else SUPPORTED)
    varied = estimate(BLURRED)
    assert bounds(varied, -9, 9) == (varied.low, varied.high)


def test_an_interval_without_width_is_not_printed():
    def two(value):
        return f"{value:.2f}"

    assert with_interval(estimate(np.full(30, 0.1) + 0.2), two) == "0.30 (all equal)"
    assert with_interval(Estimate(9, 0.5, 0.1, 0.25, 0.75), two) == "0.50 [0.25, 0.75]"
    assert with_interval(estimate(np.array([0.5])), two) == "0.50"
    assert with_interval(estimate(np.array([np.nan])), two) == "–"
