"""Two models that talk with each other: one plays the agent, another the user model."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

from holdfast.drift.dialog import USER_VIEW
from holdfast.models.compared import Compared, Divergence
from holdfast.models.protocol import ChatModel, Job, Session, answer_all
from holdfast.models.requests import Reply, Request


@dataclass(frozen=True)
class TwoModels:
    """What `converse` takes in place of one model that plays both sides.

    Args:
        agent: the model under test.
        user: plays the user model.
    """

    agent: ChatModel
    user: ChatModel
    independent: ClassVar[bool] = False  # each waits for the other, so a batch at a time

    def session(self) -> TwoSessions:
        """Opens a session of each."""
        return TwoSessions(self.agent.session(), self.user.session())


@dataclass(frozen=True)
class TwoSessions:
    """A session whose requests go to the one or the other model, by the view that they belong to.

    The two take turns: one answers all that can be asked of it, with what follows there, and then
    the other. Two models on one device compute one after the other anyway, and so each does it for
    as many conversations together as there are.

    Args:
        agent: answers turns and probes of the agent.
        user: answers turns of the user model.
    """

    agent: Session
    user: Session

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers many chats, in the order given."""
        return answer_all(self.run, requests)

    def run(self, jobs: Iterable[Job]) -> None:
        """Answers jobs and all that follow from them.

        Raises:
            HoldfastError: as the session that was asked.
        """
        agents, users = _Side(self.agent), _Side(self.user)

        def pass_on(jobs: Iterable[Job], here: _Side) -> list[Job]:
            """The jobs that stay on this side; the others wait on theirs."""
            stay = []
            for job in jobs:
                side = users if _is_users(job.request) else agents
                if side is here:
                    stay.append(_linked(job, lambda following: pass_on(following, here)))
                else:
                    side.waiting.append(job)
            return stay

        for job in jobs:
            (users if _is_users(job.request) else agents).waiting.append(job)
        while agents.waiting or users.waiting:
            for side in (agents, users):
                now, side.waiting = side.waiting, []
                if now:
                    side.session.run(pass_on(now, side))

    def forget(self, thread: Hashable) -> None:
        """Frees what was kept for a thread that is over."""
        self.agent.forget(thread)
        self.user.forget(thread)

    def diverge(self, compared: Sequence[Compared]) -> list[Divergence | None]:
        """As `LocalSession.diverge`, of the agent's replies."""
        told: list[Divergence | None] = cast("Any", self.agent).diverge(compared)
        return told

    @property
    def rows_at_most(self) -> int | None:
        """Requests together, since memory ran out in one of them; None: it never did."""
        both = (getattr(session, "rows_at_most", None) for session in (self.agent, self.user))
        return min((rows for rows in both if rows is not None), default=None)


@dataclass
class _Side:
    """A session, and the jobs that wait for its turn."""

    session: Session
    waiting: list[Job] = field(default_factory=list)


def _is_users(request: Request) -> bool:
    """Whether a request of a conversation belongs to the user model's view."""
    return isinstance(request.thread, tuple) and request.thread[0] == USER_VIEW


def _linked(job: Job, link: Callable[[Iterable[Job]], list[Job]]) -> Job:
    """The job with what follows from it linked to its session."""
    then, failed = job.then, job.failed
    if failed is None:
        return replace(job, then=lambda reply: link(then(reply)))
    return replace(
        job, then=lambda reply: link(then(reply)), failed=lambda error: link(failed(error))
    )
