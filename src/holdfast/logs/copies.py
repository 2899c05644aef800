"""Turns that several dialogs have: a session that is resumed or forked begins with a copy."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
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
            content = repr((event.role, event.text, event.call))
            digest.update(content.encode("utf-8", "surrogatepass"))
        if event.is_by_assistant:
            ids[position] = (digest.hexdigest()[:32],)
    return ids


def copies_in(dialogs: Sequence[TurnEvents]) -> Copies:
    """The copies in dialogs.

    A turn whose events another dialog's turn has, all of them, is a copy of it. One that begins
    as there and goes on otherwise is another turn, as is another answer to the same question.
    """
    counting: dict[str, int] = {}  # by the id of an event, the dialog in which it is counted
    # of each dialog, by the position of a turn that is a copy: the dialog in which that is counted
    originals: list[dict[int, int]] = [{} for _ in dialogs]
    for turn in _by_completeness(dialogs):
        events = dialogs[turn.dialog].turns[turn.position]
        others = [_other_dialog(counting, event, turn.dialog) for event in events]
        original = others[0]
        if original is not None and None not in others:
            originals[turn.dialog][turn.position] = original
        else:
            for name in chain.from_iterable(events):
                counting.setdefault(name, turn.dialog)
    problems: list[str] = []
    for dialog, copies in zip(dialogs, originals, strict=True):
        if copies:
            first = copies[min(copies)]
            problems.append(_sentence(dialog, len(copies), dialogs[first].source))
    return Copies(tuple(frozenset(copies) for copies in originals), tuple(problems))


def _other_dialog(counting: Mapping[str, int], event: EventIds, dialog: int) -> int | None:
    """Another dialog in which an event is counted, or None."""
    return next((counting[name] for name in event if counting.get(name, dialog) != dialog), None)


def _sentence(dialog: TurnEvents, copies: int, other: str) -> str:
    which = f"{copies} of its {len(dialog.turns)} turns are"
    if len(dialog.turns) == 1:
        which = "its only turn is"
    return f"{dialog.source}: {which} in {other} too, and counted there"


class _Turn(NamedTuple):
    """A turn, as the number of its dialog and its position there."""

    dialog: int
    position: int


def _by_completeness(dialogs: Sequence[TurnEvents]) -> Iterator[_Turn]:
    """The turns that have ids, the one with most events first."""
    turns = [
        (-len(events), -len(dialog.turns), number, position)
        for number, dialog in enumerate(dialogs)
        for position, events in enumerate(dialog.turns)
        if events
    ]
    for *_, number, position in sorted(turns):
        yield _Turn(number, position)
