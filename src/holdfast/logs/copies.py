"""Turns that several dialogs have: a session that is resumed or forked begins with a copy."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

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

    A turn whose events another dialog's turn has, all of them, is a copy of it. One that begins
    as there and goes on otherwise is another turn, as is another answer to the same question.
    """
    counted: dict[str, int] = {}  # the dialog in which each event is counted first
    copied: list[dict[int, int]] = [{} for _ in dialogs]  # the other dialog of each copy
    for number, position in _by_completeness(dialogs):
        events = dialogs[number].turns[position]
        others = [_other(event, number, counted) for event in events]
        if others[0] is not None and None not in others:
            copied[number][position] = others[0]
            continue
        for name in chain.from_iterable(events):
            counted.setdefault(name, number)
    problems = []
    for dialog, copies in zip(dialogs, copied, strict=True):
        if copies:
            other = dialogs[copies[min(copies)]].source
            problems.append(_sentence(dialog, len(copies), other))
    return Copies(tuple(frozenset(copies) for copies in copied), tuple(problems))


def _other(event: EventIds, number: int, counted: Mapping[str, int]) -> int | None:
    """The other dialog that has an event; None if there is none."""
    return next((counted[name] for name in event if counted.get(name, number) != number), None)


def _sentence(dialog: TurnEvents, copies: int, other: str) -> str:
    is_only = len(dialog.turns) == 1
    which = "its only turn is" if is_only else f"{copies} of its {len(dialog.turns)} turns are"
    return f"{dialog.source}: {which} in {other} too, and counted there"


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
