"""An engine whose requests are answered by the actors of a Ray cluster."""

from __future__ import annotations

import asyncio
import operator
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from holdfast.chat.messages import Message
from holdfast.errors import RequestFailed
from holdfast.integrations.ray.actors import Actors, Replica, cause_of
from holdfast.models.event_loop import task_group
from holdfast.models.requests import Reply, ReplyTokens, Request

if TYPE_CHECKING:
    from holdfast.generation.reply_scoring import Scored
    from holdfast.integrations.ray.actor import Outcome

_MOST_LOSSES = 3  # actors that a call may lose; the last one has no other call


@dataclass
class _Thread:
    """A thread of requests, as far as another actor needs it to go on exactly as the first one."""

    conversation: Hashable
    actor: Replica | None = None  # that has it
    messages: tuple[Message, ...] = ()  # of the last request whose reply was kept, and that reply
    replies: tuple[ReplyTokens, ...] = ()  # the tokens of the replies among them

    def request_for(self, actor: Replica, request: Request) -> Request:
        """The request, with the tokens of its earlier replies if the actor does not have them."""
        known = self._known_replies(request)
        if actor is self.actor or not known:
            return request
        return replace(request, reply_token_ids=known)

    def keep(self, actor: Replica, request: Request, reply: Reply) -> None:
        before = self._known_replies(request)
        self.actor = actor
        self.messages = (*request.messages, {"role": "assistant", "content": reply.text})
        self.replies = (*before, (len(request.messages), reply.token_ids or ()))

    def _known_replies(self, request: Request) -> tuple[ReplyTokens, ...]:
        continues = request.messages[: len(self.messages)] == self.messages
        return self.replies if continues else request.reply_token_ids


class RaySession:
    """An engine whose requests are answered by actors; those that wait at one share its batch.

    A conversation stays with the actor that began it, which has its prefix. If that is lost,
    another actor continues it, with the tokens of its earlier replies. A request that has lost two
    actors gets the next one for itself, so that none is blamed for another; if it loses that too,
    it fails.
    """

    def __init__(self, actors: Actors, number: int):
        self._actors, self._number = actors, number
        self._threads: dict[Hashable, _Thread] = {}
        self._actor_of: dict[Hashable, Replica] = {}  # by conversation
        self._stack = AsyncExitStack()
        self.rows_at_most: int | None = None  # the fewest of an actor whose memory ran out

    @property
    def replicas(self) -> int:
        """How many actors there are."""
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
        if thread is None:
            reply: Reply = await self._call(None, lambda actor: (_generate, request))
            return reply
        last: Replica | None = None

        def call(actor: Replica) -> tuple[Any, ...]:
            nonlocal last
            last = actor
            return _generate, thread.request_for(actor, request)

        reply = await self._call(thread.conversation, call)
        if request.keep and reply.stop_reason != "context":
            assert last is not None
            thread.keep(last, request, reply)
        return reply

    async def score(
        self, requests: Sequence[Request], replies: Sequence[Sequence[str]]
    ) -> list[Scored]:
        """The log-probabilities of given replies; every actor computes a part of them."""
        parts = defaultdict[Hashable, list[int]](list)
        for index, request in enumerate(requests):
            thread = self._thread_of(request)
            if thread is None:
                parts[index * self.replicas // len(requests)].append(index)
            else:
                parts[await self._choose(thread.conversation)].append(index)

        async def score(part: list[int]) -> list[Scored]:
            some = [requests[index] for index in part]
            wanted = [replies[index] for index in part]
            thread = self._thread_of(some[0])
            conversation = None if thread is None else thread.conversation
            scored: list[Scored] = await self._call(
                conversation, lambda actor: (operator.methodcaller("score", some, wanted),)
            )
            return scored

        async with task_group() as group:
            tasks = [group.create_task(score(part)) for part in parts.values()]
        scored = {
            index: value
            for part, task in zip(parts.values(), tasks, strict=True)
            for index, value in zip(part, task.result(), strict=True)
        }
        return [scored[index] for index in range(len(requests))]

    async def compute(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function with the session of the actor that has the least to do."""
        return await self._call(None, lambda actor: (function, *arguments))

    def forget(self, thread: Hashable) -> None:
        """Frees what was kept for a thread; called when its dialog is over."""
        if (known := self._threads.pop(thread, None)) is None:
            return
        if known.actor in self._actors.replicas:
            forget = operator.methodcaller("forget", thread)
            known.actor.handle.call.remote(self._number, forget, ())
        if all(other.conversation != known.conversation for other in self._threads.values()):
            self._actor_of.pop(known.conversation, None)

    def _thread_of(self, request: Request) -> _Thread | None:
        name, seed = request.thread, request.conversation_seed
        if name is None:
            return None
        return self._threads.setdefault(name, _Thread(name if seed is None else seed))

    async def _call(
        self, conversation: Hashable | None, call: Callable[[Replica], tuple[Any, ...]]
    ) -> Any:
        """The result of a call, a function and its arguments, of which `call` may be asked again.

        Raises:
            RequestFailed: three actors were lost while they worked on it.
        """
        import ray

        why = ""
        for losses in range(_MOST_LOSSES):
            is_last = losses == _MOST_LOSSES - 1
            async with self._alone() if is_last else self._placed(conversation) as actor:
                function, *arguments = call(actor)
                future = actor.handle.call.remote(self._number, function, arguments)
                try:
                    outcome: Outcome = await future
                except ray.exceptions.RayActorError as loss:
                    why = self._actors.lose(actor, loss)
                    continue
                except ray.exceptions.RayTaskError as error:
                    raise cause_of(error, actor.node) from None
                except asyncio.CancelledError:
                    with suppress(Exception):
                        ray.cancel(future)
                    raise
            rows = (self.rows_at_most, outcome.rows_at_most)
            self.rows_at_most = min((some for some in rows if some is not None), default=None)
            if outcome.error is not None:
                raise outcome.error
            return outcome.result
        raise RequestFailed(f"Three actors were lost while they worked on it ({why}).")

    @asynccontextmanager
    async def _placed(self, conversation: Hashable | None) -> AsyncIterator[Replica]:
        """The actor for a call of a conversation."""
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
        """An actor without any other call."""
        actor = await self._choose(None)
        actor.reserved = True
        try:
            while actor.calls:
                await self._actors.change()
                if actor not in self._actors.replicas:  # lost with one of its other calls
                    actor = await self._choose(None)
                    actor.reserved = True
            yield actor
        finally:
            actor.reserved = False
            self._actors.notify()

    async def _choose(self, conversation: Hashable | None) -> Replica:
        """The actor of a conversation, or the one with the least to do."""
        while not (free := [actor for actor in self._actors.loaded if not actor.reserved]):
            await self._actors.change()
        if (known := self._actor_of.get(conversation)) in free:
            return known
        conversations = Counter(self._actor_of.values())
        actor = min(free, key=lambda actor: (conversations[actor], actor.calls))
        if conversation is not None:
            self._actor_of[conversation] = actor
        return actor


def _generate(session: Any, request: Request) -> Any:
    return session.generate(request)
