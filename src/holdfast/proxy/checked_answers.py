"""Chooses the best of the answers that `check-and-retry` draws to one request."""

from __future__ import annotations

import math

from holdfast.proxy.relay import ChatRelay, RelayedRequest
from holdfast.proxy.upstream_answer import UpstreamAnswer


class CheckedAnswers:
    """The answers to one request, which is sent again while the reply breaks a rule.

        checked = CheckedAnswers(relay, relayed)
        again = checked.add(answer to `relayed`)
        while again is not None:
            again = checked.add(answer to `again`)
        checked.best

    A reply that has no text or calls a tool is the last, as it cannot be checked. If such an
    answer, an error or no answer at all comes after a reply that breaks a rule, the retry has
    failed, which is counted.

    Attributes:
        best: the answer that breaks the fewest rules; the earliest of several. None before `add`.
        request: the request that `best` answers.
    """

    def __init__(self, relay: ChatRelay, relayed: RelayedRequest):
        self._relay = relay
        self._last_sent = relayed
        self._retries_left = relayed.retries
        self._min_broken: float = math.inf  # how many rules `best` breaks
        self.request = relayed
        self.best: UpstreamAnswer | None = None

    def add(self, answer: UpstreamAnswer) -> RelayedRequest | None:
        """Takes the answer to the last request; returns the next to send, None if there is none."""
        broken = self._relay.broken_rules(self._last_sent, answer)
        if self.best is None or (broken is not None and len(broken) < self._min_broken):
            self.request = self._last_sent
            self.best = answer
        if broken is None:
            if self.best is not answer:
                self._relay.tally.note_failed_retry()
            return None
        self._min_broken = min(self._min_broken, len(broken))
        if not broken or not self._retries_left:
            return None
        self._retries_left -= 1
        again = self._relay.retry(self._last_sent, broken)
        if again is None:
            self._relay.tally.note_failed_retry()
        self._last_sent = again or self._last_sent
        return again
