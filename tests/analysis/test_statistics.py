"""Means, their intervals and differences, checked against plain computations."""

import math
import operator
import random
import statistics as plain_statistics

import numpy as np
import pytest
from drift_sentences import prompts_run, record, run_of
from oracles import clopper_pearson

from holdfast.analysis.estimate_rows import row_of
from holdfast.analysis.resampling import RESAMPLES
from holdfast.analysis.row_differences import compare_rows
from holdfast.analysis.series import read_series
from holdfast.analysis.statistics import (
    DIFFERENCES,
    SCORES,
    Estimate,
    SamplePair,
    estimate,
    estimate_columns,
    paired_difference,
    row_means,
    unpaired_difference,
    unpaired_differences,
)

# a percentile of 10,000 resamples of scores with sd 0.5 and n = 60 moves by about 0.0015
BOOTSTRAP_NOISE = 0.006


# Means and intervals


def test_mean_and_deviation_of_known_values():
    item = estimate(np.array([0.0, 1.0, 1.0, 0.0]), SCORES)
    assert item.n == 4 and item.mean == 0.5
    assert item.sd == pytest.approx(math.sqrt(1 / 3))
    low, high = clopper_pearson(2, 4)
    assert (item.low, item.high) == pytest.approx((low, high), abs=BOOTSTRAP_NOISE)


def test_interval_agrees_with_resampling_by_hand():
    """Random weights, one of them on an unseen conversation with the worst or the best score."""
    generator = random.Random(5)
    values = [generator.choice([0.0, 0.0, 0.3, 1.0]) for _ in range(60)]

    def means(unseen):
        for _ in range(RESAMPLES):
            weights = [generator.expovariate(1) for _ in range(61)]
            yield sum(map(operator.mul, weights, [*values, unseen])) / sum(weights)

    item = estimate(np.array(values), SCORES)
    low, high = (sorted(means(unseen)) for unseen in SCORES)
    assert item.low == pytest.approx(low[int(0.025 * RESAMPLES)], abs=BOOTSTRAP_NOISE)
    assert item.high == pytest.approx(high[int(0.975 * RESAMPLES)], abs=BOOTSTRAP_NOISE)
    assert item.mean == pytest.approx(plain_statistics.fmean(values))
    assert item.sd == pytest.approx(plain_statistics.stdev(values))


def test_interval_covers_the_truth_as_often_as_it_says():
    """At least 95% of 400 samples of size 40."""
    generator = np.random.default_rng(2)
    # each column is one sample; the true mean is 2/3
    items = estimate_columns(generator.beta(2, 1, (40, 400)), SCORES)
    covered = sum(item.low <= 2 / 3 <= item.high for item in items)
    assert covered / 400 >= 0.95


def test_no_interval_for_fewer_than_two():
    alone = Estimate(1, 0.7, None, None, None)
    assert estimate(np.array([0.7]), SCORES) == alone and not alone.excludes_zero
    assert estimate(np.array([]), SCORES) == Estimate(0, None, None, None, None)
    assert estimate(np.array([np.nan, 0.7, np.nan]), SCORES) == alone


def test_missing_rounds_are_left_out():
    values = np.array([[0.0, 1.0], [1.0, np.nan], [1.0, 0.0], [0.0, np.nan]])
    first, second = estimate_columns(values, SCORES)
    assert (first.n, first.mean) == (4, 0.5)
    assert (second.n, second.mean) == (2, 0.5)
    change = paired_difference(values[:, 1], values[:, 0])
    assert change.n == 2 and change.mean == 0.0
    means = row_means(np.array([[0.0, 1.0], [np.nan, 0.25], [np.nan, np.nan]]))
    assert means.tolist()[:2] == [0.5, 0.25]


# Differences


def test_pairing_removes_variation_between_conversations():
    """A constant gain is clear on pairs, however different the conversations are."""
    baseline = np.linspace(0, 0.8, 60)
    paired = paired_difference(baseline + 0.1, baseline)
    assert paired.mean == pytest.approx(0.1) and paired.excludes_zero
    assert not unpaired_difference(baseline + 0.1, baseline).excludes_zero


