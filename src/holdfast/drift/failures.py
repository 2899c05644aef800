"""Requests that fail in a run: one ends its conversation, several in a row end the run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import ModelError, RequestFailed
from holdfast.models.protocol import Session
from holdfast.models.requests import Request

MOST_IN_A_ROW = 5  # conversations


@dataclass
class Failures:
    """What failed since the last request that was answered.

    As long as failures follow one another, the server may be at fault and not the conversations, so
    the records of these wait. They are written when something is answered; a run that stops does
    not write them, so that it asks again when it is resumed.

    Args:
        on_record: takes the records that need not wait.
    """

    on_record: Callable[[Any], None]
    _numbers: set[int] = field(default_factory=set)
    _waiting: list[Any] = field(default_factory=list)
    _answered: Request | None = None
    _last: RequestFailed | None = None

    def answered(self, request: Request) -> None:
        """A request was answered, so the server is there."""
        self._answered = request
        self._end_row()

    def failed(self, number: int, error: RequestFailed) -> None:
        """A request of conversation `number` failed.

        Raises:
            ModelError: requests of too many conversations failed in a row.
        """
        if error.why != "failure":  # a filter or a limit has answered
            self._end_row()
            return
        self._numbers.add(number)
        self._last = error
        if len(self._numbers) >= MOST_IN_A_ROW:
            raise self._stopped(error)

    def over(self, number: int, record: Any) -> None:
        """The conversation `number` is over."""
        if number in self._numbers:
            self._waiting.append(record)
        else:
            self.on_record(record)

    def settle(self, session: Session) -> None:
        """All conversations are over; where the last ones failed, asks once more what was answered.

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
            self.on_record(self._waiting.pop(0))

    def _stopped(self, error: ModelError | None) -> ModelError:
        count = len(self._numbers)
        which = f"{count} conversations in a row" if count > 1 else "a conversation"
        return ModelError(
            f"Stopped, as requests of {which} failed (finished ones are kept; repeat the command to"
            f" go on); the last failure was: {error}"
        )
