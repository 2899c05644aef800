"""Makes verdicts that may be checked after every conversation, at a declared error rate.

A verdict is a bet (Waudby-Smith and Ramdas, "Estimating means of bounded random variables by
betting", 2023). To show that the mean lies above a bar, a gambler stakes part of a capital of 1 on
every conversation, at odds that are fair or worse if the mean is at most the bar. The capital is
then a supermartingale, and ever reaches 1 / error with a probability of at most `error` (Ville's
inequality), so nothing is lost by stopping as soon as it has grown enough. Values lie in [0, 1],
and every conversation has the same mean whatever came before it.

The capital is split equally among several gamblers, each staking a fixed fraction. The fractions
follow the arcsine law (Krichevsky and Trofimov), so one of them does about as well as the best in
hindsight.

Arrays are [..., conversation, cell], a cell being one rule in one round; they are NaN where a probe
was not answered, and nobody bets there. Capitals are given as logarithms, after each conversation.
"""

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

CheckVerdict = Literal["pass", "fail", "undecided"]
PASS: Final = "pass"
FAIL: Final = "fail"
UNDECIDED: Final = "undecided"
_GAMBLERS = 16
_STAKES = np.sin(np.pi * (2 * np.arange(_GAMBLERS) + 1) / (4 * _GAMBLERS)) ** 2
_MAX_LOG_CAPITAL = 600.0  # cap on a capital's logarithm, so that sums of capitals stay finite
_STEPS = 30  # bisection steps on the way to a bound
_PRECISION = 1e-8  # of a bound


@dataclass(frozen=True)
class Decision:
    """The decision on one prompt."""

    verdict: CheckVerdict
    after: int  # how many conversations the decision took; all of them if undecided
    below: np.ndarray  # [cell], the capital of a bet that the cell's mean lies below the bar


def decide(
    values: np.ndarray, bar: float, error: float, at_best: np.ndarray | None = None
) -> Decision:
    """Decides whether a prompt holds, that is, whether every cell's mean is at least the bar.

    Args:
        values: [conversation, cell], in the order of the conversations' numbers.
        bar: above 0 and below 1.
        error: upper bound on the probability of a wrong verdict, whenever one stops: that a prompt
            which holds fails, or that one which does not hold passes.
        at_best: the values with the best possible score in place of each one that was lost. A
            prompt fails only by these. None if no value was lost.
    """
    at_best = values if at_best is None else at_best
    is_certain: dict[CheckVerdict, np.ndarray] = {
        PASS: holds(values, bar, error),
        FAIL: is_below(at_best, bar, error),
    }
    first_certain: dict[CheckVerdict, int] = {
        word: int(np.argmax(certain)) for word, certain in is_certain.items() if certain.any()
    }
    # if both become certain at some point, the first one counts
    verdict = min(first_certain, key=lambda word: first_certain[word], default=None)
    after = len(values) if verdict is None else first_certain[verdict] + 1
    below = capital_below(at_best[:after], bar)
    final_capital = below[-1] if after else np.zeros(values.shape[1])
    return Decision(verdict or UNDECIDED, after, final_capital)


def conversations_needed(values: np.ndarray, bar: float, error: float, limit: int) -> int | None:
    """Returns how many conversations like these would decide.

    None if `limit` would not, or if there are none yet.
    """
    if not len(values):
        return None
    repeated_values = np.tile(values, (math.ceil(limit / len(values)), 1))[:limit]
    decision = decide(repeated_values, bar, error)
    return None if decision.verdict == UNDECIDED else decision.after


def holds(values: np.ndarray, bar: float, error: float) -> np.ndarray:
    """Whether it is certain, after each conversation, that every cell's mean lies above the bar:
    [..., conversation].

    Each cell must be certain by itself. So if any cell is not above the bar, it prevents this, with
    the same error.
    """
    certain: np.ndarray = capital_above(values, bar).min(axis=-1) >= -math.log(error)
    return certain


def is_below(values: np.ndarray, bar: float, error: float) -> np.ndarray:
    """Whether it is certain, after each conversation, that some cell's mean lies below the bar:
    [..., conversation].

    The test uses the mean of the cells' capitals. If all cells hold, it is a supermartingale too,
    however the cells depend on one another, so no correction for several cells is needed.
    """
    return _log_mean(capital_below(values, bar)) >= -math.log(error)


