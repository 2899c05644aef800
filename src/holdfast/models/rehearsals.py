"""Rehearsed replies, by which some methods become attention methods.

A rehearsal depends only on a chat's first turn and its other methods, so one rehearsal serves the
whole dialog, and every dialog that begins like it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.chat.emphasis import Range
from holdfast.common.sampling import Sampling
from holdfast.errors import PromptError
from holdfast.methods import Method, ShiftsAttention
from holdfast.models.rendering import Rendered
from holdfast.models.requests import Reply, Request

GenerateRendered = Callable[[Rendered], Coroutine[Any, Any, Reply]]

_AttentionMethods = Mapping[Method, ShiftsAttention]  # by the method that was resolved

_MAX_REHEARSALS = 10_000  # first turns; for a large model each is a few thousand numbers


@dataclass(frozen=True)
class _RehearsalKey:
    """All that a rehearsal depends on."""

    first_turn: tuple[tuple[str, str], ...]  # the role and content of each message
    methods: tuple[Method, ...]
    editing_seed: int | None  # None if no method edits messages
    system_as: str
    emphasis: tuple[Range, ...]  # in the first turn
    plain: bool
    tools: str


class Rehearsals:
    """A session's rehearsed replies, and the attention methods they resolve to."""

    def __init__(self) -> None:
        self._attention_methods: dict[_RehearsalKey, _AttentionMethods] = {}
        self._under_way: dict[_RehearsalKey, asyncio.Task[Reply]] = {}

    def resolved_request(self, request: Request) -> Request | None:
        """The request with its methods resolved; None if a rehearsal has to come first."""
        if not request.compiled.rehearsed:
            return request
        attention_methods = self._attention_methods.get(_key_of(request))
        if attention_methods is None:
            return None
        return _resolved_by(attention_methods, request)

    async def rehearse(
        self, request: Request, rehearsal: Rendered, generate: GenerateRendered
    ) -> tuple[Request, int]:
        """The request with its methods resolved, and the tokens to charge it for the rehearsal.

        Requests that wait for the same rehearsal share it; the first to go on is charged for it.
        """
        key = _key_of(request)
        known = self._attention_methods.get(key)
        if known is not None:
            return _resolved_by(known, request), 0
        if key not in self._under_way:
            task = asyncio.create_task(generate(rehearsal))
            task.add_done_callback(lambda ended: self._end(key, ended))
            self._under_way[key] = task
        # shielded, so that cancelling one of the chats leaves the others
        reply = await asyncio.shield(self._under_way[key])
        charged = 0 if key in self._attention_methods else reply.forwarded
        return _resolved_by(self._learn(key, request, reply), request), charged

    def rehearse_batch(
        self, chats: Sequence[Rendered], generate: Callable[[list[Rendered]], Sequence[Reply]]
    ) -> list[Request]:
        """The requests of chats with their methods resolved, for callers without an event loop.

        Args:
            chats: each with its rehearsal; chats that need the same one share it.
            generate: answers rehearsals, in the order given.
        """
        first: dict[_RehearsalKey, Rendered] = {}
        for chat in chats:
            first.setdefault(_key_of(chat.request), chat)
        replies = generate([_rehearsal(chat) for chat in first.values()])
        learned = {
            key: self._learn(key, chat.request, reply)
            for (key, chat), reply in zip(first.items(), replies, strict=True)
        }
        return [_resolved_by(learned[_key_of(chat.request)], chat.request) for chat in chats]

    def _learn(self, key: _RehearsalKey, request: Request, reply: Reply) -> _AttentionMethods:
        """The methods that the reply to `rehearsal_of(request)` resolves; remembers them."""
        if (known := self._attention_methods.get(key)) is not None:
            return known
        # There is no trace if the first turn has no span (no system prompt and no emphasis) or
        # leaves no room for a reply. The chat then goes on without these methods: the empty entry
        # says that its rehearsal is over.
        learned: dict[Method, ShiftsAttention] = {}
        if reply.trace is not None:
            for method in request.compiled.rehearsed:
                mass = reply.trace.mass[..., : method.max_rehearsal_tokens]
                learned[method] = method.resolve(mass)
        if len(self._attention_methods) >= _MAX_REHEARSALS:
            oldest = next(iter(self._attention_methods))
            del self._attention_methods[oldest]
        self._attention_methods[key] = learned
        return learned

    def _end(self, key: _RehearsalKey, task: asyncio.Task[Reply]) -> None:
        del self._under_way[key]
        if not task.cancelled():
            task.exception()  # retrieved, or asyncio would warn if every waiter was cancelled


def _rehearsal(chat: Rendered) -> Rendered:
    assert chat.rehearsal is not None
    return chat.rehearsal


def _resolved_by(attention_methods: _AttentionMethods, request: Request) -> Request:
    methods = tuple(attention_methods.get(method, method) for method in request.methods)
    return without_rehearsed(replace(request, methods=methods))


def rehearsal_of(request: Request) -> Request:
    """The request whose reply resolves another's methods: its first turn, answered greedily."""
    rehearsed = request.compiled.rehearsed
    first = rehearsed[0]
    messages = first.first_turn(request.messages)
    emphasis = tuple(part for part in request.emphasis if part[0] < len(messages))
    if request.emphasis and not emphasis:
        raise PromptError(
            f"{first.name} reads the mass on a span in the reply to the first turn, and the"
            " emphasised text comes after it; emphasise a text of the first turn, or use boost."
        )
    tokens = max(method.max_rehearsal_tokens for method in rehearsed)
    return replace(
        without_rehearsed(request),
        messages=messages,
        sampling=Sampling(temperature=0.0, top_p=1.0, max_new_tokens=tokens),
        conversation_seed=request.editing_seed,
        seed=0,
        thread=None,
        keep=False,
        trace=True,
        emphasis=emphasis,
        room=1,
        reply_token_ids=(),
        continue_final_message=False,
    )


def without_rehearsed(request: Request) -> Request:
    """The request without the methods that a rehearsal resolves."""
    return replace(request, methods=request.compiled.without_rehearsed.methods)


def _key_of(request: Request) -> _RehearsalKey:
    first = request.compiled.rehearsed[0]
    messages = first.first_turn(request.messages)
    return _RehearsalKey(
        first_turn=tuple((message["role"], message["content"]) for message in messages),
        methods=request.methods,
        editing_seed=request.editing_seed if request.compiled.messages else None,
        system_as=request.system_as,
        emphasis=tuple(part for part in request.emphasis if part[0] < len(messages)),
        plain=request.plain,
        tools=repr(request.tools),
    )
