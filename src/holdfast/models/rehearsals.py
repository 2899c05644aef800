"""Rehearses replies, from which some methods, such as `hold`, become attention methods.

A rehearsal depends only on a chat's first turn and its methods, so one rehearsal serves the whole
conversation, and every conversation with the same beginning.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any

from holdfast.chat.emphasis import TextRange
from holdfast.errors import PromptError, UsageError
from holdfast.generation.request_errors import name_shared_errors
from holdfast.generation.sampling import Penalties, Sampling
from holdfast.methods import Method, ShiftsAttention, compile_methods
from holdfast.models.rendering import RenderedRequest
from holdfast.models.requests import Reply, Request

AnswerRendered = Callable[[RenderedRequest], Coroutine[Any, Any, Reply]]
_AttentionMethods = Mapping[Method, ShiftsAttention]  # by the method that they replace

# first turns whose methods are cached: 100 MB in all, with 0.4 MB each for a model of 1,000 heads
_MAX_CACHED = 256


@dataclass(frozen=True)
class _RehearsalKey:
    """Everything that a rehearsal depends on."""

    messages: str  # of the first turn, as JSON
    emphasis: tuple[TextRange, ...]
    methods: tuple[Method, ...]
    editing_seed: int | None  # None if no method edits messages
    system_as: str
    plain: bool
    continues: bool
    tools: str  # as JSON


@dataclass
class _UnderWay:
    """A rehearsal under way."""

    task: asyncio.Task[Reply]
    waiting: int = 0  # the number of requests that wait for it


class Rehearsals:
    """Makes the rehearsals of a session, and keeps the attention methods that result."""

    def __init__(self) -> None:
        # the least recently used first; locked, as a server renders requests in another thread
        self._attention_methods = OrderedDict[_RehearsalKey, _AttentionMethods]()
        self._lock = threading.Lock()
        self._under_way: dict[_RehearsalKey, _UnderWay] = {}

    def resolve_if_known(self, request: Request) -> Request:
        """Resolves the methods of a request; returns it unchanged if they need a rehearsal."""
        cached = self._look_up(_key_of(request, rehearsal_of(request)))
        return request if cached is None else _with_methods(cached, request)

    async def rehearse(
        self, rendered: RenderedRequest, rehearsal: RenderedRequest, answer: AnswerRendered
    ) -> RenderedRequest:
        """Resolves the methods of a request by its rehearsal.

        Requests that wait for the same rehearsal share it, and the first one to continue bears its
        cost. When none of them waits any longer, it is cancelled.
        """
        request = rendered.request
        key = _key_of(request, rehearsal.request)
        if (cached := self._look_up(key)) is not None:
            return rendered.with_resolved(_with_methods(cached, request), 0)
        with name_shared_errors(request.name):
            reply = await self._shared_reply(key, rehearsal, answer)
            if (cached := self._look_up(key)) is not None:  # another request has continued first
                return rendered.with_resolved(_with_methods(cached, request), 0)
            resolved = _resolve_methods(request, reply)
        with self._lock:
            if len(self._attention_methods) >= _MAX_CACHED:
                self._attention_methods.popitem(last=False)
            self._attention_methods[key] = resolved
        return rendered.with_resolved(_with_methods(resolved, request), reply.forwarded)

    async def _shared_reply(
        self, key: _RehearsalKey, rehearsal: RenderedRequest, answer: AnswerRendered
    ) -> Reply:
        """The reply to a rehearsal, generated once for all requests that wait for it."""
        if key not in self._under_way:
            self._under_way[key] = _UnderWay(asyncio.create_task(answer(rehearsal)))
        shared = self._under_way[key]
        shared.waiting += 1
        try:
            # shielded, so that cancelling one of the requests does not cancel the others
            return await asyncio.shield(shared.task)
        finally:
            shared.waiting -= 1
            if shared.task.done() or not shared.waiting:
                shared.task.cancel()  # no effect if it has ended
                if self._under_way.get(key) is shared:
                    del self._under_way[key]

    def _look_up(self, key: _RehearsalKey) -> _AttentionMethods | None:
        """The attention methods of a rehearsal; None if it is not in the cache."""
        with self._lock:
            cached = self._attention_methods.get(key)
            if cached is not None:
                self._attention_methods.move_to_end(key)
            return cached


def _resolve_methods(request: Request, reply: Reply) -> _AttentionMethods:
    """Makes the attention methods from the reply to `rehearsal_of(request)`."""
    # There is no trace if the first turn has no span (no system prompt and no emphasis) or leaves
    # no room for a reply. The chat then continues without these methods: an empty entry in the
    # cache says that its rehearsal is over.
    resolved: dict[Method, ShiftsAttention] = {}
    if reply.trace is not None:
        for method in request.compiled.rehearsed:
            mass = reply.trace.mass[..., : method.max_rehearsal_tokens]
            resolved[method] = method.resolve(mass)
    return resolved


def _with_methods(attention_methods: _AttentionMethods, request: Request) -> Request:
    """Replaces the methods that were rehearsed; leaves out any without an attention method."""
    methods = compile_methods(attention_methods.get(method, method) for method in request.methods)
    return replace(request, methods=methods.without_rehearsed.methods)


def rehearsal_of(request: Request) -> Request:
    """The rehearsal of a request: its first turn, to be answered greedily.

    Raises:
        UsageError: two methods read different first turns of the chat.
        PromptError: the emphasised text comes after the first turn.
    """
    rehearsed = request.compiled.rehearsed
    messages = rehearsed[0].first_turn(request.messages)
    for method in rehearsed[1:]:
        if list(method.first_turn(request.messages)) != list(messages):
            raise UsageError(
                f"{rehearsed[0].name} and {method.name} read different first turns of a chat, and"
                " one rehearsal serves both; use one of them.",
                option="method",
            )
    emphasis = tuple(part for part in request.emphasis if part.message < len(messages))
    if request.emphasis and not emphasis:
        raise PromptError(
            f"{rehearsed[0].name} reads the mass on a span in the reply to the first turn, and the"
            " emphasised text comes after it; emphasise a text of the first turn, or use boost."
        )
    tokens = max(method.max_rehearsal_tokens for method in rehearsed)
    return replace(
        request,
        methods=request.compiled.without_rehearsed.methods,
        messages=messages,
        sampling=Sampling(temperature=0.0, top_p=1.0, max_new_tokens=tokens),
        penalties=Penalties(),
        grammar=None,
        conversation_seed=request.editing_seed,
        seed=0,
        thread=None,
        keep=False,
        trace=True,
        emphasis=emphasis,
        room=1,
        reply_token_ids=(),
        # only if the first turn is the whole chat, because the user has no message in it
        continue_final_message=(
            request.continue_final_message and len(messages) == len(request.messages)
        ),
        name="",  # several requests may share it
    )


def _key_of(request: Request, rehearsal: Request) -> _RehearsalKey:
    """The key of a rehearsal: everything that its rendering or its methods depend on."""
    return _RehearsalKey(
        messages=_as_json(rehearsal.messages),
        emphasis=rehearsal.emphasis,
        methods=request.methods,
        editing_seed=rehearsal.editing_seed if request.compiled.messages else None,
        system_as=rehearsal.system_as,
        plain=rehearsal.plain,
        continues=rehearsal.continue_final_message,
        tools=_as_json(rehearsal.tools),
    )


def _as_json(value: object) -> str:
    return json.dumps(value)  # in their own order of keys, which a template may show
