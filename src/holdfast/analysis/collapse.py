"""Conversations that collapse: turns that are cut or repeated, and where a dialog collapsed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.analysis.series import Series
from holdfast.drift.cases import Persona
from holdfast.drift.turn_repetition import with_repetition
from holdfast.records import DialogRecord, Participant, Repeated, Turn
from holdfast.records.conversation import GIVEN, MOSTLY_REPEATED
from holdfast.records.drift_summary import Collapse

CUT_SHARE_WARNING = 0.25  # a run with this share of cut turns reports it
BROKEN_SHARE_WARNING = 0.2  # likewise for broken turns
COLLAPSED_TURNS = 3  # a collapse has at least this many broken turns


@dataclass(frozen=True)
class ModelTurn:
    """A turn that a model wrote."""

    round: int
    cut: bool  # at the token limit
    repetition: Repeated


def is_notable(collapse: Collapse) -> bool:
    """Whether enough turns are cut or broken for the run to report it."""
    return (
        collapse.share("cut") >= CUT_SHARE_WARNING
        or collapse.share("broken") >= BROKEN_SHARE_WARNING
    )


def count_turns(records: Sequence[DialogRecord]) -> Collapse:
    """Counts the turns that models wrote, and those that are cut or repeated."""
    dialogs = {record.conversation: model_turns(record) for record in records}
    turns = [turn for dialog in dialogs.values() for turn in dialog]
    starts = {number: collapsed_from(dialog) for number, dialog in dialogs.items()}
    return Collapse(
        turns=len(turns),
        cut=_share([turn.cut for turn in turns]),
        own=_share([turn.repetition.own >= MOSTLY_REPEATED for turn in turns]),
        other=_share([turn.repetition.other >= MOSTLY_REPEATED for turn in turns]),
        loops=_share([turn.repetition.loops >= MOSTLY_REPEATED for turn in turns]),
        broken=_share([turn.repetition.broken for turn in turns]),
        collapsed_from_round={
            number: first for number, first in starts.items() if first is not None
        },
        conversations=len(records),
    )


def _share(are_counted: Sequence[bool]) -> float:
    return sum(are_counted) / len(are_counted) if are_counted else 0.0


def model_turns(record: DialogRecord) -> list[ModelTurn]:
    """Returns the turns that a model wrote: all but the starter, and the user's from a file."""
    turns = list(zip(record.turns, _repetitions(record), strict=True))
    return [
        ModelTurn(turn.round, turn.stop_reason == "length", repetition)
        for turn, repetition in turns[1:]
        if turn.speaker == "agent" or turn.stop_reason not in GIVEN
    ]


def _repetitions(record: DialogRecord) -> list[Repeated]:
    """Returns how much of each turn is repeated, besides what its speaker's prompt asks it to say.

    It is measured here if a version before 0.3 wrote the record.
    """
    turns: Sequence[Turn] = record.turns
    if any(_recorded_repetition(turn) is None for turn in turns):
        speakers = {
            name: Persona(str(side.id), side.system_prompt)
            for name, side in (("agent", record.agent), ("user", record.user))
            if isinstance(side, Participant) and side.system_prompt
        }
        turns = with_repetition(turns, speakers)
    return [repetition for turn in turns if (repetition := _recorded_repetition(turn))]


def _recorded_repetition(turn: Turn) -> Repeated | None:
    """Returns how much of a turn is repeated, besides what its prompt asks for; None if its record
    does not have that.
    """
    if turn.repeats_unprompted is not None:
        return turn.repeats_unprompted
    # what the prompt asks for makes no difference to a turn that is not even broken with it
    return None if turn.repeats is None or turn.repeats.broken else turn.repeats


def collapsed_from(turns: Sequence[ModelTurn]) -> int | None:
    """Returns the round from which a conversation is collapsed; None if it has not collapsed.

    It has collapsed from the first broken turn on, if of that turn and all later ones at least half
    and at least `COLLAPSED_TURNS` are broken; otherwise from the next such turn.
    """
    is_broken = [turn.repetition.broken for turn in turns]
    for start, turn in enumerate(turns):
        later_turns = is_broken[start:]
        if is_broken[start] and sum(later_turns) >= max(COLLAPSED_TURNS, len(later_turns) / 2):
            return turn.round
    return None


def without_collapsed(series: Series, collapse: Collapse) -> Series:
    """Returns the series without the conversations that have collapsed."""
    return series.rows(~np.isin(series.conversations, list(collapse.collapsed_from_round)))
