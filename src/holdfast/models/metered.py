"""A model whose requests and tokens are counted."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from holdfast.errors import RequestFailed
from holdfast.models.protocol import ChatModel, Job, Session
from holdfast.models.requests import Reply, Request


@dataclass
class Meter:
    """Counts the requests and tokens of models since it was made.

    Attributes:
        requests: that were answered or failed, and replies that were scored.
        read, written: tokens of their chats and of their replies, as the model or its endpoint
            counts them.
        uncounted: replies of which nobody told the tokens.
    """

    requests: int = 0
    read: int = 0
    written: int = 0
    uncounted: int = 0

    def on(self, model: ChatModel) -> ChatModel:
        """The same model, counted."""
        return cast("ChatModel", _Metered(model, self))

    def count(self, reply: Reply) -> None:
        """Counts one reply."""
        self.requests += 1
        if reply.billed is not None:
            read, written = reply.billed
        elif reply.prompt_ids is not None and reply.token_ids is not None:
            read, written = len(reply.prompt_ids), len(reply.token_ids)
        else:
            self.uncounted += 1
            return
        self.read += read
        self.written += written


class _Metered:
    """A model that is the other one in all but its sessions."""

    def __init__(self, model: ChatModel, meter: Meter):
        self._model = model
        self._meter = meter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def session(self) -> Session:
        return cast("Session", _MeteredSession(self._model.session(), self._meter))


class _MeteredSession:
    """A session that is the other one, and counts what it answers."""

    def __init__(self, session: Session, meter: Meter):
        self._session = session
        self._meter = meter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        replies = self._session.generate_batch(requests)
        for reply in replies:
            self._meter.count(reply)
        return replies

    def score(self, requests: Sequence[Request], *rest: Any, **more: Any) -> Any:
        self._meter.requests += len(requests)
        self._meter.uncounted += len(requests)
        return cast("Any", self._session).score(requests, *rest, **more)

    def run(self, jobs: Iterable[Job]) -> None:
        self._session.run(self._counted(jobs))

    def _counted(self, jobs: Iterable[Job]) -> Iterator[Job]:
        for job in jobs:
            yield self._count(job)

    def _count(self, job: Job) -> Job:
        def then(reply: Reply) -> Iterable[Job]:
            self._meter.count(reply)
            return self._counted(job.then(reply))

        def failed(error: RequestFailed) -> Iterable[Job]:
            self._meter.requests += 1
            return self._counted(job.failed(error)) if job.failed else ()

        return dataclasses.replace(job, then=then, failed=failed if job.failed else None)
