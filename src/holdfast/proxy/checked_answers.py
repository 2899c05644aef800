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

    Attributes:
        best: the answer that breaks the fewest rules, and the earliest of those.
    """

    def __init__(self, relay: ChatRelay, relayed: RelayedRequest):
        self._relay, self._relayed = relay, relayed
        self._retries_left = relayed.retries
        self._fewest: float = math.inf
        self.best: Answer | None = None

    def add(self, answer: Answer) -> RelayedRequest | None:
        """Takes the next answer; returns the request to send then, or None if there is none."""
        if self.best is None:
            self.best = answer
        chat = self._relayed.chat
        if chat is None:
            return None
        broken = self._relay.broken_rules(self._relayed.api, chat, answer)
        if broken is None:
            return None
        if len(broken) < self._fewest:
            self.best, self._fewest = answer, len(broken)
        if not broken or not self._retries_left:
            return None
        self._retries_left -= 1
        return self._relay.again(self._relayed, chat, broken)