def test_pairs_that_are_compared_together_get_the_intervals_of_each_alone():
    generator = np.random.default_rng(3)
    pairs = [SamplePair(*generator.beta(2, 1, (2, 30))) for _ in range(3)]
    pairs += [SamplePair(generator.beta(2, 1, 25), generator.beta(1, 2, 9))]
    together = unpaired_differences(pairs, error=0.001)
    for pair, item in zip(pairs, together, strict=True):
        alone = unpaired_difference(*pair, error=0.001)
        assert (item.n, item.mean) == (alone.n, alone.mean)
        assert (item.low, item.high) == pytest.approx((alone.low, alone.high), abs=BOOTSTRAP_NOISE)
        assert item.deciding == pytest.approx(alone.deciding, abs=0.03), "tails are noisier"
        assert item.sd == pytest.approx(alone.sd, rel=0.02)
    assert together[0] == unpaired_differences(pairs[:3], error=0.001)[0]
    assert unpaired_differences([]) == []


def test_the_two_samples_of_a_difference_are_independent():
    """The difference of a sample and itself has twice the variance of its mean."""
    values = np.random.default_rng(4).beta(2, 1, 40)
    points = [*values, SCORES[0]]  # weights that are uniform over all weightings of n points
    variance = np.var(points) / (len(points) + 1)
    sd = unpaired_difference(values, values).sd
    assert sd == pytest.approx(math.sqrt(2 * variance), rel=0.03)


# Series of a run


def test_probes_of_a_round_are_averaged_within_their_conversation(tmp_path):
    records = [record(0, [[1.0, 0.0, 0.5], 1.0], mass=0.2), record(1, [1.0, [0.0, 0.5]])]
    series = read_series(run_of(tmp_path, records))[0]
    assert series.stability.tolist() == [[0.5, 1.0], [1.0, 0.25]]
    assert np.isnan(series.adoption).all()
    assert series.mass[0].tolist() == [0.2, 0.2] and np.isnan(series.mass[1]).all()


def test_rows_follow_conversation_numbers_and_methods_start_with_none(tmp_path):
    records = [record(1, [0.1], method="m:k=1"), record(0, [0.2], method="m:k=1")]
    records += [record(1, [0.3]), record(0, [0.4])]
    series = read_series(run_of(tmp_path, records))
    assert [(item.method, item.label) for item in series] == [("none", "none"), ("m:k=1", "m")]
    assert [item.stability[:, 0].tolist() for item in series] == [[0.4, 0.3], [0.2, 0.1]]


def test_only_shared_conversations_are_compared(tmp_path):
    records = [record(0, [1.0, 0.2]), record(1, [1.0, 0.4])]
    records += [record(1, [1.0, 0.9], method="m"), record(5, [1.0, 0.0], method="m")]
    plain, method = read_series(run_of(tmp_path, records))
    comparison = compare_rows(row_of(method, "stability"), row_of(plain, "stability"))
    assert comparison.n == 1 and comparison.last_round.mean == pytest.approx(0.5)
    assert comparison.over_all_rounds.mean == pytest.approx(0.25)


def test_unmatched_conversations_are_not_compared(tmp_path):
    def stability(name, n, agent):
        run = run_of(tmp_path / name, [record(n, [1.0], agent=agent)])
        return row_of(read_series(run)[0], "stability")

    first, second, apart = stability("1", 0, "x"), stability("2", 0, "y"), stability("3", 7, "x")
    assert compare_rows(first, second) is None and compare_rows(first, apart) is None


def test_the_interval_for_other_prompts_resamples_whole_prompts(tmp_path):
    """Conversations of one prompt are identical here, so only the prompts set the interval."""
    many = row_of(prompts_run(tmp_path / "many", 24, 5)[0], "stability").change
    of_prompts = estimate(np.array([-1.0, 0.0] * 12), DIFFERENCES)
    interval = many.other_prompts
    assert (interval.prompts, interval.low, interval.high) == (
        24,
        pytest.approx(of_prompts.low, abs=BOOTSTRAP_NOISE),
        pytest.approx(of_prompts.high, abs=BOOTSTRAP_NOISE),
    )
    assert interval.low < many.low < many.high < interval.high
    few = row_of(prompts_run(tmp_path / "few", 19, 5)[0], "stability").change
    assert few.other_prompts is None
