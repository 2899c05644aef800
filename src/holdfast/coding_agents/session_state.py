"""The state of a session between two calls of a hook: a small file in the user's cache.

It records from which byte on the log has to be read, and what the model was already told. Hooks of
one session may run at the same time: the last to end writes the state, so that at worst a rule is
repeated.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.files import user_cache
from holdfast.logs.dialogs import LoggedTurn
from holdfast.measures.turns import ToolCall
from holdfast.transcripts.parsing import may_be_document
from holdfast.transcripts.transcript import Event, EventKind

_VERSION = 4
# how many of the first bytes of a log, and of the last ones that were read, identify it
_HEAD = 1024
_TAIL = 256
_MAX_AGE = 30 * 24 * 3600  # seconds after which the state of a session is deleted


class LogDigests(NamedTuple):
    """The digests of the first bytes of a log, and of the last bytes before an offset; "" if it is
    shorter, or cannot be read.
    """

    head: str
    tail: str


@dataclass(frozen=True)
class Mark:
    """A record that the model was told that a turn broke a rule.

    Args:
        turn: the number of the turn in the session, from 1.
        message: a digest of the user's message that the turn answers, as another turn may have the
            same number after a rewind.
        calls: how many tool calls the turn had then; later calls are judged anew.
        last_call: the id of the last of these calls; if the log was behind, more calls precede it.
    """

    turn: int
    message: str
    rule: str
    calls: int
    last_call: str

    @classmethod
    def of(cls, turn: LoggedTurn, rule: str) -> Mark:
        """Makes the mark of a turn that broke a rule, and of which the model is told now."""
        calls = turn.done.calls
        last_call = calls[-1].id if calls else ""
        return cls(turn.number, _text_digest(turn.user), rule, len(calls), last_call)

    def is_of(self, turn: LoggedTurn) -> bool:
        """Whether the mark is about a turn."""
        return self.turn == turn.number and self.message == _text_digest(turn.user)

    @property
    def key(self) -> tuple[int, str, str]:
        """Identifies the mark; a later mark with the same key replaces it."""
        return (self.turn, self.message, self.rule)

    def calls_in(self, turn: Sequence[ToolCall]) -> int:
        """How many of these calls of the turn the model had made when it was told."""
        ids = [call.id for call in turn]
        if self.last_call and self.last_call in ids:
            return ids.index(self.last_call) + 1
        return self.calls


@dataclass(frozen=True)
class ContextLoss:
    """Whether the rules have left the context, and whether the model has been reminded since.

    An agent may call its hook for a compaction before the log shows it. The model is reminded once:

        ContextLoss().after(compactions=0, is_compacting=True)  # is_open: all rules are repeated
        loss = ContextLoss(is_answered_ahead=True)
        loss.after(compactions=1, is_compacting=False)  # the log has caught up: not open

    Args:
        is_open: whether the rules have left the context, and the model was not reminded since.
        is_answered_ahead: whether the model was reminded after a compaction that the log did not
            show yet.
    """

    is_open: bool = False
    is_answered_ahead: bool = False

    def after(self, compactions: int, is_compacting: bool) -> ContextLoss:
        """The loss at the next call of a hook.

        Args:
            compactions: how many more compactions the log shows.
            is_compacting: whether the hook is called for a compaction.
        """
        unanswered = compactions
        if self.is_answered_ahead and compactions:
            unanswered -= 1
        return ContextLoss(
            is_open=self.is_open or unanswered > 0 or is_compacting,
            is_answered_ahead=self.is_answered_ahead and not compactions,
        )


@dataclass(frozen=True)
class SessionState:
    """The state of a session.

    Args:
        rules: the fingerprint of the rules by which the session was judged.
        offset: how many bytes of the log were read.
        start: the byte at which the last turn begins; the log is read again from there.
        turns: how many turns there are before that byte.
        earlier_calls: the tool calls of these turns; () if no rule needs them.
        previous_text: the last text of these turns.
        earlier_words: what the user said in the context before that byte, and its summary.
        head, tail: the digests of the first bytes of the log, and of the last bytes before
            `offset`, which identify it.
    """

    rules: str
    offset: int = 0
    start: int = 0
    turns: int = 0
    earlier_calls: tuple[ToolCall, ...] = ()
    previous_text: str = ""
    earlier_words: tuple[Event, ...] = ()
    loss: ContextLoss = ContextLoss()
    marks: tuple[Mark, ...] = ()
    head: str = ""
    tail: str = ""

    def fits(self, transcript: Path) -> bool:
        """Whether the log is the one that was read, with nothing but additions since.

        A log that is a single JSON document is rewritten for each addition, and fits always.
        """
        if may_be_document(transcript):
            return True
        return digests(transcript, self.offset) == LogDigests(self.head, self.tail)


def _text_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def digests(transcript: Path, offset: int) -> LogDigests:
    """The digests that identify a log up to an offset."""
    try:
        with transcript.open("rb") as file:
            head = file.read(min(_HEAD, offset))
            file.seek(max(0, offset - _TAIL))
            tail = file.read(min(_TAIL, offset))
    except OSError:
        return LogDigests("", "")
    if len(tail) < min(_TAIL, offset):
        return LogDigests("", "")
    return LogDigests(hashlib.sha256(head).hexdigest(), hashlib.sha256(tail).hexdigest())


def states_folder() -> Path:
    """The folder with the states of all sessions."""
    return user_cache() / "remind"


def state_file(folder: Path, transcript: Path, suite: str) -> Path:
    """The file with the state of a session under the rules of a suite."""
    name = f"{os.path.realpath(transcript)}\n{os.path.realpath(suite)}"
    return folder / f"{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:32]}.json"


def read_state(file: Path, rules: str, transcript: Path) -> SessionState | None:
    """Reads a state; None if there is none for these rules, or if the log has changed since."""
    try:
        state = _from_json(json.loads(file.read_bytes()))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None  # missing, damaged or of another version: the log is read from its start
    return state if state.rules == rules and state.fits(transcript) else None


def write_state(file: Path, state: SessionState) -> None:
    """Replaces a state as a whole. It does not wait for the disk, as a state can be made again.

    Raises:
        OSError: it cannot be written.
    """
    is_first = not file.exists()
    write_private(file, json.dumps(_to_json(state)))
    if is_first:
        _delete_old(file.parent)


def write_private(file: Path, text: str) -> None:
    """Replaces a file of the cache as a whole.

    Only the user can read it, as it has commands and paths of the user's sessions.

    Raises:
        OSError: it cannot be written.
    """
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = file.with_suffix(f".{os.getpid()}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as opened:
        opened.write(text)
    os.replace(temporary, file)


def _delete_old(folder: Path) -> None:
    """Deletes states that no hook has written for a long time."""
    oldest = time.time() - _MAX_AGE
    for file in folder.iterdir():
        with contextlib.suppress(OSError):
            if file.stat().st_mtime < oldest:
                file.unlink()


def _to_json(state: SessionState) -> dict[str, Any]:
    return {
        **vars(state),
        "version": _VERSION,
        "earlier_calls": [
            [call.name, dict(call.arguments), call.id] for call in state.earlier_calls
        ],
        "earlier_words": [[event.kind.value, event.text] for event in state.earlier_words],
        "loss": vars(state.loss),
        "marks": [vars(mark) for mark in state.marks],
    }


def _from_json(value: Mapping[str, Any]) -> SessionState:
    fields = dict(value)
    if fields.pop("version") != _VERSION:
        raise ValueError("the state is of another version")
    calls = tuple(ToolCall(*call) for call in fields.pop("earlier_calls"))
    words = tuple(_word_event(*words) for words in fields.pop("earlier_words"))
    loss = ContextLoss(**fields.pop("loss"))
    marks = tuple(Mark(**mark) for mark in fields.pop("marks"))
    return SessionState(**fields, earlier_calls=calls, earlier_words=words, loss=loss, marks=marks)


def _word_event(kind: str, text: str) -> Event:
    is_message = kind == EventKind.MESSAGE.value
    return Event(EventKind(kind), text, role="user" if is_message else "")
