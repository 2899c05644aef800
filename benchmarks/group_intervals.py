"""Intervals over groups of conversations that are alike, such as those of one family of prompts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from holdfast.analysis.resampling import resample_means


def interval_over_groups(values: np.ndarray, groups: Sequence[Hashable]) -> dict:
    """The mean of the finite values, [conversation], and its 95% interval over groups.

    Args:
        groups: the group of each conversation.
    """
    finite = np.flatnonzero(np.isfinite(values))
    values = values[finite]
    groups = [groups[index] for index in finite]
    low, high = np.quantile(resample_groups(values[:, None], groups), [0.025, 0.975])
    return {"mean": round(float(values.mean()), 4), "low": round(low, 4), "high": round(high, 4)}


def resample_groups(values: np.ndarray, groups: Sequence[Hashable]) -> np.ndarray:
    """The column means of values, [conversation, column], in each resample of whole groups,
    [resample, column].
    """
    names = list(dict.fromkeys(groups))
    is_member = np.array([[group == name for group in groups] for name in names], dtype=float)
    sums_and_sizes = np.column_stack([is_member @ values, is_member.sum(1)])
    means = resample_means(sums_and_sizes)
    return means[:, :-1] / means[:, -1:]
