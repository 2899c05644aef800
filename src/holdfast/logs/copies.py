"""Turns that several dialogs have: a session that is resumed or forked begins with a copy."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.transcripts.transcript import Transcript

EventIds = tuple[str, ...]  # the ids of an event: a copy of it has at least one of them


@dataclass(frozen=True)
class TurnEvents:
    """The turns of a dialog, each as its events that have an id.

    Args:
        source: of the dialog.
    """

    source: str
    turns: tuple[tuple[EventIds, ...], ...]


@dataclass(frozen=True)
class Copies:
    """The turns that are copies.

    Args:
        turns: for each dialog, the positions of its turns that are copies.
        problems: a sentence for each dialog that has any.
    """

    turns: tuple[frozenset[int], ...]
    problems: tuple[str, ...]


def history_ids(transcript: Transcript) -> dict[int, EventIds]:
    """Ids of the assistant's events by their positions on the path, for logs that give them none:
    copies follow the same history of the same session.
    """
    if not transcript.history:
        return {}
    ids: dict[int, EventIds] = {}
    digest = hashlib.sha256(transcript.history.encode("utf-8", "surrogatepass"))
    for position, event in enumerate(transcript.path):
        if event.is_by_user or event.is_by_assistant:
            said = repr((event.role, event.text, event.call))
            digest.update(said.encode("utf-8", "surrogatepass"))
        if event.is_by_assistant:
            ids[position] = (digest.hexdigest()[:32],)
    return ids


def copies_in(dialogs: Sequence[TurnEvents]) -> Copies:
    """The copies in dialogs.

    Turns of several dialogs that have an event in common are one turn, of which each dialog may
    have a part. It counts where most of it is; of equals, in the longest dialog.
    """
    counted: dict[str, int] = {}  # the dialog in which each event is counted
    copied: list[dict[int, _Copy]] = [{} for _ in dialogs]
    for number, position in _by_completeness(dialogs):
        events = dialogs[number].turns[position]
        if copy := _copy(events, number, counted):
            copied[number][position] = copy
        else:
            counted |= {name: number for event in events for name in event}
    problems = []
    for dialog, copies in zip(dialogs, copied, strict=True):
        if copies:
            first = copies[min(copies)]
            problems.append(_sentence(dialog, list(copies.values()), dialogs[first.other].source))
    return Copies(tuple(frozenset(copies) for copies in copied), tuple(problems))


class _Copy(NamedTuple):
    """A turn that is counted in another dialog."""

    other: int
    is_whole: bool  # whether all of its events are in the other dialog


def _copy(events: Sequence[EventIds], number: int, counted: dict[str, int]) -> _Copy | None:
    """The copy that a turn of a dialog is; None if its events are in no other dialog."""
    others = [
        next((counted[name] for name in event if counted.get(name, number) != number), None)
        for event in events
    ]
    shared = [other for other in others if other is not None]
    return _Copy(shared[0], len(shared) == len(others)) if shared else None


def _sentence(dialog: TurnEvents, copies: Sequence[_Copy], other: str) -> str:
    count = f"{len(copies)} of its {len(dialog.turns)} turns"
    which = "its only turn is" if len(dialog.turns) == 1 else f"{count} are"
    sentence = f"{dialog.source}: {which} in {other} too, and counted there"
    if parts := sum(not copy.is_whole for copy in copies):
        begins = "it begins" if len(copies) == 1 else f"{parts} of them begin"
        sentence += f"; {begins} as there, and what follows here is left out"
    return sentence


def _by_completeness(dialogs: Sequence[TurnEvents]) -> Iterator[tuple[int, int]]:
    """The turns that have ids, each as the number of its dialog and its position there: the one
    with most events first.
    """
    turns = [
        (-len(events), -len(dialog.turns), number, position)
        for number, dialog in enumerate(dialogs)
        for position, events in enumerate(dialog.turns)
        if events
    ]
    for *_, number, position in sorted(turns):
        yield number, position
