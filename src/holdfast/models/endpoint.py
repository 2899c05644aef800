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
from holdfast.models.protocol import Generates
from holdfast.models.request_batches import generate_all, prepare_batch
from holdfast.models.requests import Reply, Request

if TYPE_CHECKING:
    from openai import AsyncOpenAI


@dataclass(frozen=True)
class EndpointModel(Generates):
    """A model behind one endpoint, or behind several that serve the same model; `connect` and
    `connect_all` make it.

    Methods that edit messages work everywhere. Methods that need attention or logits work if the
    server reports at `/v1/steering` that it applies them, and are refused by name otherwise.

    A conversation stays with one of the endpoints. If that one becomes unavailable, the others
    continue the conversation from the request that it did not answer; earlier replies are not lost.

    Args:
        servers: the endpoints that answered when they were connected; at least one.
        url: the first address that was given, whether or not its server answered; it identifies a
            run if the servers do not report their weights.
    """

    servers: tuple[Server, ...]
    url: str
    independent: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The model's name at the endpoint."""
        return self.servers[0].endpoint.model

    @property
    def fingerprint(self) -> str:
        """The model's name and the identity that the server reports, preceded by the first address
        if the server does not identify its weights, since other servers may then differ.
        """
        offered = self.servers[0].offered
        parts = [self.name]
        if offered.fingerprint is None:
            parts.insert(0, self.url)
        if offered.identity is not None:
            parts.append(offered.identity)
        return " ".join(parts)

    @property
    def about(self) -> dict[str, list[str]]:
        """Facts for the manifest of a run: the addresses of the servers."""
        return {"servers": [server.endpoint.url for server in self.servers]}

    @property
    def runtime(self) -> dict[str, str | int]:
        """Always empty: the software behind an address is not visible from here."""
        return {}

    @property
    def capabilities(self) -> frozenset[Ability]:
        """The abilities that methods can use: messages, and those that the server reports."""
        return self.servers[0].offered.capabilities

    @property
    def default_steering(self) -> str | None:
        """The server's methods for requests that name none, which are never sent from here."""
        return self.servers[0].offered.default

    @property
    def num_repeated(self) -> int:
        """How many requests were sent again, because they failed or their answers were unusable."""
        return sum(server.num_repeated for server in self.servers)

    def check(self, methods: Sequence[Method]) -> None:
        """Refuses methods that one of the endpoints cannot serve, with a `ModelError`."""
        for server in self.servers:
            server.check(methods)

    def reach(self) -> None:
        """Asks servers again what they offer if their first answer left that open.

        Raises:
            ModelError: a server still does not answer.
        """
        for server in self.servers:
            server.reach()

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers many chats, up to `concurrency` at a time at each endpoint.

        Returns the replies in the order of the requests.

        A server that steers gets the whole seed, and draws from it as a local model does. Any other
        server gets the seed modulo 2**31, which every server can read; whether the same seed then
        gives the same reply depends on the server. A server that refuses seeds by name gets none,
        and a warning says so once. A refused temperature or top_p is left out if it is 1, the
        protocol's default.

        Raises:
            ModelError: an endpoint cannot serve a method or emphasis (checked before anything is
                sent), or a request has failed for good, after which no further one is started.
        """
        for request in requests:
            for server in self.servers:
                server.check_request(request)
        batch = prepare_batch(requests)

        async def answer_all() -> list[Reply]:
            async with self.session() as engine:
                return await generate_all(engine.generate, batch)

        return run_sync(answer_all())

    def stream(self, request: Request, write: Callable[[str], None]) -> Reply:
        """Answers one chat; `write` receives the text piece by piece as it arrives.

        The pieces also include the reasoning if the server leaves that in the text. An answer that
        breaks off is not requested again.
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
        """The endpoints that have not been lost; if all have been, all are tried again."""
        if all(server.unavailable for server in self.servers):
            for server in self.servers:
                server.unavailable = None
        return [server for server in self.servers if not server.unavailable]

    def session(self) -> EndpointSession:
        """Opens an engine over the available endpoints."""
        return EndpointSession(self.available())


@dataclass(frozen=True, order=True)
class _Waiting:
    """A waiting request.

    Waiting requests sort by conversation, oldest first. In a conversation, a request whose reply
    becomes part of the thread comes before forks of it, because later requests depend on it.
    """

    first_number: int  # of the requests of its conversation
    is_fork: bool
    number: int
    conversation: Hashable | None = field(compare=False)  # None if it belongs to none
    assigned: asyncio.Future[Server] = field(compare=False)  # the server to send it to


