"""Conversations that broke down: turns that are cut or repeated, and where a dialog collapsed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.analysis.series import Series
from holdfast.drift.cases import Persona
from holdfast.drift.dialog_records import with_repetition
from holdfast.records import Conversation, LogDialog, Participant, Repeated, Turn
from holdfast.records.conversation import GIVEN, NO_NEWS_FROM

Dialog = Conversation | LogDialog

COUNTED = ("cut", "own", "other", "loops", "broken")
CUT_SHARE_WARNING = 0.25  # share of turns from which a run reports it
BROKEN_SHARE_WARNING = 0.2
COLLAPSED_TURNS = 3  # the fewest broken turns that make a collapse


@dataclass(frozen=True)
class ModelTurn:
    """A turn that a model wrote, whether it was cut at the token limit, and what it repeats."""

    round: int
    cut: bool
    repetition: Repeated


@dataclass(frozen=True)
class Collapse:
    """Counts of the turns in a series that models wrote."""

    turns: int  # all of them
    counts: Mapping[str, int]  # by `COUNTED`: cut, repeats a speaker, loops; broken: any repetition
    collapsed: Mapping[int, int]  # conversation -> the round from which it is collapsed
    conversations: int  # how many

    def share(self, name: str) -> float:
        """The share of turns counted under `name`, from 0 to 1."""
        return self.counts[name] / self.turns if self.turns else 0.0

    @property
    def notable(self) -> bool:
        """Whether enough turns are cut or broken for the run to report it."""
        return (
            self.share("cut") >= CUT_SHARE_WARNING or self.share("broken") >= BROKEN_SHARE_WARNING
        )


def count_turns(records: Sequence[Dialog]) -> Collapse:
    """Counts the turns that models wrote, and those that are cut or repeated."""
    dialogs = {record.conversation: model_turns(record) for record in records}
    turns = [turn for dialog in dialogs.values() for turn in dialog]
    repeated = {
        name: sum(getattr(turn.repetition, name) >= NO_NEWS_FROM for turn in turns)
        for name in ("own", "other", "loops")
    }
    cut = sum(turn.cut for turn in turns)
    broken = sum(turn.repetition.broken for turn in turns)
    starts = {number: collapsed_from(dialog) for number, dialog in dialogs.items()}
    return Collapse(
        turns=len(turns),
        counts={"cut": cut, **repeated, "broken": broken},
        collapsed={number: first for number, first in starts.items() if first is not None},
        conversations=len(records),
    )


def model_turns(record: Dialog) -> list[ModelTurn]:
    """The turns that a model wrote: all but the starter and the user's turns from a file."""
    return [
        ModelTurn(turn.round, turn.stop_reason == "length", repeated)
        for turn, repeated in list(zip(record.turns, _repetition(record), strict=True))[1:]
        if turn.speaker == "agent" or turn.stop_reason not in GIVEN
    ]


def _repetition(record: Dialog) -> list[Repeated]:
    """The part of each turn that is repeated, besides what its speaker is asked to say.

    Versions before 0.3 did not measure it, or counted that too; it is then measured here.
    """
    recorded = [turn.repeats_unprompted or _unbroken(turn) for turn in record.turns]
    if all(recorded):
        return [repeated for repeated in recorded if repeated]
    speakers = {
        name: Persona(str(side.id), side.system_prompt)
        for name, side in (("agent", record.agent), ("user", record.user))
        if isinstance(side, Participant) and side.system_prompt
    }
    turns = with_repetition(record.turns, speakers)
    return [repeated for turn in turns if (repeated := turn.repeats_unprompted or turn.repeats)]


def _unbroken(turn: Turn) -> Repeated | None:
    """The repeated part of a turn, if it is too small for what is asked to matter."""
    return None if turn.repeats is None or turn.repeats.broken else turn.repeats


def collapsed_from(turns: Sequence[ModelTurn]) -> int | None:
    """The round from which a conversation is collapsed; None if it is not.

    It is the round of the first broken turn such that, of that turn and all later ones, at least
    half and at least `COLLAPSED_TURNS` are broken.
    """
    broken = [turn.repetition.broken for turn in turns]
    for start, turn in enumerate(turns):
        rest = broken[start:]
        if broken[start] and sum(rest) >= max(COLLAPSED_TURNS, len(rest) / 2):
            return turn.round
    return None


def without_collapsed(series: Series, collapse: Collapse) -> Series:
    """The series without the conversations that have collapsed."""
    return series.rows(~np.isin(series.conversations, list(collapse.collapsed)))