def rules_below(values: np.ndarray, bar: float, error: float) -> tuple[np.ndarray, np.ndarray]:
    """Whether it is certain, after each conversation, that means lie below the bar in some round:
    of any rule of the prompt, and of each rule by itself.

    The prompt's capital is the mean of its rules' capitals, and a rule's the mean of its rounds'.
    So the first answer is that of `is_below`. A rule is named if every set of rules that it is in
    has a sufficient mean capital (a closed test: Vovk and Wang, "E-values: calibration, combination
    and applications", 2021). So the error holds for all rules of the prompt together.

    Args:
        values: [rule, conversation, round].
        error: upper bound on the probability that any rule is ever wrongly named.

    Returns:
        Whether any rule is below, [conversation], and whether each rule is, [rule, conversation].
    """
    by_rule = np.exp(np.minimum(_log_mean(capital_below(values, bar)), _MAX_LOG_CAPITAL))
    prompt: np.ndarray = by_rule.mean(axis=0) >= 1 / error
    return prompt, _lowest_means(by_rule) >= 1 / error


def falls(now: np.ndarray, before: np.ndarray, error: float) -> tuple[np.ndarray, np.ndarray]:
    """Whether it is certain, after each conversation, that rules are kept less than before in some
    round: any rule of the prompt, and each by itself.

    Args:
        now, before: [rule, conversation, round]; conversations with the same index are compared. If
            they are of the same pair of prompts with the same draws, they differ less, and a fall
            is seen earlier; if they are not, the verdict is still valid.
        error: upper bound on the probability that any rule is ever wrongly reported as fallen.

    Returns:
        Whether the prompt fell, [conversation], and whether each rule did, [rule, conversation].
    """
    return rules_below((now - before + 1) / 2, 0.5, error)


def _lowest_means(capitals: np.ndarray) -> np.ndarray:
    """Returns the lowest mean of any set of rules that contains each rule, [rule, conversation]."""
    lowest = np.empty_like(capitals)
    sizes = np.arange(1, len(capitals) + 1)[:, None]
    for index, capital in enumerate(capitals):
        other_capitals = np.sort(np.delete(capitals, index, axis=0), axis=0)
        sums = capital + np.cumsum(
            np.concatenate([np.zeros((1, len(capital))), other_capitals]), axis=0
        )
        lowest[index] = (sums / sizes).min(axis=0)
    return lowest


def capital_above(values: np.ndarray, bar: float) -> np.ndarray:
    """Returns the capital of a bet that each cell's mean lies above the bar.

    If it does not, the capital is not expected to grow.
    """
    surplus = np.nan_to_num(values - bar)  # where nothing was measured, nothing is won or lost
    growth = np.log1p(surplus[..., None] * (_STAKES / bar))
    return _log_mean(np.cumsum(growth, axis=-3))


def capital_below(values: np.ndarray, bar: float) -> np.ndarray:
    """Returns the capital of a bet that each cell's mean lies below the bar."""
    return capital_above(1 - values, 1 - bar)


def bounds(values: np.ndarray, error: float) -> tuple[float, float]:
    """Returns a lower and an upper bound of the mean.

    Further conversations only ever narrow the interval. Each end by itself is wrong with
    probability `error` at most; if the two cross, one of them is wrong, and they are swapped.

    Args:
        values: [conversation], NaN where nothing was measured.
        error: upper bound, for each end, on the probability that the mean is ever beyond it.
    """
    low = _lower_bound(values, error)
    high = 1 - _lower_bound(1 - values, error)
    return min(low, high), max(low, high)


def verdict_at(bar: float, low: float, high: float) -> CheckVerdict:
    """Returns the verdict by the bounds of a mean alone; undecided if the bar is between them."""
    if low >= bar - _PRECISION:
        return PASS
    if bar < 1 and high <= bar + _PRECISION:
        return FAIL
    if bar >= 1 and high < bar - _PRECISION:  # a mean of 1 reaches a bar of 1
        return FAIL
    return UNDECIDED


def _log_mean(logarithms: np.ndarray) -> np.ndarray:
    """Returns the logarithm of the mean over the last axis, given logarithms."""
    largest = logarithms.max(axis=-1, keepdims=True)
    # terms below exp(-80) of the largest add nothing, and are slow to compute
    scaled_means = np.exp(np.maximum(logarithms - largest, -80)).mean(axis=-1)
    means: np.ndarray = np.log(scaled_means) + largest[..., 0]
    return means


def _lower_bound(values: np.ndarray, error: float) -> float:
    """Returns the highest bar that the mean certainly exceeded after any of the conversations."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        bar = (low + high) / 2
        if holds(values[:, None], bar, error).any():
            low = bar
        else:
            high = bar
    return low
