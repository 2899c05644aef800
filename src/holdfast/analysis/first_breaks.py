"""After how many turns a rule is first broken in a dialog, as Kaplan and Meier (1958) estimate it.

    dialogs that first break it in turns 2 and 5, and one that ends at turn 3 without breaking it
    -> FirstBroken(turns=(2, 5), unbroken=(0.67, 0.0), median_turn=5, ...)

A dialog that ends without breaking the rule says only that the rule held until then.
"""

from __future__ import annotations

import warnings

import numpy as np

from holdfast.analysis.rule_scores import RuleScores
from holdfast.measures.scores import MIN_KEPT_SCORE
from holdfast.records.logs_summary import FirstBroken


def estimate_first_break(scores: RuleScores) -> FirstBroken:
    """Estimates the Kaplan-Meier curve of the first turn that breaks the rule."""
    is_broken = scores.scores < MIN_KEPT_SCORE
    dialogs, first, counts = np.unique(scores.dialogs, return_index=True, return_counts=True)
    last = first + counts - 1  # the scores of a dialog are consecutive
    dialogs_with_break, first_break = np.unique(scores.dialogs[is_broken], return_index=True)
    break_turns = scores.positions[is_broken][first_break].astype(int)
    end_turns = scores.positions[last[~np.isin(dialogs, dialogs_with_break)]].astype(int)
    if not len(break_turns):
        return FirstBroken(
            dialogs=len(dialogs), broken=0, median_turn=None, turns=(), unbroken=(), low=(), high=()
        )
    return _kaplan_meier(break_turns, end_turns)


def _kaplan_meier(break_turns: np.ndarray, end_turns: np.ndarray) -> FirstBroken:
    """The Kaplan-Meier curve of dialogs.

    Args:
        break_turns: the first turn that breaks the rule, of each dialog that has one.
        end_turns: the last turn of each other dialog.
    """
    from scipy.stats import CensoredData, ecdf

    curve = ecdf(CensoredData(uncensored=break_turns, right=end_turns)).sf
    with warnings.catch_warnings():  # scipy warns where no dialog is left, so no interval exists
        warnings.simplefilter("ignore", RuntimeWarning)
        interval = curve.confidence_interval(method="log-log")
    events = np.isin(curve.quantiles, break_turns)
    shares = curve.probabilities[events]
    numbers = curve.quantiles[events].astype(int)
    half = np.flatnonzero(shares <= 0.5)
    low = interval.low.probabilities[events]
    high = interval.high.probabilities[events]
    is_undefined = np.isnan(high)  # where no dialog is left; the last bound still holds there
    high[is_undefined] = high[~is_undefined][-1] if not is_undefined.all() else 1.0
    median = int(numbers[half[0]]) if len(half) else None
    return FirstBroken(
        dialogs=len(break_turns) + len(end_turns),
        broken=len(break_turns),
        median_turn=median,
        turns=tuple(map(int, numbers)),
        unbroken=tuple(map(float, shares)),
        low=tuple(map(float, np.nan_to_num(low, nan=0.0))),
        high=tuple(map(float, np.maximum(shares, high))),
        estimated=median is not None and bool((end_turns < median).any()),
    )
