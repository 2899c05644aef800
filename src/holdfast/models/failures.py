"""Failed requests: one ends its conversation or sample; several in a row end the run."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import ModelError, RequestFailed
from holdfast.models.protocol import Job, Session
from holdfast.models.requests import Reply, Request

MOST_IN_A_ROW = 5  # conversations or samples
Name = tuple[str, int]  # of a request: a method or a task, and a number


@dataclass(frozen=True)
class Unanswered:
    """A request that was not answered."""

    name: Name
    why: str  # of `RequestFailed`
    reason: str


@dataclass
class Failures:
    """Requests that failed since the last answer; their outcomes wait for the next one."""

    on_over: Callable[[Any], None]  # receives the outcome of a conversation or sample
    unit: str  # "conversation" or "sample", for messages
    _failed: set[Hashable] = field(default_factory=set)
    _waiting: list[Any] = field(default_factory=list)
    _answered: Request | None = None
    _last: RequestFailed | None = None

    def answered(self, request: Request) -> None:
        self._answered = request
        self._end_row()

    def failed(self, name: Hashable, error: RequestFailed) -> None:
        """Records a failed request; raises a `ModelError` after too many in a row."""
        if error.why != "failure":  # a filter or a limit counts as an answer
            self._end_row()
            return
        self._failed.add(name)
        self._last = error
        if len(self._failed) >= MOST_IN_A_ROW:
            raise self._stopped(error)

    def over(self, name: Hashable, outcome: Any) -> None:
        if name in self._failed:
            self._waiting.append(outcome)
        else:
            self.on_over(outcome)

    def finish(self, session: Session) -> None:
        """Ends the work; if the last requests failed, repeats an answered one to test the model."""
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
        self._failed.clear()
        while self._waiting:
            self.on_over(self._waiting.pop(0))

    def _stopped(self, error: ModelError | None) -> ModelError:
        count = len(self._failed)
        which = f"{count} {self.unit}s in a row" if count > 1 else f"a {self.unit}"
        return ModelError(
            f"Stopped, as requests of {which} failed (finished ones are kept; repeat the command to"
            f" go on); the last failure was: {error}"
        )


def answer_each(
    session: Session,
    requests: Mapping[Name, Request],
    failures: Failures,
    on_reply: Callable[[Name, Reply], None],
) -> None:
    """Answers many chats; one that fails becomes an `Unanswered` outcome of `failures`."""

    def job(name: Name, request: Request) -> Job:
        def answered(reply: Reply) -> tuple[Job, ...]:
            if reply.stop_reason == "context":
                return failed(RequestFailed(_NO_ROOM, "context"))
            failures.answered(request)
            on_reply(name, reply.without_reasoning())
            return ()

        def failed(error: RequestFailed) -> tuple[Job, ...]:
            _, number = name  # several questions of one conversation count once
            failures.failed(number, error)
            failures.over(number, Unanswered(name, error.why, str(error)))
            return ()

        return Job(request, answered, failed, f"{failures.unit.capitalize()} {name[1]} ({name[0]})")

    session.run([job(name, request) for name, request in requests.items()])


_NO_ROOM = "The chat leaves no room for a reply in the model's context; use a shorter one."
