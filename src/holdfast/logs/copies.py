"""Turns that are in several dialogs: a resumed or forked session begins with a copy of another, and
a log of requests has each dialog again and again, as far as it had come.

For example:

    a.jsonl: turns 1 2;  b.jsonl: 1 2 3, resumed from a  -> turns 1 and 2 of b.jsonl are copies
    c.jsonl, line 1: turn 1;  line 2: turns 1 2          -> the turn of line 1 is a copy
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from holdfast.plurals import count_of
from holdfast.transcripts.transcript import Transcript

_PLACE_IN_FILE = re.compile(r"(?:, [a-z]+ \d+)+\Z")  # "a.jsonl, line 3"

EventIds = tuple[str, ...]  # of one event; a copy of the event has at least one of them


@dataclass(frozen=True)
class TurnEvents:
    """The turns of a dialog, each as the ids of those of its events that have any.

    Args:
        source: the source of the dialog.
        turns: () if no event of the dialog has an id.
        digests: a digest of the dialog up to the end of each turn, where it may be one of several
            requests of a longer dialog; () for other formats.
    """

    source: str
    turns: tuple[tuple[EventIds, ...], ...]
    digests: tuple[bytes, ...] = ()


@dataclass(frozen=True)
class Copies:
    """The turns that are copies of others.

    Args:
        turns: for each dialog, the positions of its turns that are copies.
        problems: a sentence for each dialog that has copies, and for each log of requests.
    """

    turns: tuple[frozenset[int], ...]
    problems: tuple[str, ...]


class _Turn(NamedTuple):
    """A turn, by the number of its dialog and its position there."""

    dialog: int
    position: int


def history_ids(transcript: Transcript) -> dict[int, EventIds]:
    """Ids of the assistant's events by their positions on the path, for logs that give them no ids:
    a copy follows the same history of the same session. {} if the transcript has no history.
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
    """Finds the turns that are copies of turns in other dialogs.

    A turn is a copy if another dialog has all of its events. A turn that begins as another one and
    continues otherwise is not a copy, and neither is another answer to the same question.
    """
    originals = _originals(dialogs)
    copied = [frozenset(copies) for copies in originals]
    problems: list[str] = []
    for dialog, copies in zip(dialogs, originals, strict=True):
        if copies:
            first = copies[min(copies)]
            problems.append(_copies_problem(dialog, len(copies), dialogs[first].source))
    for file, numbers in _requests_by_file(dialogs).items():
        for number in numbers:
            copied[number] = frozenset(range(len(dialogs[number].digests)))
        contained = count_of(len(numbers), "dialog")
        problems.append(
            f"{file}: a log of requests; left out {contained} with which longer ones begin"
        )
    return Copies(tuple(copied), tuple(problems))


def _originals(dialogs: Sequence[TurnEvents]) -> list[dict[int, int]]:
    """Returns, for each dialog, the positions of its copied turns, each with the number of the
    dialog in which the turn is counted.
    """
    originals: list[dict[int, int]] = [{} for _ in dialogs]
    counted_in: dict[str, int] = {}  # the dialog in which an event is counted, by the event's id
    for turn in _by_completeness(dialogs):
        events = dialogs[turn.dialog].turns[turn.position]
        others = [_other_dialog(counted_in, event, turn.dialog) for event in events]
        first = others[0]
        if first is not None and None not in others:
            originals[turn.dialog][turn.position] = first
        else:
            for event_id in chain.from_iterable(events):
                counted_in.setdefault(event_id, turn.dialog)
    return originals


def _requests_by_file(dialogs: Sequence[TurnEvents]) -> dict[str, list[int]]:
    """Returns, for each log of requests, the numbers of the dialogs that a longer one contains.

    A file is a log of requests if at least half of its dialogs of several turns contain another as
    their beginning. In other files, two dialogs may begin alike by chance.
    """
    by_file: dict[str, list[int]] = {}
    for number, dialog in enumerate(dialogs):
        if dialog.digests:
            by_file.setdefault(_PLACE_IN_FILE.sub("", dialog.source), []).append(number)
    requests: dict[str, list[int]] = {}
    for file, numbers in by_file.items():
        beginnings = {digest for n in numbers for digest in dialogs[n].digests[:-1]}
        contained = [n for n in numbers if dialogs[n].digests[-1] in beginnings]
        wholes = {dialogs[n].digests[-1] for n in contained}
        longer = [n for n in numbers if len(dialogs[n].digests) > 1]
        containing = [n for n in longer if not wholes.isdisjoint(dialogs[n].digests[:-1])]
        if contained and 2 * len(containing) >= len(longer):
            requests[file] = contained
    return requests


def _other_dialog(counted_in: Mapping[str, int], event: EventIds, dialog: int) -> int | None:
    """Another dialog in which an event is counted; None if there is none."""
    others = (counted_in[event_id] for event_id in event if event_id in counted_in)
    return next((other for other in others if other != dialog), None)


def _copies_problem(dialog: TurnEvents, copies: int, other: str) -> str:
    """Says how many turns of a dialog are counted in another one."""
    if len(dialog.turns) == 1:
        return f"{dialog.source}: its only turn is in {other} too, and counted there"
    count = f"{copies} of its {len(dialog.turns)} turns"
    return f"{dialog.source}: {count} are in {other} too, and counted there"


def _by_completeness(dialogs: Sequence[TurnEvents]) -> Iterator[_Turn]:
    """The turns that have ids, those with most events first; of these, those of long dialogs."""
    turns = [
        (-len(events), -len(dialog.turns), number, position)
        for number, dialog in enumerate(dialogs)
        for position, events in enumerate(dialog.turns)
        if events
    ]
    for *_, number, position in sorted(turns):
        yield _Turn(number, position)