class EndpointSession:
    """An engine that sends requests to endpoints of one model, `concurrency` at a time to each.

    A conversation stays with the endpoint that began it, whose cache has its prefix, and has
    priority over conversations that began later. Each request sends the whole chat, so that another
    endpoint can continue if one is lost. This model does not ask a lost endpoint again while others
    are available, and a warning says so.
    """

    def __init__(self, servers: Sequence[Server]):
        self._servers = servers
        self._clients: dict[Server, AsyncOpenAI] = {}
        # heaps of the requests for each server; those under None may go to any server
        self._waiting: dict[Server | None, list[_Waiting]] = {
            server: [] for server in (None, *servers)
        }
        self._server_of: dict[Hashable, Server] = {}  # by conversation
        self._first_number: dict[Hashable, int] = {}  # of the requests of each conversation
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
            RequestFailed: this request cannot be answered; others can.
            Unreachable: all endpoints have been lost.
            ModelError: the endpoint cannot serve a method or emphasis.
        """
        while True:
            server = await self._acquire_server(request)
            try:
                return await server.answer(self._client_of(server), request)
            except Unreachable as error:
                self._mark_unavailable(server, error)
                if self._all_unavailable():
                    raise
            finally:
                self._under_way[server] -= 1
                # not at once: the next request of this conversation, which has priority, is still
                # to be queued
                asyncio.get_running_loop().call_soon(self._dispatch)

    def forget(self, thread: Hashable) -> None:
        """Does nothing: an endpoint keeps nothing for a thread."""

    def _client_of(self, server: Server) -> AsyncOpenAI:
        if server not in self._clients:
            self._clients[server] = server.open_client()
        return self._clients[server]

    async def _acquire_server(self, request: Request) -> Server:
        """Waits until an endpoint has room for the request, and reserves that room."""
        number = next(self._numbers)
        conversation = None if request.thread is None else request.conversation_seed
        first_number = number
        if conversation is not None:
            first_number = self._first_number.setdefault(conversation, number)
        assigned: asyncio.Future[Server] = asyncio.get_running_loop().create_future()
        waiting = _Waiting(
            first_number=first_number,
            is_fork=not request.keep,
            number=number,
            conversation=conversation,
            assigned=assigned,
        )
        self._queue(waiting)
        self._dispatch()
        try:
            return await assigned
        except asyncio.CancelledError:
            if assigned.done() and not assigned.cancelled():
                self._under_way[assigned.result()] -= 1
                self._dispatch()
            raise

    def _queue(self, waiting: _Waiting) -> None:
        heappush(self._waiting[self._server_of.get(waiting.conversation)], waiting)

    def _dispatch(self) -> None:
        """Gives the endpoints the requests they have room for, one at a time to the least busy."""
        has_dispatched = True
        while has_dispatched:
            least_busy_first = sorted(self._servers, key=self._under_way.__getitem__)
            # any() stops at the first endpoint that takes a request, which changes the order
            has_dispatched = any(self._dispatch_to(server) for server in least_busy_first)

    def _dispatch_to(self, server: Server) -> bool:
        """Gives an endpoint one request; False if it has no room, or no request waits for it."""
        if server.unavailable or self._under_way[server] >= server.endpoint.concurrency:
            return False
        waiting = self._pop_next(server)
        if waiting is None:
            return False
        self._under_way[server] += 1
        waiting.assigned.set_result(server)
        return True

    def _pop_next(self, server: Server) -> _Waiting | None:
        """Removes the first request that an endpoint may take, and ties its conversation to the
        endpoint; None if there is no such request.
        """
        while heaps := [heap for heap in (self._waiting[server], self._waiting[None]) if heap]:
            waiting = heappop(min(heaps, key=lambda heap: heap[0]))
            if waiting.assigned.cancelled():
                continue
            if waiting.conversation is None:
                return waiting
            if self._server_of.setdefault(waiting.conversation, server) is server:
                return waiting
            self._queue(waiting)
        return None

    def _all_unavailable(self) -> bool:
        return all(server.unavailable for server in self._servers)

    def _mark_unavailable(self, server: Server, error: Unreachable) -> None:
        """Hands the conversations of a lost endpoint to any of the others."""
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
                if not waiting.assigned.done():
                    waiting.assigned.set_exception(error)
            self._waiting[None].clear()


def warn_of_loss(why: Unreachable) -> None:
    """Warns that a run continues without an endpoint that does not answer."""
    warnings.warn(f"The others continue without a server: {why}", stacklevel=3)
