"""An engine whose requests the actors of a Ray cluster answer."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from holdfast.chat.messages import Message
from holdfast.errors import RequestFailed
from holdfast.integrations.ray.actors import Actors, Replica, cause_of
from holdfast.models.event_loop import task_group
from holdfast.models.requests import Reply, ReplyTokens, Request

if TYPE_CHECKING:
    from holdfast.generation.reply_scoring import Scored
    from holdfast.integrations.ray.actor import CallOutcome
    from holdfast.models.session import LocalSession

_MAX_LOST_ACTORS = 3  # that a call may lose before it fails; the last has no other call


@dataclass
class _ThreadReplies:
    """The replies of a thread, by which another actor can continue exactly as the first would.

    Attributes:
        conversation: the conversation that the thread belongs to.
        actor: the actor that has the thread; None before the first reply.
        messages: those of the last request whose reply was kept, and that reply.
        tokens: the tokens of the replies among these messages.
    """

    conversation: Hashable
    actor: Replica | None = None
    messages: tuple[Message, ...] = ()
    tokens: tuple[ReplyTokens, ...] = ()

    def request_for(self, actor: Replica, request: Request) -> Request:
        """Returns a request, with the tokens of its earlier replies if the actor lacks them."""
        tokens = self._tokens_in(request)
        if actor is self.actor or not tokens:
            return request
        return replace(request, reply_token_ids=tokens)

    def keep(self, actor: Replica, request: Request, reply: Reply) -> None:
        """Adds a reply; from now on, the thread is that actor's."""
        earlier = self._tokens_in(request)
        self.actor = actor
        self.messages = (*request.messages, {"role": "assistant", "content": reply.text})
        self.tokens = (*earlier, (len(request.messages), reply.token_ids or ()))

    def _tokens_in(self, request: Request) -> tuple[ReplyTokens, ...]:
        """Returns the tokens of the replies among the messages of a request."""
        continues = request.messages[: len(self.messages)] == self.messages
        return self.tokens if continues else request.reply_token_ids


@dataclass
class _Part:
    """A part of the requests that are scored together, for one actor.

    Attributes:
        conversation: the conversation whose actor scores it; None: any actor.
        positions: the positions of its requests among all.
    """

    conversation: Hashable | None
    positions: list[int] = field(default_factory=list)


class _Answered(NamedTuple):
    """The result of a call, and the actor that computed it."""

    result: Any
    actor: Replica


