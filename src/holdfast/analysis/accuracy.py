"""Accuracy as IFEval counts it, where all rules of a prompt are scored on one reply.

A prompt is followed where every one of its instructions is (prompt level); instructions count each
by itself, whatever prompt they are of (instruction level; Zhou et al. 2023, section 3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.analysis.rules import KEPT
from holdfast.analysis.series import Series
from holdfast.analysis.statistics import (
    NOTHING,
    Estimate,
    bounds_of,
    cell_means,
    estimate_columns,
    resampled_means,
)


@dataclass(frozen=True)
class Accuracy:
    """The accuracies of a series.

    Attributes:
        prompt_level: by round, over conversations: how many of the replies follow every
            instruction of their prompt.
        instruction_level: by round: how many of all instructions are followed; its interval is over
            conversations too, and there is no standard deviation.
    """

    prompt_level: tuple[Estimate, ...]
    instruction_level: tuple[Estimate, ...]


def accuracy_of(series: Series) -> Accuracy | None:
    """Both accuracies by round; None where a prompt's rules are scored on replies of their own, or
    no prompt gives several.
    """
    stability = [probe for record in series.records for probe in _of_agent(record["probes"])]
    if not any("reply_of" in probe for probe in stability):
        return None
    rows = [_replies(record) for record in series.records]
    if any(row is None for row in rows):
        return None
    replies = [
        (index, number - 1, kept) for index, row in enumerate(rows) for number, kept in row or ()
    ]

    def table(count: Callable[[list[bool]], float]) -> np.ndarray:
        """[conversation, round], the mean over its replies."""
        cells = ((index, column, float(count(kept))) for index, column, kept in replies)
        return cell_means(cells, (len(rows), series.rounds))

    prompt_level = estimate_columns(table(all))
    return Accuracy(tuple(prompt_level), tuple(_shares(table(sum), table(len))))


def _replies(record: dict[str, Any]) -> list[tuple[int, list[bool]]] | None:
    """The round of every reply that was scored by all rules of its prompt, and which of them it
    keeps; None where a rule has a reply of its own.
    """
    probes = _of_agent(record["probes"])
    rules = {probe.get("rule") for probe in (*probes, *_of_agent(record.get("unanswered", ())))}
    replies: dict[tuple[int, int, str | None], list[bool]] = {}
    for probe in probes:
        key = probe["round"], probe["probe"], probe.get("reply_of", probe.get("rule"))
        replies.setdefault(key, []).append(probe["score"] >= KEPT)
    if len({rule for _, _, rule in replies}) > 1:
        return None
    return [(number, kept) for (number, *_), kept in replies.items() if len(kept) == len(rules)]


def _of_agent(probes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [probe for probe in probes if probe["kind"] == "stability"]


def _shares(followed: np.ndarray, given: np.ndarray) -> list[Estimate]:
    """By round, all that was followed among all that was asked; [conversation, round]."""
    resampled = resampled_means(followed) / resampled_means(given)
    shares = []
    for column in range(given.shape[1]):
        there = ~np.isnan(given[:, column])
        count = int(there.sum())
        if not count:
            shares.append(NOTHING)
            continue
        share = float(followed[there, column].sum() / given[there, column].sum())
        low, high = bounds_of(resampled[:, column]) if count > 1 else (None, None)
        shares.append(Estimate(count, share, None, low, high))
    return shares
