"""Counts what becomes of the requests and replies of a middleware."""

from __future__ import annotations

import copy
import threading
from collections import Counter
from dataclasses import dataclass, field

from holdfast.proxy.chat_edits import Edit, EditOutcome
from holdfast.proxy.reply_scores import ScoredReply, WhyUnscored

LAST_TURN = 16  # later turns are counted together, which bounds the number of counters


@dataclass(frozen=True)
class RuleCell:
    """A rule at a turn of its dialogs; the turn `LAST_TURN + 1` stands for all later ones too."""

    case: str
    rule: str
    turn: int


@dataclass(frozen=True)
class RuleCount:
    """How many replies at a turn kept a rule, of those that were scored by it."""

    cell: RuleCell
    kept: int
    scored: int


@dataclass
class TallyCounts:
    """The counts of a middleware at one moment.

    Attributes:
        requests: by the outcome of editing them.
        unscored: replies without scores, by reason.
        reminders: messages of the user to which text was added.
        added_tokens: added in all requests, estimated; a reminder is sent, and counted, again with
            each later turn of its dialog.
        left_out: messages that were not sent, in all requests.
        retries: requests that were sent again because the reply broke a rule; all of their tokens
            count as added.
        failed_retries: retries that gave no reply to check, so that an earlier reply was returned
            although it breaks a rule; also those for which no request could be made.
        unchecked: replies that could not be drawn again, because several were asked for, because
            they are made in the background, because the user says nothing in the chat, or because
            a measure took too long.
        scored: replies that were scored by a rule, by rule and turn; `rules` has them in rows.
        kept: how many of these kept it.
        failed: replies that a rule could not score because its measure failed, though others could.
    """

    requests: Counter[EditOutcome] = field(default_factory=Counter)
    unscored: Counter[WhyUnscored] = field(default_factory=Counter)
    reminders: int = 0
    added_tokens: int = 0
    left_out: int = 0
    retries: int = 0
    failed_retries: int = 0
    unchecked: int = 0
    scored: Counter[RuleCell] = field(default_factory=Counter)
    kept: Counter[RuleCell] = field(default_factory=Counter)
    failed: Counter[RuleCell] = field(default_factory=Counter)

    @property
    def rules(self) -> list[RuleCount]:
        """The rules that were scored, each at each turn."""
        return [RuleCount(cell, self.kept[cell], scored) for cell, scored in self.scored.items()]


class Tally:
    """The counts of one middleware; any thread may add to them."""

    def __init__(self) -> None:
        self._counts = TallyCounts()
        self._lock = threading.Lock()

    def counts(self) -> TallyCounts:
        """Returns a copy of the counts so far."""
        with self._lock:
            return copy.deepcopy(self._counts)

    def note_edit(self, edit: Edit) -> None:
        """Counts a request, by how it was edited."""
        with self._lock:
            self._counts.requests[edit.outcome] += 1
            self._counts.reminders += edit.num_reminders
            self._counts.added_tokens += edit.added_tokens
            self._counts.left_out += edit.left_out

    def note_retry(self, tokens: int) -> None:
        """Counts a request that is sent again, with its length."""
        with self._lock:
            self._counts.retries += 1
            self._counts.added_tokens += tokens

    def note_failed_retry(self) -> None:
        """Counts a retry without a reply that can be checked."""
        with self._lock:
            self._counts.failed_retries += 1

    def note_unchecked(self) -> None:
        """Counts a request whose reply is passed on without a check."""
        with self._lock:
            self._counts.unchecked += 1

    def note_reply(self, reply: ScoredReply | WhyUnscored) -> None:
        """Counts a reply."""
        with self._lock:
            if isinstance(reply, WhyUnscored):
                self._counts.unscored[reply] += 1
                return
            turn = min(reply.turn, LAST_TURN + 1)
            for score in reply.scores:
                cell = RuleCell(reply.case, score.rule, turn)
                self._counts.scored[cell] += 1
                self._counts.kept[cell] += int(score.kept)
            for rule in reply.failed:
                self._counts.failed[RuleCell(reply.case, rule, turn)] += 1
