"""Rehearsed replies, by which some methods become attention methods.

A rehearsal depends only on a chat's first turn and its methods, so one rehearsal serves the whole
dialog, and every dialog that begins like it.
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
from holdfast.generation.row_errors import naming_copies
from holdfast.generation.sampling import Penalties, Sampling
from holdfast.methods import Method, ShiftsAttention, compile_methods
from holdfast.models.rendering import Rendered
from holdfast.models.requests import Reply, Request

GenerateRendered = Callable[[Rendered], Coroutine[Any, Any, Reply]]
_AttentionMethods = Mapping[Method, ShiftsAttention]  # by the method that was resolved

# first turns whose methods are cached: about 0.4 MB each on a model of 1,000 heads, so 100 MB
_MAX_CACHED = 256


@dataclass(frozen=True)
class _RehearsalKey:
    """All that a rehearsal depends on."""

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
    waiting: int = 0  # chats that wait for it


class Rehearsals:
    """A session's rehearsed replies, and the attention methods they resolve to."""

    def __init__(self) -> None:
        # the least recently used first; a server renders chats in a thread of their own
        self._attention_methods = OrderedDict[_RehearsalKey, _AttentionMethods]()
        self._lock = threading.Lock()
        self._under_way: dict[_RehearsalKey, _UnderWay] = {}

    def resolved_if_known(self, request: Request) -> Request:
        """The request with its methods resolved; as it is if they have to be rehearsed first."""
        cached = self._cached(_key_of(request, rehearsal_of(request)))
        return request if cached is None else _with_methods(cached, request)

    async def rehearse(
        self, request: Request, rehearsal: Rendered, generate: GenerateRendered
    ) -> tuple[Request, int]:
        """The request with its methods resolved, and the tokens to charge it for the rehearsal.

        Requests that wait for the same rehearsal share it, and the first to go on is charged for
        it. It is cancelled once none of them waits any more.
        """
        key = _key_of(request, rehearsal.request)
        if (cached := self._cached(key)) is not None:
            return _with_methods(cached, request), 0
        with naming_copies(request.name):
            reply = await self._shared_reply(key, rehearsal, generate)
            if (cached := self._cached(key)) is not None:  # by another chat that waited
                return _with_methods(cached, request), 0
            resolved = _resolved_methods(request, reply)
        with self._lock:
            if len(self._attention_methods) >= _MAX_CACHED:
                self._attention_methods.popitem(last=False)
            self._attention_methods[key] = resolved
        return _with_methods(resolved, request), reply.forwarded

    async def _shared_reply(
        self, key: _RehearsalKey, rehearsal: Rendered, generate: GenerateRendered
    ) -> Reply:
        """The reply to a rehearsal, generated once for all chats that wait for it."""
        if key not in self._under_way:
            self._under_way[key] = _UnderWay(asyncio.create_task(generate(rehearsal)))
        shared = self._under_way[key]
        shared.waiting += 1
        try:
            # shielded, so that cancelling one of the chats leaves the others
            return await asyncio.shield(shared.task)
        finally:
            shared.waiting -= 1
            if shared.task.done() or not shared.waiting:
                shared.task.cancel()  # no effect if it has ended
                if self._under_way.get(key) is shared:
                    del self._under_way[key]

    def _cached(self, key: _RehearsalKey) -> _AttentionMethods | None:
        with self._lock:
            cached = self._attention_methods.get(key)
            if cached is not None:
                self._attention_methods.move_to_end(key)
            return cached


def _resolved_methods(request: Request, reply: Reply) -> _AttentionMethods:
    """The attention methods that the reply to `rehearsal_of(request)` resolves."""
    # There is no trace if the first turn has no span (no system prompt and no emphasis) or leaves
    # no room for a reply. The chat then goes on without these methods: the empty entry says that
    # its rehearsal is over.
    resolved: dict[Method, ShiftsAttention] = {}
    if reply.trace is not None:
        for method in request.compiled.rehearsed:
            mass = reply.trace.mass[..., : method.max_rehearsal_tokens]
            resolved[method] = method.resolve(mass)
    return resolved


def _with_methods(attention_methods: _AttentionMethods, request: Request) -> Request:
    methods = compile_methods(attention_methods.get(method, method) for method in request.methods)
    return replace(request, methods=methods.without_rehearsed.methods)


def rehearsal_of(request: Request) -> Request:
    """The request whose reply resolves another's methods: its first turn, answered greedily."""
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
        # the user has no message in the whole chat, and the reply continues its last one
        continue_final_message=(
            request.continue_final_message and len(messages) == len(request.messages)
        ),
        name="",  # several requests may wait for it
    )


def _key_of(request: Request, rehearsal: Request) -> _RehearsalKey:
    """The key of the rehearsal of a request: whatever its rendering or its methods depend on."""
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
    return json.dumps(value)  # in its order of keys, which a template may show
