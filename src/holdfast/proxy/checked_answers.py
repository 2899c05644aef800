"""The answers to a request that is sent again while the reply breaks a rule."""

from __future__ import annotations

import math

from holdfast.proxy.answers import Answer
from holdfast.proxy.relay import ChatRelay, RelayedRequest


class CheckedAnswers:
    """The answers to one request, which is sent again while the reply breaks a rule.

        checked = CheckedAnswers(relay, relayed)
        again = relayed
        while again is not None:
            again = checked.add(answer to `again`)
        checked.best

    A reply that has no text or calls a tool is the last, as it cannot be checked.

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
        self.best: Answer | None = None

    def add(self, answer: Answer) -> RelayedRequest | None:
        """Takes the answer to the last request; returns the next to send, None if there is none."""
        broken = self._relay.broken_rules(self._last_sent, answer)
        if self.best is None or (broken is not None and len(broken) < self._min_broken):
            self.request = self._last_sent
            self.best = answer
        if broken is None:
            return None
        self._min_broken = min(self._min_broken, len(broken))
        if not broken or not self._retries_left:
            return None
        self._retries_left -= 1
        again = self._relay.retry(self._last_sent, broken)
        self._last_sent = again or self._last_sent
        return again
