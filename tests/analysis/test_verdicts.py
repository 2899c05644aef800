"""The one rule for what may be concluded from a number, which all verdicts follow."""

import numpy as np
import pytest
from fast_set import only_fast
from oracles import binomial_tail, clopper_pearson, hypergeometric_tail

from holdfast.analysis.statistics import (
    DIFFERENCES,
    ERROR,
    SCORES,
    Estimate,
    estimate_columns,
    share,
    unpaired_difference,
)
from holdfast.analysis.statistics import estimate as estimate_within
from holdfast.analysis.verdicts import (
    CONTRADICTED,
    MIN_SAMPLES,
    SUPPORTED,
    UNDECIDED,
    all_of,
    error_at,
    judge,
    verdict_on,
    within,
)
from holdfast.report.wording import with_interval


def estimate(values, error=ERROR):
    return estimate_within(np.asarray(values), DIFFERENCES, error=error)


BLURRED = np.random.default_rng(1).standard_normal(50)


# Verdicts

CLEAR = -0.3 + 0.1 * np.random.default_rng(0).standard_normal(50)


def test_a_clear_difference_is_reported_with_its_sign():
    assert verdict_on(estimate(CLEAR)).sign == -1 and verdict_on(estimate(-CLEAR)).sign == 1
    assert verdict_on(estimate(CLEAR)).word("rises", "falls") == "falls"
    assert judge(estimate(CLEAR), -1) == SUPPORTED and judge(estimate(CLEAR), +1) == CONTRADICTED


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (CLEAR[: MIN_SAMPLES - 1], "n = 19, fewer than 20"),
        (CLEAR[:1], "n = 1, fewer than 20"),
        (np.full(50, np.nan), "nothing was measured"),
        (BLURRED - BLURRED.mean(), "its interval includes 0"),
        (np.zeros(50), "none of 50 differ"),
        (np.repeat([0.0, 1.0], [46, 4]), "its interval includes 0"),
        (np.full(20, 0.05), "its interval includes 0"),  # one loss of 20 is not yet seen
    ],
)
def test_anything_else_is_undecided_and_says_why(values, why):
    verdict = verdict_on(estimate(values))
    assert (verdict.sign, verdict.why) == (0, why)
    assert verdict.word("rises", "falls") == "cannot tell"
    assert judge(estimate(values), +1) == judge(estimate(values), -1) == UNDECIDED


def test_the_minimum_numbers_are_enough():
    assert verdict_on(estimate(CLEAR[:MIN_SAMPLES])).sign == -1
    assert verdict_on(estimate(np.repeat([0.0, 1.0], [44, 6]))).sign == 1
    assert verdict_on(estimate(np.full(MIN_SAMPLES, 0.5))).sign == 1  # all of them rose


def test_an_estimate_without_its_values_is_judged_by_its_interval():
    assert verdict_on(Estimate(40, 0.1, None, 0.02, 0.2)).sign == 1
    assert verdict_on(Estimate(40, 0.1, None, None, None)).why == "it has no interval"


def test_a_verdict_may_need_a_wider_interval_than_the_one_shown():
    near = Estimate(40, -0.1, 0.3, -0.19, -0.01, decisive=(-0.23, 0.03))
    assert verdict_on(near).sign == 0 and "[-0.230, +0.030]" in verdict_on(near).why
    assert within(near, -0.2, 0.2) == UNDECIDED  # -0.23 is below


# Claims


def test_within_needs_the_whole_interval():
    narrow, wide = 0.01 * BLURRED, BLURRED - BLURRED.mean()
    assert within(estimate(narrow), -0.1, 0.1) == SUPPORTED
    assert within(estimate(wide), -0.1, 0.1) == UNDECIDED
    assert within(estimate(narrow - 0.3), -0.1, 0.1) == CONTRADICTED
    assert within(estimate(narrow[:10]), -0.1, 0.1) == UNDECIDED


def test_a_claim_of_several_parts_needs_all_of_them():
    assert all_of(SUPPORTED, SUPPORTED) == SUPPORTED
    assert all_of(SUPPORTED, UNDECIDED) == UNDECIDED
    assert all_of(UNDECIDED, CONTRADICTED) == CONTRADICTED


def test_values_that_are_all_alike_have_an_interval():
    assert within(estimate(np.zeros(20)), -0.1, 0.1) == UNDECIDED
    assert within(estimate(np.zeros(60)), -0.1, 0.1) == SUPPORTED


# How often a verdict is wrong

# Differences of scores whose mean is 0. Of those that are skewed, the losses are rare and large.
EQUAL = {
    "binary": lambda rng, size: rng.binomial(1, 0.8, size) - rng.binomial(1, 0.8, size),
    "skewed": lambda rng, size: np.where(rng.random(size) < 0.95, 0.05, -0.95),
    "skewed and noisy": lambda rng, size: np.where(
        rng.random(size) < 0.9, rng.uniform(0, 0.1, size), -0.45
    ),
    "mostly 0": lambda rng, size: np.where(rng.random(size) < 0.1, rng.uniform(-1, 1, size), 0),
    "U-shaped": lambda rng, size: rng.beta(0.2, 0.2, size) - rng.beta(0.2, 0.2, size),
    "constant": lambda rng, size: np.zeros(size),
}


