"""The answers to a request that is sent again while its reply breaks a rule."""

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

    A reply without text, or one that calls a tool, ends it: it cannot be checked.

    Attributes:
        best: the answer that breaks the fewest rules, and the earliest of those.
        request: the request that it answers.
    """

    def __init__(self, relay: ChatRelay, relayed: RelayedRequest):
        self._relay = relay
        self._sent = relayed
        self._retries_left = relayed.retries
        self._fewest: float = math.inf  # broken rules
        self.request = relayed
        self.best: Answer | None = None

    def add(self, answer: Answer) -> RelayedRequest | None:
        """Takes the answer to the request sent last; returns the one to send then, if any."""
        broken = self._relay.broken_rules(self._sent, answer)
        if self.best is None or (broken is not None and len(broken) < self._fewest):
            self.request = self._sent
            self.best = answer
        if broken is None:
            return None
        self._fewest = min(self._fewest, len(broken))
        if not broken or not self._retries_left:
            return None
        self._retries_left -= 1
        again = self._relay.retry(self._sent, broken)
        self._sent = again or self._sent
        return again
