"""Error rates of sequential verdicts, by simulation, and the bets they are based on."""

import math

import numpy as np
import pytest
from fast_set import only_fast

from holdfast.analysis import sequential

ERROR = 0.05
CHECKS = 2000  # simulated; a rate of 5% shows as 6.2% or more in 1 of 100 such tests
LIMIT = ERROR + 2.33 * math.sqrt(ERROR * (1 - ERROR) / CHECKS)
BUDGET = 120


def simulated(means, seed, spread=0.0, count=CHECKS, length=BUDGET):
    """Random scores [check, conversation, cell]; `spread` makes conversations good or bad."""
    draws = np.random.default_rng(seed)
    means = np.asarray(means, dtype=float)
    shift = draws.choice([-spread, spread], size=(count, length, 1))
    return (draws.random((count, length, len(means))) < means + shift).astype(float)


# The bets


def literal_capital_above(values, bar):
    """The bets one by one: sixteen gamblers, each starting with a sixteenth."""
    total = 0.0
    for gambler in range(16):
        stake = math.sin(math.pi * (2 * gambler + 1) / 64) ** 2
        capital = 1 / 16
        for value in values:
            if not math.isnan(value):
                capital *= 1 + stake / bar * (value - bar)
        total += capital
    return total


def test_capitals_match_the_bets_one_by_one():
    draws = np.random.default_rng(1)
    values = draws.random((40, 3))
    values[draws.random((40, 3)) < 0.2] = math.nan
    for bar in (0.1, 0.5, 0.9):
        capitals = np.exp(sequential.capital_above(values, bar))
        below = np.exp(sequential.capital_below(values, bar))
        for cell in range(3):
            for after in (1, 7, 40):
                observed = values[:after, cell]
                expected = literal_capital_above(observed, bar)
                assert capitals[after - 1, cell] == pytest.approx(expected, rel=1e-9)
                below_capital = literal_capital_above(1 - observed, 1 - bar)
                assert below[after - 1, cell] == pytest.approx(below_capital, rel=1e-9)


# Error rates of prompts


@pytest.mark.parametrize("bar", only_fast([0.5, 0.8, 0.9, 0.95], 0.9))
@pytest.mark.parametrize("spread", [0.0, 0.05])
def test_a_prompt_at_the_bar_fails_no_more_often_than_declared(bar, spread):
    """All cells exactly at the bar is the hardest case of a prompt that holds."""
    bar = min(bar, 1 - spread)
    values = simulated([bar] * 4, seed=int(100 * bar), spread=spread)
    assert sequential.is_below(values, bar, ERROR).any(axis=-1).mean() <= LIMIT


@pytest.mark.parametrize("bar", [0.5, 0.8, 0.9])
def test_a_prompt_with_a_cell_below_the_bar_passes_no_more_often_than_declared(bar):
    """One cell just below, the others perfect: the hardest case of a prompt that does not hold."""
    values = simulated([1.0, bar - 1e-6, 1.0], seed=int(1000 * bar))
    assert sequential.holds(values, bar, ERROR).any(axis=-1).mean() <= LIMIT


@pytest.mark.slow
def test_scores_between_0_and_1_err_no_more_often_than_declared():
    draws = np.random.default_rng(3)
    values = draws.beta(8, 2, size=(CHECKS, BUDGET, 3))  # mean 0.8
    assert sequential.is_below(values, 0.8, ERROR).any(axis=-1).mean() <= LIMIT
    assert sequential.holds(values, 0.8, ERROR).any(axis=-1).mean() <= LIMIT


