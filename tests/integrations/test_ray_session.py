"""Requests on Ray's actors, without Ray: what another actor gets once one is lost."""

import asyncio
import sys
from dataclasses import replace
from inspect import isawaitable
from types import ModuleType, SimpleNamespace

import pytest
from tiny import chat

from holdfast.errors import RequestFailed
from holdfast.integrations.ray.actor import CallOutcome, Specification
from holdfast.integrations.ray.actors import Actors, Replica, Resources
from holdfast.integrations.ray.ray_session import RaySession
from holdfast.models.requests import Reply, Request

REPLY = Reply("Fine.", (5, 6), "stop")
FIRST = Request(chat("Be brief.", "Hi."), thread=("agent", 0), conversation_seed=7, keep=True)
SAID = ({"role": "assistant", "content": REPLY.text}, {"role": "user", "content": "More?"})
SECOND = replace(FIRST, messages=(*FIRST.messages, *SAID))


class Lost(Exception):
    """An actor is dead because it was killed."""


class Handle:
    """An actor in this process, whose session notes its requests."""

    def __init__(self):
        self.requests, self.forgotten, self.is_lost = [], [], False
        self.call = SimpleNamespace(remote=self._call)

    async def generate(self, request):
        self.requests.append(request)
        return REPLY

    async def score(self, requests, replies):
        self.requests += requests
        return list(replies)

    def forget(self, thread):
        self.forgotten.append(thread)

    def _call(self, session, function, arguments):
        called = function(self, *arguments)

        async def outcome():
            result = await called if isawaitable(called) else called
            if self.is_lost:
                raise Lost
            return CallOutcome(result, None, None)

        return asyncio.ensure_future(outcome())


@pytest.fixture
def actors(monkeypatch):
    """Two actors that are loaded, and Ray as far as their loss needs it."""
    ray = ModuleType("ray")
    ray.exceptions = SimpleNamespace(RayActorError=Lost, RayTaskError=type("Failed", (Lost,), {}))
    ray.kill = lambda handle: None
    monkeypatch.setitem(sys.modules, "ray", ray)
    started = Actors(Specification(), Resources(1, 0), 2, "local")
    started.replicas = [Replica(Handle(), None, description=object()) for _ in range(2)]
    return started


def of_two_turns(actors, ask):
    """The handles of the actor that answered the first turn, and of the other one, after
    `ask(session)`; the first one is lost in between.
    """

    async def run():
        session = RaySession(actors, 0)
        await session.generate(FIRST)
        first, second = sorted((r.handle for r in actors.replicas), key=lambda h: not h.requests)
        first.is_lost = True
        await ask(session)
        return first, second

    return asyncio.run(run())


def test_another_actor_goes_on_with_the_tokens_of_earlier_replies(actors):
    first, second = of_two_turns(actors, lambda session: session.generate(SECOND))
    assert first.requests == [FIRST, SECOND]
    (request,) = second.requests
    assert request == replace(SECOND, reply_token_ids=((len(FIRST.messages), REPLY.token_ids),))
    assert [replica.handle for replica in actors.replicas] == [second]


def test_another_actor_scores_with_the_tokens_of_earlier_replies(actors):
    first, second = of_two_turns(actors, lambda session: session.score([SECOND], [["yes"]]))
    assert first.requests == [FIRST, SECOND]
    (request,) = second.requests
    assert request.reply_token_ids == ((len(FIRST.messages), REPLY.token_ids),)


def test_scores_come_in_the_order_of_their_requests(actors):
    requests = [FIRST, replace(FIRST, thread=None), replace(FIRST, thread=None), SECOND]
    replies = [["a"], ["b"], ["c"], ["d"]]
    assert asyncio.run(RaySession(actors, 0).score(requests, replies)) == replies
    assert all(replica.handle.requests for replica in actors.replicas)


def test_a_call_that_loses_every_actor_fails(actors):
    actors.replicas.append(Replica(Handle(), None, description=object()))
    for replica in actors.replicas:
        replica.handle.is_lost = True
    with pytest.raises(RequestFailed):
        asyncio.run(RaySession(actors, 0).generate(FIRST))


def test_a_thread_is_forgotten_by_the_actor_that_has_it(actors):
    async def run():
        session = RaySession(actors, 0)
        await session.generate(FIRST)
        session.forget(FIRST.thread)

    asyncio.run(run())
    forgotten = [replica.handle.forgotten for replica in actors.replicas]
    assert sorted(forgotten) == [[], [FIRST.thread]]
