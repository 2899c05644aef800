"""Requests that fail in a run: one ends its conversation or sample, several in a row end the
run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import ModelError, RequestFailed
from holdfast.models.protocol import Session
from holdfast.models.requests import Request

MOST_IN_A_ROW = 5  # conversations or samples


@dataclass
class Failures:
    """What failed since the last request that was answered.

    As long as failures follow one another, the server may be at fault and not what was asked, so
    what came of these requests waits. It is told when something is answered; a run that stops does
    not tell it, so that it asks again when it is resumed.

    Args:
        on_over: takes what came of a conversation or sample, when it need not wait.
        unit: what a number names, for messages.
    """

    on_over: Callable[[Any], None]
    unit: str
    _numbers: set[int] = field(default_factory=set)
    _waiting: list[Any] = field(default_factory=list)
    _answered: Request | None = None
    _last: RequestFailed | None = None

    def answered(self, request: Request) -> None:
        """A request was answered, so the server is there."""
        self._answered = request
        self._end_row()

    def failed(self, number: int, error: RequestFailed) -> None:
        """A request of the conversation or sample `number` failed.

        Raises:
            ModelError: those of too many failed in a row.
        """
        if error.why != "failure":  # a filter or a limit has answered
            self._end_row()
            return
        self._numbers.add(number)
        self._last = error
        if len(self._numbers) >= MOST_IN_A_ROW:
            raise self._stopped(error)

    def over(self, number: int, outcome: Any) -> None:
        """The conversation or sample `number` is over."""
        if number in self._numbers:
            self._waiting.append(outcome)
        else:
            self.on_over(outcome)

    def settle(self, session: Session) -> None:
        """All are over; where the last ones failed, asks once more what was answered.

        Raises:
            ModelError: it is not answered any longer, or nothing ever was.
        """
        if not self._waiting:
            return
        if self._answered is None:
            raise self._stopped(self._last)
        try:
            session.generate_batch([self._answered])
        except ModelError as error:
            raise self._stopped(error) from None
        self._end_row()

    def _end_row(self) -> None:
        self._numbers.clear()
        while self._waiting:
            self.on_over(self._waiting.pop(0))

    def _stopped(self, error: ModelError | None) -> ModelError:
        count = len(self._numbers)
        which = f"{count} {self.unit}s in a row" if count > 1 else f"a {self.unit}"
        return ModelError(
            f"Stopped, as requests of {which} failed (finished ones are kept; repeat the command to"
            f" go on); the last failure was: {error}"
        )
