"""Chat models behind OpenAI-compatible endpoints, with the interface of the local ones."""

from __future__ import annotations

import asyncio
import itertools
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, ClassVar, Self

from holdfast.errors import Unreachable
from holdfast.methods import Ability, Method
from holdfast.models.endpoint_server import Server
from holdfast.models.event_loop import run_sync
from holdfast.models.protocol import Generates, checked_batch, generate_all
from holdfast.models.requests import Reply, Request

if TYPE_CHECKING:
    from openai import AsyncOpenAI


@dataclass(frozen=True)
class EndpointModel(Generates):
    """A model behind one endpoint, or behind several that serve the same model; made by `connect`
    and `connect_all`.

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
        """The model's name at the endpoint."""
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
        """Asks servers again what they offer, if their first answer left that open; raises a
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
        batch = checked_batch(requests)

        async def answer_all() -> list[Reply]:
            async with self.session() as engine:
                return await generate_all(engine.generate, batch)

        return run_sync(answer_all())

    def stream(self, request: Request, write: Callable[[str], None]) -> Reply:
        """Answers one chat; `write` receives the text piece by piece as it arrives, and the pieces
        form the whole reply, after its reasoning if the server leaves that in the text. An answer
        that breaks off is not requested again.
        """
        server = self.available()[0]

        async def answer() -> Reply:
            async with (
                server.open_client() as client,
                aclosing(server.stream(client, request)) as events,
            ):
                async for event in events:
                    if isinstance(event, Reply):
                        return event
                    write(event)
            raise AssertionError("a stream ends with its reply")

        try:
            return run_sync(answer())
        finally:
            server.warn_of_seeds()

    def available(self) -> list[Server]:
        """The endpoints that are not gone; if all are gone, all are tried again."""
        if all(server.unavailable for server in self.servers):
            for server in self.servers:
                server.unavailable = None
        return [server for server in self.servers if not server.unavailable]

    def session(self) -> EndpointSession:
        """Opens an engine."""
        return EndpointSession(self.available())


@dataclass(frozen=True, order=True)
class _Waiting:
    """A waiting request; earlier conversations first, and in each those that others wait for."""

    begun: int
    fork: bool
    number: int
    conversation: Hashable | None = field(compare=False)  # None if it belongs to none
    server: asyncio.Future[Server] = field(compare=False)  # that it is sent to


class EndpointSession:
    """An engine that sends requests to endpoints of one model, `concurrency` at a time to each.

    A conversation stays with the endpoint that began it, which has its prefix in a cache, and is
    completed before others begin. Each request sends the whole chat, so that another endpoint can
    continue if the first one is gone; that one is not asked again by this model as long as others
    are available, and a warning says so.
    """

    def __init__(self, servers: Sequence[Server]):
        self._servers = servers
        self._clients: dict[Server, AsyncOpenAI] = {}
        self._waiting: dict[Server | None, list[_Waiting]] = {  # heaps; None: for any
            server: [] for server in (None, *servers)
        }
        self._server_of: dict[Hashable, Server] = {}  # by conversation
        self._begun: dict[Hashable, int] = {}
        self._under_way: Counter[Server] = Counter()
        self._numbers = itertools.count()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        for client in self._clients.values():
            await client.close()
        for server in self._servers:
            if server.unavailable and error[0] is None:
                warn_of_loss(server.unavailable)
            server.warn_of_seeds()

    async def generate(self, request: Request) -> Reply:
        """Answers a request; see `Engine.generate`.

        Raises:
            RequestFailed: the request fails by itself.
            Unreachable: all endpoints are gone.
            ModelError: a method or emphasis that the endpoint cannot serve.
        """
        while True:
            server = await self._turn(request)
            try:
                return await server.answer(self._client_of(server), request)
            except Unreachable as error:
                self._lose(server, error)
                if self._all_unavailable():
                    raise
            finally:
                self._under_way[server] -= 1
                # only once its conversation may have asked on, which comes before any other
                asyncio.get_running_loop().call_soon(self._start)

    def _all_unavailable(self) -> bool:
        return all(server.unavailable for server in self._servers)

    def forget(self, thread: Hashable) -> None:
        """Nothing is kept for a thread here."""

    def _client_of(self, server: Server) -> AsyncOpenAI:
        if server not in self._clients:
            self._clients[server] = server.open_client()
        return self._clients[server]

    async def _turn(self, request: Request) -> Server:
        """Waits until an endpoint has room for the request, and takes it."""
        number = next(self._numbers)
        conversation = None if request.thread is None else request.conversation_seed
        begun = number
        if conversation is not None:
            begun = self._begun.setdefault(conversation, number)
        server: asyncio.Future[Server] = asyncio.get_running_loop().create_future()
        self._queue(_Waiting(begun, not request.keep, number, conversation, server))
        self._start()
        try:
            return await server
        except asyncio.CancelledError:
            if server.done() and not server.cancelled():
                self._under_way[server.result()] -= 1
                self._start()
            raise

    def _queue(self, waiting: _Waiting) -> None:
        heappush(self._waiting[self._server_of.get(waiting.conversation)], waiting)

    def _start(self) -> None:
        """Gives the endpoints the requests they have room for, one at a time to the least busy."""
        while any(map(self._start_one, sorted(self._servers, key=self._under_way.__getitem__))):
            pass

    def _start_one(self, server: Server) -> bool:
        """Gives an endpoint a request, if it has room for one and one waits for it."""
        if server.unavailable or self._under_way[server] >= server.concurrency:
            return False
        waiting = self._next_of(server)
        if waiting is None:
            return False
        self._under_way[server] += 1
        waiting.server.set_result(server)
        return True

    def _next_of(self, server: Server) -> _Waiting | None:
        """The first request that an endpoint may take; its conversation stays there."""
        while heaps := [heap for heap in (self._waiting[server], self._waiting[None]) if heap]:
            waiting = heappop(min(heaps, key=lambda heap: heap[0]))
            if waiting.server.cancelled():
                continue
            if waiting.conversation is None:
                return waiting
            if self._server_of.setdefault(waiting.conversation, server) is server:
                return waiting
            self._queue(waiting)
        return None

    def _lose(self, server: Server, error: Unreachable) -> None:
        """Lets the conversations of a lost endpoint continue wherever there is room."""
        server.unavailable = error
        self._server_of = {
            conversation: other
            for conversation, other in self._server_of.items()
            if other is not server
        }
        abandoned = self._waiting[server]
        self._waiting[server] = []
        for waiting in abandoned:
            self._queue(waiting)
        if self._all_unavailable():
            for waiting in self._waiting[None]:
                if not waiting.server.done():
                    waiting.server.set_exception(error)
            self._waiting[None].clear()


def warn_of_loss(why: Unreachable) -> None:
    """Warns that a run continues without an endpoint that is gone."""
    warnings.warn(f"The others continue without a server: {why}", stacklevel=3)
