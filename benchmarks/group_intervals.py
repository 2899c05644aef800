"""Intervals over groups of conversations that are alike, such as those of one family of prompts.

For example, three conversations about tea and one about ships are two groups, and an interval over
groups is that of two independent values, not of four:

    interval_over_groups(np.array([0.2, 0.3, 0.4, 0.9]), ["tea", "tea", "tea", "ships"])
    -> {"mean": 0.45, "low": 0.305, "high": 0.8567}
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from holdfast.analysis.resampling import resample_means


def interval_over_groups(values: np.ndarray, groups: Sequence[Hashable]) -> dict[str, float]:
    """The mean of the finite values, [conversation], and its 95% interval over groups.

    Args:
        groups: the group of each conversation.
    """
    finite = np.flatnonzero(np.isfinite(values))
    values = values[finite]
    groups = [groups[index] for index in finite]
    low, high = np.quantile(resample_groups(values[:, None], groups), [0.025, 0.975])
    return {
        "mean": round(float(values.mean()), 4),
        "low": round(float(low), 4),
        "high": round(float(high), 4),
    }


def resample_groups(values: np.ndarray, groups: Sequence[Hashable]) -> np.ndarray:
    """The mean of each column in resamples of whole groups, [resample, column].

    Each conversation counts the same, so that a large group counts for more than a small one.

    Args:
        values: [conversation, column].
        groups: the group of each conversation.
    """
    names = list(dict.fromkeys(groups))
    is_member = np.array([[group == name for group in groups] for name in names], dtype=float)
    sums_and_sizes = np.column_stack([is_member @ values, is_member.sum(1)])
    means = resample_means(sums_and_sizes)
    return means[:, :-1] / means[:, -1:]