class RaySession:
    """An engine whose requests are answered by actors; those that wait at one share its batch.

    A conversation stays with the actor that began it, which has its prefix. If that actor is lost,
    another one continues it, with the tokens of its earlier replies. A request that has lost two
    actors is given the next one alone, so that none is blamed for another. If that one is lost as
    well, the request fails.
    """

    def __init__(self, actors: Actors, number: int):
        self._actors = actors
        self._number = number
        self._threads: dict[Hashable, _ThreadReplies] = {}
        self._actor_of: dict[Hashable, Replica] = {}  # by conversation
        self._stack = AsyncExitStack()
        # the least of all actors; None if no actor has run out of memory
        self.reduced_max_sequences: int | None = None

    @property
    def replicas(self) -> int:
        """The number of actors."""
        return self._actors.count

    async def __aenter__(self) -> Self:
        group = await self._stack.enter_async_context(task_group())
        self._supervisor = group.create_task(self._actors.supervise())
        return self

    async def __aexit__(self, *error: Any) -> None:
        self._supervisor.cancel()
        try:
            await self._stack.__aexit__(*error)
        finally:
            for replica in self._actors.loaded:
                replica.handle.close.remote(self._number)

    async def generate(self, request: Request) -> Reply:
        """Answers a request; see `Engine.generate`."""
        thread = self._thread_of(request)
        answered = await self._call(
            _generate,
            lambda actor: (self._request_for(actor, request),),
            None if thread is None else thread.conversation,
        )
        reply: Reply = answered.result
        if thread is not None and request.keep and reply.stop_reason != "context":
            thread.keep(answered.actor, request, reply)
        return reply

    async def score(
        self, requests: Sequence[Request], replies: Sequence[Sequence[str]]
    ) -> list[Scored]:
        """Returns the log-probabilities of given replies, to which all actors contribute."""
        scored: dict[int, Scored] = {}

        async def score_part(part: _Part) -> None:
            def arguments_for(actor: Replica) -> tuple[Any, ...]:
                chats = [self._request_for(actor, requests[n]) for n in part.positions]
                return chats, [replies[n] for n in part.positions]

            answered = await self._call(_score, arguments_for, part.conversation)
            scored.update(zip(part.positions, answered.result, strict=True))

        parts = await self._parts_of(requests)
        async with task_group() as group:
            for part in parts:
                group.create_task(score_part(part))
        return [scored[position] for position in range(len(requests))]

    async def _parts_of(self, requests: Sequence[Request]) -> list[_Part]:
        """Divides requests by the actors of their conversations, and the others evenly."""
        by_actor: dict[Replica, _Part] = {}
        by_share: dict[int, _Part] = {}
        for position, request in enumerate(requests):
            thread = self._thread_of(request)
            if thread is None:
                share = position * self.replicas // len(requests)
                part = by_share.setdefault(share, _Part(None))
            else:
                actor = await self._choose(thread.conversation)
                part = by_actor.setdefault(actor, _Part(thread.conversation))
            part.positions.append(position)
        return [*by_actor.values(), *by_share.values()]

    async def call_with_session(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function with the session of the actor that has the least to do."""
        return (await self._call(function, lambda actor: arguments)).result

    def forget(self, thread: Hashable) -> None:
        """Frees what is kept for a thread; called once its dialog is over."""
        ended = self._threads.pop(thread, None)
        if ended is None:
            return
        if ended.actor in self._actors.replicas:
            ended.actor.handle.call.remote(self._number, _forget, (thread,))
        if all(other.conversation != ended.conversation for other in self._threads.values()):
            self._actor_of.pop(ended.conversation, None)

    def _thread_of(self, request: Request) -> _ThreadReplies | None:
        """Returns the replies of a request's thread; None if it belongs to none."""
        if request.thread is None:
            return None
        seed = request.conversation_seed
        conversation = request.thread if seed is None else seed
        return self._threads.setdefault(request.thread, _ThreadReplies(conversation))

    def _request_for(self, actor: Replica, request: Request) -> Request:
        """Returns the request with what an actor needs to continue its thread."""
        thread = self._thread_of(request)
        return request if thread is None else thread.request_for(actor, request)

    async def _call(
        self,
        function: Callable[..., Any],
        arguments_for: Callable[[Replica], Sequence[Any]],
        conversation: Hashable | None = None,
    ) -> _Answered:
        """Calls a function with the session of an actor and further arguments.

        If the actor is lost, another one is called.

        Args:
            arguments_for: returns the further arguments for an actor.
            conversation: the conversation whose actor is called; None calls any actor.

        Raises:
            RequestFailed: `_MAX_LOST_ACTORS` actors were lost while they worked on it.
        """
        import ray

        reason = ""
        for losses in range(_MAX_LOST_ACTORS):
            is_last = losses == _MAX_LOST_ACTORS - 1
            async with self._alone() if is_last else self._shared(conversation) as actor:
                future = actor.handle.call.remote(self._number, function, arguments_for(actor))
                try:
                    outcome: CallOutcome = await future
                except ray.exceptions.RayActorError as loss:
                    reason = self._actors.lose(actor, loss)
                    continue
                except ray.exceptions.RayTaskError as error:
                    raise cause_of(error, actor.node) from None
                except asyncio.CancelledError:
                    with suppress(Exception):
                        ray.cancel(future)
                    raise
            limits = (self.reduced_max_sequences, outcome.reduced_max_sequences)
            self.reduced_max_sequences = min(filter(None, limits), default=None)
            if outcome.error is not None:
                raise outcome.error
            return _Answered(outcome.result, actor)
        raise RequestFailed(f"Three actors were lost while they worked on it ({reason}).")

    @asynccontextmanager
    async def _shared(self, conversation: Hashable | None) -> AsyncIterator[Replica]:
        """Provides the actor for a call of a conversation; it may have other calls as well."""
        actor = await self._choose(conversation)
        actor.calls += 1
        try:
            yield actor
        finally:
            actor.calls -= 1
            if actor.reserved:
                self._actors.notify()

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[Replica]:
        """Provides an actor that has no other call."""
        actor = await self._choose(None)
        actor.reserved = True
        try:
            while actor.calls:
                await self._actors.wait_for_change()
                if actor not in self._actors.replicas:  # lost with one of its other calls
                    actor = await self._choose(None)
                    actor.reserved = True
            yield actor
        finally:
            actor.reserved = False
            self._actors.notify()

    async def _choose(self, conversation: Hashable | None) -> Replica:
        """Returns the actor of a conversation; without one, the actor that has the least to do."""
        while not (free := [actor for actor in self._actors.loaded if not actor.reserved]):
            await self._actors.wait_for_change()
        actor = self._actor_of.get(conversation)
        if actor in free:
            return actor
        conversations = Counter(self._actor_of.values())
        actor = min(free, key=lambda actor: (conversations[actor], actor.calls))
        if conversation is not None:
            self._actor_of[conversation] = actor
        return actor


def _generate(session: LocalSession, request: Request) -> Awaitable[Reply]:
    return session.generate(request)


def _score(
    session: LocalSession, requests: Sequence[Request], replies: Sequence[Sequence[str]]
) -> Awaitable[list[Scored]]:
    return session.score(requests, replies)


def _forget(session: LocalSession, thread: Hashable) -> None:
    session.forget(thread)
