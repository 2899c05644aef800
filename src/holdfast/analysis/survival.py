"""After how many turns dialogs first break a rule (Kaplan and Meier 1958)."""

import warnings
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Survival:
    """The share of dialogs in which a rule is unbroken after each turn; a dialog that ends without
    breaking the rule is censored.
    """

    turns: tuple[int, ...]  # the turns at which some dialog first breaks the rule, ascending
    share: tuple[float, ...]  # [turn], the share unbroken after it
    low: tuple[float, ...]  # [turn], the 95% interval up to `high`, on the log(-log) scale
    high: tuple[float, ...]
    broken: int  # dialogs that break the rule
    # the first turn after which at most half are unbroken; None if that is never reached
    median: int | None
    estimated: bool = False  # whether some dialogs ended unbroken before the median


def survival_of(dialogs: np.ndarray, turns: np.ndarray, broken: np.ndarray) -> Survival:
    """The Kaplan-Meier curve of the first turn that breaks a rule.

    Args:
        dialogs: [score], the dialog that each score is of; those of a dialog follow each other.
        turns: [score], the number of its turn.
        broken: [score] bool, whether the turn broke the rule.
    """
    rows, first, counts = np.unique(dialogs, return_index=True, return_counts=True)
    last = first + counts - 1
    breaking, first_break = np.unique(dialogs[broken], return_index=True)
    broken_at = turns[broken][first_break].astype(int)
    ended_at = turns[last[~np.isin(rows, breaking)]].astype(int)
    if not len(broken_at):
        return Survival(turns=(), share=(), low=(), high=(), broken=0, median=None)
    from scipy.stats import CensoredData, ecdf

    curve = ecdf(CensoredData(uncensored=broken_at, right=ended_at)).sf
    with warnings.catch_warnings():  # there is no interval once no dialog is left
        warnings.simplefilter("ignore", RuntimeWarning)
        interval = curve.confidence_interval(method="log-log")
    events = np.isin(curve.quantiles, broken_at)
    shares = curve.probabilities[events]
    numbers = curve.quantiles[events].astype(int)
    half = np.flatnonzero(shares <= 0.5)
    low, high = (side.probabilities[events] for side in (interval.low, interval.high))
    undefined = np.isnan(high)  # once no dialog is left; the last bound still holds
    high[undefined] = high[~undefined][-1] if not undefined.all() else 1.0
    median = int(numbers[half[0]]) if len(half) else None
    return Survival(
        turns=tuple(map(int, numbers)),
        share=tuple(map(float, shares)),
        low=tuple(map(float, np.nan_to_num(low, nan=0.0))),
        high=tuple(map(float, np.maximum(shares, high))),
        broken=len(broken_at),
        median=median,
        estimated=median is not None and bool((ended_at < median).any()),
    )
