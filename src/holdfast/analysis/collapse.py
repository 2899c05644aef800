"""Conversations that have collapsed: turns cut at the token limit, repeated or looping, counted.

Drift is a model letting go of its prompt in a conversation. Where the conversation itself has
broken down, a lost probe may mean no more than that, so both are reported side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.analysis.series import Series
from holdfast.drift.dialog import with_repetition
from holdfast.drift.dialogs import GIVEN
from holdfast.measures.repetition import NO_NEWS_FROM, Repeats

COUNTED = ("cut", "own", "other", "loops", "broken")
MANY_CUT = 0.25  # share of turns from which a run says so
MANY_BROKEN = 0.2
LASTING = 3  # broken turns that make a collapse


@dataclass(frozen=True)
class Turn:
    """A turn that a model wrote.

    Args:
        round: from 1.
        cut: whether it ended at the token limit.
        repetition: how much of it is repeated.
    """

    round: int
    cut: bool
    repetition: Repeats


@dataclass(frozen=True)
class Collapse:
    """The turns of a series, counted.

    Attributes:
        turns: that models wrote.
        counts: of these, by `COUNTED`: how many ended at the token limit ("cut"), repeat their own
            speaker, the other one or themselves ("loops"), or do any of these three ("broken").
        collapsed: conversation -> the round from which on it has collapsed.
        conversations: all of them.
    """

    turns: int
    counts: Mapping[str, int]
    collapsed: Mapping[int, int]
    conversations: int

    def share(self, name: str) -> float:
        """Of the turns, from 0 to 1."""
        return self.counts[name] / self.turns if self.turns else 0.0

    @property
    def notable(self) -> bool:
        """Whether so many turns are cut or broken that the run says so."""
        return self.share("cut") >= MANY_CUT or self.share("broken") >= MANY_BROKEN


def collapse_of(series: Series) -> Collapse:
    """The turns of a series, counted."""
    dialogs = [model_turns(record) for record in series.records]
    turns = [turn for dialog in dialogs for turn in dialog]
    started = [
        (int(number), collapsed_from(dialog))
        for number, dialog in zip(series.conversations, dialogs, strict=True)
    ]
    return Collapse(
        turns=len(turns),
        counts={
            "cut": sum(turn.cut for turn in turns),
            **{
                name: sum(getattr(turn.repetition, name) >= NO_NEWS_FROM for turn in turns)
                for name in COUNTED[1:4]
            },
            "broken": sum(turn.repetition.broken for turn in turns),
        },
        collapsed={number: first for number, first in started if first is not None},
        conversations=len(dialogs),
    )


def model_turns(record: Mapping[str, Any]) -> list[Turn]:
    """The turns of a recorded dialog that a model wrote: all but the starter, and what a file gave
    the user to say. Of a record of an earlier version, repetition is measured on its texts.
    """
    turns = record["turns"]
    if any("repeats" not in turn for turn in turns):
        turns = with_repetition(turns)
    return [
        Turn(turn["round"], turn["stop_reason"] == "length", Repeats(**turn["repeats"]))
        for turn in turns[1:]
        if turn["speaker"] == "agent" or turn["stop_reason"] not in GIVEN
    ]


def collapsed_from(turns: Sequence[Turn]) -> int | None:
    """The round from which on a conversation has collapsed; None where it has not.

    It is the round of the first broken turn such that, of this turn and all that follow, at least
    half are broken, and at least `LASTING`.
    """
    broken = [turn.repetition.broken for turn in turns]
    for start, turn in enumerate(turns):
        rest = broken[start:]
        if broken[start] and sum(rest) >= max(LASTING, len(rest) / 2):
            return turn.round
    return None


def without_collapsed(series: Series, collapse: Collapse) -> Series:
    """The series without the conversations that have collapsed."""
    import numpy as np

    return series.rows(~np.isin(series.conversations, list(collapse.collapsed)))
