"""Turns that several dialogs have: a session that is resumed or forked begins with a copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class TurnEvents:
    """The turns of a dialog, by the ids of their events.

    Args:
        source: of the dialog.
        turns: the ids of the events of each turn; a copy of a turn has the same.
    """

    source: str
    turns: tuple[frozenset[str], ...]


@dataclass(frozen=True)
class Copies:
    """The turns that are copies.

    Args:
        turns: for each dialog, the positions of its turns that are copies.
        problems: a sentence for each dialog that has any.
    """

    turns: tuple[frozenset[int], ...]
    problems: tuple[str, ...]


def copies_in(dialogs: Sequence[TurnEvents]) -> Copies:
    """The copies in dialogs: a turn counts in the longest that has it."""
    source_of: dict[str, str] = {}  # of each event that is counted
    copied: list[frozenset[int]] = [frozenset()] * len(dialogs)
    problems = []
    for number, dialog in sorted(enumerate(dialogs), key=lambda pair: -len(pair[1].turns)):
        known = source_of.keys()
        copies = [n for n, events in enumerate(dialog.turns) if events and events <= known]
        if copies:
            copied[number] = frozenset(copies)
            other = source_of[min(dialog.turns[copies[0]])]
            count = f"{len(copies)} of its {len(dialog.turns)} turns"
            which = "its only turn is" if len(dialog.turns) == 1 else f"{count} are"
            problems.append(f"{dialog.source}: {which} in {other} too, and counted there")
        for position, events in enumerate(dialog.turns):
            if position not in copied[number]:
                source_of.update(dict.fromkeys(events, dialog.source))
    return Copies(tuple(copied), tuple(problems))
