"""One round of work: what comes of its units, whoever does them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.errors import ModelError, RequestFailed
from holdfast.integrations.ray.board import Board
from holdfast.integrations.ray.desk import News
from holdfast.models.failures import MOST_IN_A_ROW
from holdfast.models.replicas import Listener


@dataclass
class Round:
    """One call of `work`.

    Args:
        board: who has what.
        units: by number.
        listener: told of them.
        error: the first that ended an actor's work.
        lost: units given up since one was last over.
    """

    board: Board
    units: Mapping[int, Any]
    listener: Listener
    error: Exception | None = None
    lost: int = 0

    def take(self, actor: int, news: News) -> None:
        """What an actor tells."""
        for number, outcomes in news.finished.items():
            self.board.over(actor, number)
            self.lost = 0
            for outcome in outcomes:
                self.listener.outcome(number, outcome)
            self.listener.over(number)
        if news.done:
            self.listener.progress(news.done, news.tokens)
        if news.error is not None:
            self.error = self.error or news.error
            self.board.stop(actor)

    def gone(self, actor: int, why: str) -> None:
        """An actor is gone.

        Raises:
            ModelError: too many units in a row were lost.
        """
        for number in self.board.gone(actor):
            self.lost += 1
            reason = f"Three actors were gone while they worked on it ({why})."
            if self.lost >= MOST_IN_A_ROW:
                raise ModelError(
                    f"Stopped, as {self.lost} units of work in a row were each gone with three"
                    f" actors ({why}); look into the logs of the Ray cluster, and repeat the"
                    " command to go on."
                )
            self.listener.lost(number, RequestFailed(reason))