@pytest.mark.parametrize("n", only_fast((20, 48, 200), 48))
@pytest.mark.parametrize("name", EQUAL)
def test_differences_are_rarely_seen_between_equals(name, n):
    """In at most 1 of 20 runs; the margin is three standard errors of 400 runs."""
    values = EQUAL[name](np.random.default_rng(n), (n, 400)).astype(float)
    signs = np.array([verdict_on(item).sign for item in estimate_columns(values, DIFFERENCES)])
    assert np.mean(signs != 0) < ERROR + 3 * np.sqrt(ERROR * (1 - ERROR) / 400)


def test_verdicts_of_all_looks_together_stay_within_the_error():
    errors = [error_at(look) for look in range(1, 40)]
    assert sum(errors) == pytest.approx(ERROR) and errors == sorted(errors, reverse=True)
    first, second = (estimate(-0.3 + BLURRED, error) for error in errors[:2])
    assert (first.low, first.high) == (second.low, second.high)  # what is shown is always 95%
    (low, high), (wider_low, wider_high) = first.deciding, second.deciding
    assert wider_low < low < first.low and first.high < high < wider_high


@pytest.mark.parametrize("error", (0.04, 0.005, 0.0005, 0.0002))
@pytest.mark.parametrize("count", (3, 12, 30))
def test_a_verdict_that_shares_its_error_is_wrong_no_more_often_than_that(count, error):
    """Each end leaves a tail of half the error. A hundred rules that share 5% need as small a tail
    as the last of these; 10,000 resamples gave one more than twice as large.
    """
    n = 60
    value = estimate_within(np.repeat([1.0, 0.0], [count, n - count]), SCORES, error=error)
    low, high = value.deciding
    tails = (binomial_tail(count, n, low), binomial_tail(n - count, n, 1 - high))
    for tail in tails:
        assert 0.6 < tail / (error / 2) < 1.7
    plain = estimate_within(np.repeat([1.0, 0.0], [count, n - count]), SCORES)
    assert (value.low, value.high) == (plain.low, plain.high), "what is shown stays the same"


@pytest.mark.parametrize("n", only_fast((20, 60), 20))
def test_two_samples_of_equals_are_rarely_seen_as_different(n):
    rng = np.random.default_rng(n)
    samples = rng.binomial(1, 0.8, (2, 300, n)).astype(float)
    verdicts = [verdict_on(unpaired_difference(*pair)).sign for pair in zip(*samples, strict=True)]
    assert np.mean(np.array(verdicts) != 0) < ERROR + 3 * np.sqrt(ERROR * (1 - ERROR) / 300)


# Exact intervals


@pytest.mark.parametrize("count", (0, 1, 12, 20))
@pytest.mark.parametrize("n", (20, 60, 200))
def test_the_interval_of_a_share_is_that_of_clopper_and_pearson(n, count):
    """Up to the noise of 10,000 resamples, whether all conversations are alike or not."""
    value = estimate_within(np.repeat([1.0, 0.0], [count, n - count]), SCORES)
    low, high = clopper_pearson(count, n)
    assert (value.low, value.high) == pytest.approx((low, high), abs=0.15 / np.sqrt(n))
    (by_share,) = share(np.repeat([[2.0], [0.0]], [count, n - count], 0), np.full((n, 1), 2.0))
    assert (by_share.low, by_share.high) == pytest.approx((value.low, value.high), abs=1e-6)


@pytest.mark.parametrize(
    ("successes", "sizes"), [((8, 2), (20, 20)), ((15, 6), (20, 20)), ((20, 10), (25, 40))]
)
def test_two_samples_differ_when_the_exact_test_of_fisher_says_so(successes, sizes):
    """The interval excludes 0 at twice the p-value, and includes it at half of that."""
    first, second = (
        np.repeat([1.0, 0.0], [count, size - count])
        for count, size in zip(successes, sizes, strict=True)
    )
    p_value = 2 * hypergeometric_tail(successes[0], sizes[0], sum(successes), sum(sizes))
    assert unpaired_difference(first, second, error=2 * p_value).deciding[0] > 0
    assert unpaired_difference(first, second, error=p_value / 2).deciding[0] < 0


def test_the_difference_of_other_conversations_counts_both_samples():
    first, second = np.repeat([1.0, 0.0], [30, 30]), np.repeat([1.0, 0.0], [6, 24])
    value = unpaired_difference(first, second)
    assert (value.n, value.mean) == (30, pytest.approx(0.3)) and verdict_on(value).sign == 1
    assert value.high - value.low > estimate_within(second, SCORES).high
    mirrored = unpaired_difference(second, first)
    assert (-mirrored.high, -mirrored.low) == pytest.approx((value.low, value.high), abs=0.02)
    assert unpaired_difference(first, second[:1]).deciding is None


# Wording


def test_an_estimate_is_printed_with_its_interval():
    def two(value):
        return f"{value:.2f}"

    assert with_interval(estimate_within(np.ones(30), SCORES), two) == "1.00 [0.88, 1.00]"
    assert with_interval(Estimate(9, 0.5, 0.1, 0.25, 0.75), two) == "0.50 [0.25, 0.75]"
    assert with_interval(estimate(np.array([0.5])), two) == "0.50"
    assert with_interval(estimate(np.array([np.nan])), two) == "–"
