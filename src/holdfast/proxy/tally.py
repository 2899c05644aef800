"""Counts of what happened to the requests and replies of a middleware."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass

from holdfast.proxy.reply_scores import ScoredReply, Unscored
from holdfast.proxy.request_edits import Edit, Outcome

LAST_TURN = 16  # later turns are counted together, so that no client makes counters without limit


@dataclass(frozen=True)
class RuleCell:
    """A rule at a turn of its dialogs; `turn` is `LAST_TURN + 1` for all later turns too."""

    case: str
    rule: str
    turn: int


@dataclass(frozen=True)
class RuleCount:
    """How many replies at a turn kept a rule, of those that it applied to."""

    cell: RuleCell
    kept: int
    scored: int


class Tally:
    """The counts of one middleware; any thread may add to them.

    Attributes:
        requests: by what became of them.
        unscored: replies without scores, by the reason.
        reminders: messages of the user to which text was added.
        added_tokens: sent in all requests, estimated; a reminder is sent again with each later
            turn of its dialog.
        left_out: messages that were not sent, in all requests.
        retries: requests that were sent again, as the reply broke a rule; their tokens count as
            added.
    """

    def __init__(self) -> None:
        self.requests = Counter[Outcome]()
        self.unscored = Counter[Unscored]()
        self.reminders = self.added_tokens = self.left_out = self.retries = 0
        self._scored, self._kept = Counter[RuleCell](), Counter[RuleCell]()
        self._lock = threading.Lock()

    def note_edit(self, edit: Edit) -> None:
        """Counts a request."""
        with self._lock:
            self.requests[edit.outcome] += 1
            self.reminders += edit.reminds
            self.added_tokens += edit.added_tokens
            self.left_out += edit.left_out

    def note_retry(self, tokens: int) -> None:
        """Counts a request that is sent again, with its length."""
        with self._lock:
            self.retries += 1
            self.added_tokens += tokens

    def note_reply(self, reply: ScoredReply | Unscored) -> None:
        """Counts a reply."""
        with self._lock:
            if isinstance(reply, Unscored):
                self.unscored[reply] += 1
                return
            for score in reply.scores:
                cell = RuleCell(reply.case, score.rule, min(reply.turn, LAST_TURN + 1))
                self._scored[cell] += 1
                self._kept[cell] += score.kept

    def snapshot(self) -> Tally:
        """A copy that counts no further."""
        copy = Tally()
        with self._lock:
            copy.requests, copy.unscored = self.requests.copy(), self.unscored.copy()
            copy.reminders, copy.added_tokens = self.reminders, self.added_tokens
            copy.left_out, copy.retries = self.left_out, self.retries
            copy._scored, copy._kept = self._scored.copy(), self._kept.copy()
        return copy

    @property
    def rules(self) -> list[RuleCount]:
        """The rules that were scored, by turn."""
        with self._lock:
            return [
                RuleCount(cell, self._kept[cell], scored) for cell, scored in self._scored.items()
            ]
