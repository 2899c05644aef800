"""Rehearsed replies, by which some methods become attention methods.

A rehearsal depends only on a chat's first turn and its methods, so one rehearsal serves the whole
dialog, and every dialog that begins like it.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any

from holdfast.chat.emphasis import Range
from holdfast.chat.messages import Message
from holdfast.common.sampling import Sampling
from holdfast.engine.scheduler import name_error
from holdfast.errors import PromptError
from holdfast.methods import Method, ShiftsAttention
from holdfast.models.rendering import Rendered, Unresolved
from holdfast.models.requests import Reply, Request

GenerateRendered = Callable[[Rendered], Coroutine[Any, Any, Reply]]
_AttentionMethods = Mapping[Method, ShiftsAttention]  # by the method that was resolved

# first turns whose methods are remembered; with 1,000 heads, each takes some 0.4 MB
_MAX_REMEMBERED = 1_000


@dataclass(frozen=True)
class _FirstTurn:
    """The part of a chat that is rehearsed: its messages up to the user's first."""

    messages: tuple[Message, ...]
    emphasis: tuple[Range, ...]  # in these messages


@dataclass(frozen=True)
class _RehearsalKey:
    """All that a rehearsal depends on."""

    messages: str  # of the first turn, as JSON
    emphasis: tuple[Range, ...]
    methods: tuple[Method, ...]
    editing_seed: int | None  # None if no method edits messages
    system_as: str
    plain: bool
    continues: bool
    tools: str  # as JSON


@dataclass
class _Rehearsal:
    """A rehearsal under way."""

    task: asyncio.Task[Reply]
    waiting: int = 0  # chats that wait for it


class Rehearsals:
    """A session's rehearsed replies, and the attention methods they resolve to."""

    def __init__(self) -> None:
        # the least recently used first
        self._attention_methods: dict[_RehearsalKey, _AttentionMethods] = {}
        self._under_way: dict[_RehearsalKey, _Rehearsal] = {}

    def resolved_request(self, request: Request) -> Request | None:
        """The request with its methods resolved; None if a rehearsal has to come first."""
        if not request.compiled.rehearsed:
            return request
        known = self._known(_key_of(request))
        return None if known is None else _resolved_by(known, request)

    async def rehearse(self, chat: Unresolved, generate: GenerateRendered) -> tuple[Request, int]:
        """The request with its methods resolved, and the tokens to charge it for the rehearsal.

        Requests that wait for the same rehearsal share it, and the first to go on is charged for
        it. It is cancelled once none of them waits any more.
        """
        key = _key_of(chat.request)
        if (known := self._known(key)) is not None:
            return _resolved_by(known, chat.request), 0
        if key not in self._under_way:
            self._under_way[key] = _Rehearsal(asyncio.create_task(generate(chat.rehearsal)))
        rehearsal = self._under_way[key]
        rehearsal.waiting += 1
        try:
            # shielded, so that cancelling one of the chats leaves the others
            reply = await asyncio.shield(rehearsal.task)
        except Exception as error:  # the same for all that wait: each names its own request
            own = copy.copy(error)
            name_error(own, chat.request.name)
            raise own from error
        finally:
            rehearsal.waiting -= 1
            if rehearsal.task.done() or not rehearsal.waiting:
                rehearsal.task.cancel()  # no effect if it has ended
                if self._under_way.get(key) is rehearsal:
                    del self._under_way[key]
        if (known := self._known(key)) is not None:  # learned by another chat that waited
            return _resolved_by(known, chat.request), 0
        learned = _learned(chat.request, reply)
        if len(self._attention_methods) >= _MAX_REMEMBERED:
            least_recently_used = next(iter(self._attention_methods))
            del self._attention_methods[least_recently_used]
        self._attention_methods[key] = learned
        return _resolved_by(learned, chat.request), reply.forwarded

    def _known(self, key: _RehearsalKey) -> _AttentionMethods | None:
        known = self._attention_methods.pop(key, None)
        if known is not None:
            self._attention_methods[key] = known  # now the most recently used
        return known


def _learned(request: Request, reply: Reply) -> _AttentionMethods:
    """The attention methods that the reply to `rehearsal_of(request)` resolves."""
    # There is no trace if the first turn has no span (no system prompt and no emphasis) or leaves
    # no room for a reply. The chat then goes on without these methods: the empty entry says that
    # its rehearsal is over.
    learned: dict[Method, ShiftsAttention] = {}
    if reply.trace is not None:
        for method in request.compiled.rehearsed:
            mass = reply.trace.mass[..., : method.max_rehearsal_tokens]
            learned[method] = method.resolve(mass)
    return learned


def _resolved_by(attention_methods: _AttentionMethods, request: Request) -> Request:
    methods = tuple(attention_methods.get(method, method) for method in request.methods)
    return without_rehearsed(replace(request, methods=methods))


def rehearsal_of(request: Request) -> Request:
    """The request whose reply resolves another's methods: its first turn, answered greedily."""
    rehearsed = request.compiled.rehearsed
    turn = _first_turn(request)
    if request.emphasis and not turn.emphasis:
        raise PromptError(
            f"{rehearsed[0].name} reads the mass on a span in the reply to the first turn, and the"
            " emphasised text comes after it; emphasise a text of the first turn, or use boost."
        )
    tokens = max(method.max_rehearsal_tokens for method in rehearsed)
    return replace(
        without_rehearsed(request),
        messages=turn.messages,
        sampling=Sampling(temperature=0.0, top_p=1.0, max_new_tokens=tokens),
        conversation_seed=request.editing_seed,
        seed=0,
        thread=None,
        keep=False,
        trace=True,
        emphasis=turn.emphasis,
        room=1,
        reply_token_ids=(),
        continue_final_message=_continues(request, turn),
        name="",  # several requests may wait for it
    )


def without_rehearsed(request: Request) -> Request:
    """The request without the methods that a rehearsal resolves."""
    return replace(request, methods=request.compiled.without_rehearsed.methods)


def _first_turn(request: Request) -> _FirstTurn:
    messages = request.compiled.rehearsed[0].first_turn(request.messages)
    emphasis = tuple(part for part in request.emphasis if part[0] < len(messages))
    return _FirstTurn(messages, emphasis)


def _continues(request: Request, turn: _FirstTurn) -> bool:
    """Whether the rehearsed reply continues a message: the user has none in the whole chat."""
    return request.continue_final_message and len(turn.messages) == len(request.messages)


def _key_of(request: Request) -> _RehearsalKey:
    turn = _first_turn(request)
    return _RehearsalKey(
        messages=_as_json(turn.messages),
        emphasis=turn.emphasis,
        methods=request.methods,
        editing_seed=request.editing_seed if request.compiled.messages else None,
        system_as=request.system_as,
        plain=request.plain,
        continues=_continues(request, turn),
        tools=_as_json(request.tools),
    )


def _as_json(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=repr)
