"""Prompt or precedent: the scores of next replies after kept and broken histories.

The unit is the conversation, which counts with the mean over its rules. A rule counts only if its
mean score is at least `CLEAR` in the kept history and at most 1 - `CLEAR` in the broken one. A rule
that the model cannot keep, or keeps whatever it is told, shows nothing.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from holdfast.analysis.statistics import (
    ERROR,
    SCORES,
    ByProbe,
    Estimate,
    estimate,
    means_over_probes,
    paired_difference,
    shared_means,
)
from holdfast.records.precedent_records import History, PrecedentChat

CLEAR = 0.8


@dataclass(frozen=True)
class Cell:
    """The score of next replies, with a number of replies of one history in view."""

    history: str  # "kept" or "broken"
    seen: int  # how many replies of the history were in view
    prompted: bool  # whether the system prompt was in view
    score: Estimate


class _CellKey(NamedTuple):
    """The context that the replies of a `Cell` have in view, in the fields of that name."""

    history: str
    seen: int
    prompted: bool


@dataclass(frozen=True)
class DepthEffects:
    """The effects of prompt and precedent with a number of earlier replies in view.

    Each is a paired difference of scores. The effects of the prompt are None under a method, where
    every reply has the prompt in view.
    """

    seen: int
    prompt_after_kept: Estimate | None  # with the system prompt in view minus without it
    prompt_after_broken: Estimate | None
    precedent: Estimate  # kept minus broken history, with the prompt in view


@dataclass(frozen=True)
class Precedent:
    """The results of one method on some of the rules."""

    method: str
    rules: str  # "all", or the category
    used: int  # how many rules count, over all conversations
    of: int  # how many rules there are, over all conversations
    cells: tuple[Cell, ...]
    depths: tuple[DepthEffects, ...]


def precedent_of(chats: Sequence[PrecedentChat], error: float = ERROR) -> list[Precedent]:
    """Returns the results of every method: over all rules, then by category if it has several.

    Args:
        error: the probability with which a verdict on an effect may be wrong.
    """
    results = []
    for method in dict.fromkeys(chat.method for chat in chats):
        group = [chat for chat in chats if chat.method == method]
        results.append(_compare_histories(method, "all", group, error))
        categories = dict.fromkeys(chat.agent.category for chat in group)
        if len(categories) > 1:
            for category in categories:
                subgroup = [chat for chat in group if chat.agent.category == category]
                results.append(_compare_histories(method, str(category), subgroup, error))
    return results


def clear_rules(chat: PrecedentChat) -> list[str]:
    """Returns the rules that the kept history clearly keeps and the broken one clearly breaks."""
    return [
        rule
        for rule in chat.kept.scores[0]
        if _mean_score(chat.kept, rule) >= CLEAR and _mean_score(chat.broken, rule) <= 1 - CLEAR
    ]


def _mean_score(history: History, rule: str) -> float:
    """Returns a rule's mean score in a history; NaN, which no comparison accepts, if none of its
    replies could be scored.
    """
    return _mean([scores[rule] for scores in history.scores])


def _compare_histories(
    method: str, rules: str, chats: Sequence[PrecedentChat], error: float
) -> Precedent:
    """Compares histories of replies under one method: kept or broken, long or short."""
    clear = [clear_rules(chat) for chat in chats]
    prompted = {reply.prompted for chat in chats for reply in chat.next_replies}
    depths = sorted({reply.seen for chat in chats for reply in chat.next_replies})
    keys = itertools.starmap(
        _CellKey, itertools.product(("kept", "broken"), depths, sorted(prompted, reverse=True))
    )
    # by cell and rule, the score in each conversation, [conversation]
    scores = {key: _scores_of_cell(chats, clear, key) for key in keys}

    def effect(key: _CellKey, baseline: _CellKey) -> Estimate:
        """Estimates by how much a cell scores more, on the rules that both have a score of."""
        return paired_difference(*shared_means(scores[key], scores[baseline]), error=error)

    def prompt_effect(history: str, seen: int) -> Estimate | None:
        if False not in prompted:
            return None
        return effect(_CellKey(history, seen, True), _CellKey(history, seen, False))

    return Precedent(
        method=method,
        rules=rules,
        used=sum(map(len, clear)),
        of=sum(len(chat.kept.scores[0]) for chat in chats),
        cells=tuple(
            Cell(**key._asdict(), score=estimate(means_over_probes(by_rule), SCORES))
            for key, by_rule in scores.items()
        ),
        depths=tuple(
            DepthEffects(
                seen=seen,
                prompt_after_kept=prompt_effect("kept", seen),
                prompt_after_broken=prompt_effect("broken", seen),
                precedent=effect(_CellKey("kept", seen, True), _CellKey("broken", seen, True)),
            )
            for seen in depths
        ),
    )


def _scores_of_cell(
    chats: Sequence[PrecedentChat], clear: Sequence[Sequence[str]], key: _CellKey
) -> ByProbe:
    """Returns the score of each clear rule in the replies of a cell, [conversation] each.

    NaN where it has none.

    Args:
        clear: the rules that count in each conversation.
    """
    no_scores = np.full(len(chats), np.nan)
    scores = {rule: no_scores.copy() for rules in clear for rule in rules} or {"": no_scores}
    for row, (chat, rules) in enumerate(zip(chats, clear, strict=True)):
        for reply in chat.next_replies:
            if _CellKey(reply.history, reply.seen, reply.prompted) != key:
                continue
            for rule in rules:
                score = reply.scores[rule]
                scores[rule][row] = np.nan if score is None else score
    return scores


def _mean(scores: Sequence[float | None]) -> float:
    """Returns the mean of the scores that are not None; NaN if there are none."""
    present = [score for score in scores if score is not None]
    return float(np.mean(present)) if present else float("nan")
