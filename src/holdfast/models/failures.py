"""Failed requests: one of them ends its conversation or sample; several in a row end the run."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from holdfast.errors import ModelError, RequestFailed, Unavailable
from holdfast.models.checked_replies import generate_checked
from holdfast.models.event_loop import task_group
from holdfast.models.protocol import Engine
from holdfast.models.requests import Reply, Request

MAX_FAILURES_IN_A_ROW = 5  # conversations or samples
_NO_ROOM = "The chat leaves no room for a reply in the model's context; use a shorter one."


class RequestKey(NamedTuple):
    """Identifies one of many requests."""

    label: str  # the method, the task or the question
    number: int  # of its conversation or sample


@dataclass(frozen=True)
class FailedRequest:
    """A request that was not answered."""

    key: RequestKey
    why: str  # "filter", "context" or "failure"
    reason: str  # the message of the error


@dataclass
class CircuitBreaker:
    """Stops a run whose model is down, and lets it continue after single failures.

    A conversation with a failed request is recorded only after another request has been answered.
    If several conversations fail without an answer in between, the run stops, and a later command
    repeats all their requests.
    """

    record: Callable[[Any], object]  # takes the outcome of a conversation or sample
    unit: str  # "conversation" or "sample", for messages
    # units with a failed request since the last answer, and the outcomes of those that are over
    _failed: set[Hashable] = field(default_factory=set, init=False)
    _held_back: list[Any] = field(default_factory=list, init=False)
    _last_answered: Request | None = field(default=None, init=False)
    _last_failure: RequestFailed | None = field(default=None, init=False)

    def answered(self, request: Request) -> None:
        """Notes that a request was answered, and records the outcomes that were held back."""
        self._last_answered = request
        self._release()

    def failed(self, unit: Hashable, error: RequestFailed) -> None:
        """Notes a failed request; raises a `ModelError` after too many in a row."""
        if error.why != "failure":  # a filter or a limit counts as an answer
            self._release()
            return
        self._failed.add(unit)
        self._last_failure = error
        if len(self._failed) >= MAX_FAILURES_IN_A_ROW:
            raise self._outage(error)

    def record_or_hold_back(self, unit: Hashable, outcome: Any) -> None:
        """Records the outcome of a unit, or holds it back if one of its requests just failed."""
        if self.has_failed(unit):
            self.hold_back(outcome)
        else:
            self.record(outcome)

    def has_failed(self, unit: Hashable) -> bool:
        """Whether a request of this unit has failed since the last answer."""
        return unit in self._failed

    def hold_back(self, outcome: Any) -> None:
        """Holds an outcome back until another request is answered; `record` takes it then."""
        self._held_back.append(outcome)

    async def finish(self, engine: Engine) -> None:
        """Records the outcomes that are still held back, once the model has proved to answer.

        It is tested with a request that it has answered before.

        Raises:
            ModelError: it no longer answers, or never did.
        """
        if not self._held_back:
            return
        if self._last_answered is None:
            raise self._outage(self._last_failure)
        try:
            await engine.generate(replace(self._last_answered, thread=None, keep=False))
        except ModelError as error:
            raise self._outage(error) from None
        self._release()

    def _release(self) -> None:
        self._failed.clear()
        while self._held_back:
            self.record(self._held_back.pop(0))

    def _outage(self, error: ModelError | None) -> ModelError:
        count = len(self._failed)
        units = f"{count} {self.unit}s in a row" if count > 1 else f"a {self.unit}"
        return Unavailable(
            f"Stopped, because requests of {units} failed (finished ones are kept; repeat the"
            f" command to continue); the last failure was: {error}"
        )


async def answer_each(
    engine: Engine,
    requests: Mapping[RequestKey, Request],
    breaker: CircuitBreaker,
    on_reply: Callable[[RequestKey, Reply], None],
) -> None:
    """Answers many chats; a failure becomes a `FailedRequest`, the outcome of its unit."""

    async def answer(key: RequestKey, request: Request) -> None:
        number = key.number  # failures are counted by number: once for each conversation
        named = replace(request, name=f"{breaker.unit.capitalize()} {number} ({key.label})")
        try:
            reply = await generate_checked(engine, named)
            if reply.stop_reason == "context":
                raise RequestFailed(_NO_ROOM, "context")
        except RequestFailed as error:
            breaker.failed(number, error)
            breaker.record_or_hold_back(number, FailedRequest(key, error.why, str(error)))
        else:
            breaker.answered(request)
            on_reply(key, reply)

    async with task_group() as group:
        for key, request in requests.items():
            group.create_task(answer(key, request))
