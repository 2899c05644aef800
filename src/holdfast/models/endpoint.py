"""Chat models behind OpenAI-compatible endpoints, with the interface of the local ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from holdfast.errors import Unreachable
from holdfast.methods import Ability, Method
from holdfast.models.protocol import Generates, Job, answer_all, run_jobs
from holdfast.models.requests import Reply, Request
from holdfast.models.workers import Server, Workers


@dataclass(frozen=True)
class EndpointModel(Generates):
    """A model behind one endpoint, or behind several that serve the same model; made by `connect`
    and `connect_all`. Use it from one thread.

    Methods that edit messages work everywhere. Those that need attention or logits work if the
    server reports at `/v1/steering` that it applies them, and are refused by name otherwise.

    A conversation stays with one of the endpoints. If an endpoint is gone, the others continue its
    conversations from the request that it did not answer; earlier replies are not lost.
    """

    servers: tuple[Server, ...]
    urls: tuple[str, ...]
    independent: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return self.servers[0].endpoint.model

    @property
    def fingerprint(self) -> str:
        """The name, and what the server reports of its model; also the first address if the server
        does not identify its weights, since other servers may then have different ones.
        """
        served = self.servers[0].served
        identity = (self.name, served.identity)
        return " ".join(filter(None, identity if served.fingerprint else (self.urls[0], *identity)))

    @property
    def about(self) -> dict[str, list[str]]:
        """For the manifest: the servers that answer."""
        return {"servers": [server.endpoint.url for server in self.servers]}

    @property
    def runtime(self) -> dict[str, str | int]:
        """Empty: the software behind the address cannot be seen from here."""
        return {}

    @property
    def capabilities(self) -> frozenset[Ability]:
        """The abilities that methods can use: messages, and those that the server reports."""
        return self.servers[0].served.capabilities

    @property
    def default_steering(self) -> str:
        """The server's methods for requests that name none; requests sent from here always do."""
        return self.servers[0].served.default

    def check(self, methods: Sequence[Method]) -> None:
        """Refuses methods that one of the endpoints cannot serve, with a `ModelError`."""
        for server in self.servers:
            server.check(methods)

    def reach(self) -> None:
        """Asks servers again what they offer, if their first answer left that unsure; raises a
        `ModelError` if one still does not answer.
        """
        for server in self.servers:
            server.reach()

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers many chats, `concurrency` at a time at each endpoint, in the order given.

        A seed is sent modulo 2**31, which every server can read, but whole to a server that steers,
        which draws from it as a local model does; whether the same seed gives the same reply
        elsewhere depends on the server. A server that refuses seeds by name gets none, and a
        warning says so once. A refused temperature or top_p is left out if it is 1, the protocol's
        default.

        Raises:
            ModelError: a method or emphasis that an endpoint cannot serve (before anything is
                sent); or the first request to fail for good, after which no further one is started.
        """
        for request in requests:
            for server in self.servers:
                server.check_request(request)
        return answer_all(self.run, requests)

    def run(self, jobs: Iterable[Job]) -> None:
        """Answers jobs and all that follow from them, as many at a time as the endpoints take;
        `then` is called in this thread.

        Conversations already begun are completed before others begin. An endpoint that is gone is
        not asked again by this model, as long as others are available; a warning says so.

        Raises:
            Unreachable: all endpoints are gone.
            ModelError: as in `generate_batch`; but a request that fails by itself goes to the job's
                `failed`, if it has one, and the others continue.
        """
        available = self._available()
        run_jobs(Workers(available), jobs)
        for server in available:
            if server.unavailable:
                warn_of_loss(server.unavailable)
            server.warn_of_seeds()

    def stream(self, request: Request, tell: Callable[[str], None]) -> Reply:
        """Answers one chat; `tell` receives the text piece by piece as it arrives, and the pieces
        form the whole reply, after its reasoning if the server leaves that in the text. An answer
        that breaks off is not requested again.
        """
        server = self._available()[0]
        try:
            return server.stream(request, tell)
        finally:
            server.warn_of_seeds()

    def _available(self) -> list[Server]:
        """The endpoints that are not gone; if all are gone, all are tried again."""
        if all(server.unavailable for server in self.servers):
            for server in self.servers:
                server.unavailable = None
        return [server for server in self.servers if not server.unavailable]

    def forget(self, thread: Hashable) -> None:
        """Nothing is kept for a thread here."""

    def session(self) -> EndpointModel:
        """The model itself: the endpoint decides what requests share."""
        return self


def warn_of_loss(why: Unreachable) -> None:
    """Warns that a run continues without an endpoint that is gone."""
    warnings.warn(f"The others continue without a server: {why}", stacklevel=3)