def test_conversations_that_take_turns_err_no_more_often_than_declared():
    """The user's scripts are used once each before any is used again, so that conversations are not
    independent: after hard ones, easy ones are left.
    """
    draws = np.random.default_rng(6)
    shifts = np.tile(np.repeat([-0.15, 0.15], 12), (CHECKS, BUDGET // 24, 1))
    shifts = draws.permuted(shifts, axis=-1).reshape(CHECKS, BUDGET, 1)
    values = (draws.random((CHECKS, BUDGET, 3)) < 0.8 + shifts).astype(float)
    assert sequential.is_below(values, 0.8, ERROR).any(axis=-1).mean() <= LIMIT
    assert sequential.holds(values, 0.8, ERROR).any(axis=-1).mean() <= LIMIT


def test_several_prompts_share_the_declared_error():
    """Five prompts at the bar, each with a fifth of the error; any wrong verdict counts."""
    wrong = np.zeros(CHECKS, dtype=bool)
    for prompt in range(5):
        wrong |= sequential.is_below(simulated([0.8] * 2, seed=50 + prompt), 0.8, ERROR / 5).any(
            axis=-1
        )
    assert wrong.mean() <= LIMIT


# Error rates of rules and falls


def by_rule(values):
    """[conversation, rule and round] as [rule, conversation, round]."""
    return values.reshape(len(values), 2, -1).swapaxes(0, 1)


def reported_falls(now, before):
    """Whether the prompts fell at any time [check], and which rules did [check, rule]."""
    paired_checks = zip(now, before, strict=False)
    pairs = [sequential.falls(by_rule(new), by_rule(old), ERROR) for new, old in paired_checks]
    rules = np.array([rules.any(axis=1) for _, rules in pairs])
    return np.array([prompt.any() for prompt, _ in pairs]), rules


def test_a_false_fall_is_reported_no_more_often_than_declared():
    now, before = simulated([0.7] * 4, seed=7), simulated([0.7] * 4, seed=8)
    is_fall, rules = reported_falls(now, before)
    assert is_fall.mean() <= LIMIT and rules.any(axis=1).mean() <= LIMIT
    is_fall, rules = reported_falls(simulated([0.7, 0.7, 0.7, 0.35], seed=9, count=300), before)
    assert is_fall.mean() > 0.9 and rules[:, 1].mean() > 0.9 and not rules[~is_fall].any()


def test_a_rule_that_has_not_fallen_is_named_no_more_often_than_declared():
    """Beside one that certainly has fallen, the hardest case; nor does a gain hide a fall."""
    before = simulated([0.7, 0.7, 0.9, 0.9], seed=12)
    is_fall, rules = reported_falls(simulated([0.7, 0.7, 0.1, 0.1], seed=13), before)
    assert is_fall.all() and rules[:, 1].all() and rules[:, 0].mean() <= LIMIT
    before = simulated([0.2, 0.2, 0.9, 0.9], seed=14, count=300)
    is_fall, rules = reported_falls(simulated([0.9, 0.9, 0.2, 0.2], seed=15, count=300), before)
    assert is_fall.all() and rules[:, 1].all() and not rules[:, 0].any()


@pytest.mark.parametrize(("failing", "length"), [(0.5, 8), (0.75, 27)])
def test_a_rule_at_the_bar_is_named_no_more_often_than_declared(failing, length):
    """Beside a rule that fails. The interval of each round by itself does so too often."""
    means = [failing] * 8 + [0.9] * 8
    values = simulated(means, seed=int(100 * failing), count=600, length=length)
    fails = sequential.is_below(values, 0.9, ERROR).any(axis=-1)
    named = np.array(
        [sequential.rules_below(by_rule(check), 0.9, ERROR)[1].any(axis=1) for check in values]
    )
    assert named[:, 1].mean() <= ERROR
    assert named[fails, 0].mean() > 0.9, "the rule that fails is named"
    alone = sequential.capital_below(values[..., 8:], 0.9) >= -math.log(ERROR)
    assert alone.any(axis=(1, 2)).mean() > 1.2 * ERROR


# When a verdict is certain

FAR_FROM_THE_BAR = [
    (1.0, sequential.PASS, 45),
    (0.98, sequential.PASS, 125),
    (0.5, sequential.FAIL, 8),
    (0.2, sequential.FAIL, 5),
    (0.0, sequential.FAIL, 3),
]


@pytest.mark.parametrize(("mean", "verdict", "at_most"), FAR_FROM_THE_BAR)
def test_few_conversations_are_needed_far_from_the_bar(mean, verdict, at_most):
    values = simulated([mean] * 4, seed=21, count=200, length=200)
    decisions = [sequential.decide(check, 0.9, ERROR) for check in values]
    assert np.mean([decision.verdict == verdict for decision in decisions]) >= 0.9
    assert np.mean([decision.after for decision in decisions]) <= at_most


def test_a_certain_verdict_does_not_change():
    """Once it is certain, more conversations or a later look change nothing."""
    values = simulated([0.4, 0.9], seed=31, count=1)[0]
    final = sequential.decide(values, 0.8, ERROR)
    assert final.verdict == sequential.FAIL
    early = sequential.decide(values[: final.after], 0.8, ERROR)
    assert (early.verdict, early.after) == (sequential.FAIL, final.after)
    assert np.array_equal(early.below, final.below)
    assert sequential.decide(values[: final.after - 1], 0.8, ERROR).verdict == sequential.UNDECIDED
    assert final.below[0] > -math.log(ERROR) > final.below[1]


def test_missing_scores_leave_a_verdict_undecided():
    values = np.ones((60, 2))
    assert sequential.decide(values, 0.9, ERROR).verdict == sequential.PASS
    values[:, 1] = math.nan
    assert sequential.decide(values, 0.9, ERROR).verdict == sequential.UNDECIDED
    assert sequential.decide(np.empty((0, 3)), 0.9, ERROR).after == 0
    assert sequential.decide(np.empty((0, 3)), 0.9, ERROR).verdict == sequential.UNDECIDED


# Bounds


@pytest.mark.slow
def test_bounds_contain_the_mean_at_every_look():
    values = simulated([0.8], seed=41, count=400, length=60)[..., 0]
    missed = [0, 0]
    for check in values:
        ends = [sequential.bounds(check[:after], ERROR) for after in (5, 15, 30, 60)]
        missed[0] += any(low > 0.8 for low, _ in ends)
        missed[1] += any(high < 0.8 for _, high in ends)
    allowed = 400 * ERROR + 2.33 * math.sqrt(400 * ERROR * (1 - ERROR))
    assert max(missed) <= allowed
    assert sequential.bounds(np.array([]), ERROR) == (pytest.approx(0), pytest.approx(1))
    low, high = sequential.bounds(np.ones(40), ERROR)
    assert low > 0.9 and high == pytest.approx(1)


def test_a_bound_agrees_with_the_verdict():
    values = np.r_[np.ones(30), 0, np.ones(30)]
    low, _ = sequential.bounds(values, ERROR)
    assert sequential.holds(values[:, None], low - 1e-6, ERROR).any()
    assert not sequential.holds(values[:, None], low + 1e-6, ERROR).any()


def test_a_lower_bound_never_falls_with_more_conversations():
    """Otherwise an earlier verdict could contradict the interval shown beside it."""
    values = np.r_[np.ones(30), np.zeros(8)]
    assert sequential.bounds(values, ERROR)[0] == sequential.bounds(values[:30], ERROR)[0] > 0.87
    lows = [sequential.bounds(values[:after], ERROR)[0] for after in range(len(values) + 1)]
    assert lows == sorted(lows)
