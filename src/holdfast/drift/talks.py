"""Conversations as units of work, which replicas of a model play."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from holdfast.drift.dialog import Dialog, record_of, turn_of
from holdfast.drift.pairing import Pairing
from holdfast.drift.selfchat import converse
from holdfast.drift.settings import Settings
from holdfast.drift.traces import TurnTrace
from holdfast.errors import RequestFailed
from holdfast.methods import Method
from holdfast.models.protocol import ChatModel
from holdfast.models.replicas import Listener, Units
from holdfast.models.requests import Reply

Keep = Callable[[dict[str, Any], dict[int, TurnTrace]], None]


@dataclass(frozen=True)
class Talks:
    """Work whose units are conversations: `Pairing`s, by their numbers.

    Args:
        methods, settings: as of `converse`.
    """

    methods: tuple[Method, ...]
    settings: Settings

    @property
    def together(self) -> int:
        return self.settings.batch

    def do(self, model: ChatModel, units: Units, replicas: int, listener: Listener) -> None:
        def keep(record: dict[str, Any], traces: dict[int, TurnTrace]) -> None:
            listener.outcome(record["conversation"], (record, traces))
            listener.over(record["conversation"])

        converse(
            model.session(),
            map(operator.itemgetter(1), units),
            self.methods,
            self.settings,
            keep,
            listener.progress,
            None if model.independent else -(-self.together // replicas),
        )


@dataclass
class Recorder:
    """Records what comes of conversations.

    A record's seconds are counted from the record before it, whichever replica that was of: what
    it took of the time of all, not how long it went on beside the others.

    Args:
        pairings: by number.
        keep: takes the record of each conversation, without its method's name, and its masses.
    """

    pairings: dict[int, Pairing]
    keep: Keep
    told: float = field(default_factory=time.monotonic)

    def take(self, number: int, outcome: tuple[dict[str, Any], dict[int, TurnTrace]]) -> None:
        """What came of a conversation."""
        record, traces = outcome
        now = time.monotonic()
        self.keep({**record, "seconds": round(now - self.told, 3)}, traces)
        self.told = now

    def lose(self, number: int, error: RequestFailed) -> None:
        """A conversation that no replica could play is recorded as one that ended in round 1."""
        dialog = Dialog(self.pairings[number])
        dialog.turns.append(turn_of(1, "user", Reply(dialog.pairing.starter, None, "stop")))
        dialog.ended = {"round": 1, "why": error.why, "reason": str(error)}
        self.take(number, (record_of(dialog, 0), {}))
