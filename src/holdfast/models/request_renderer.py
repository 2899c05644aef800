"""Renders the requests of a session, with its threads and rehearsals."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Protocol

from transformers import PreTrainedTokenizerFast

from holdfast.engine.scheduler import errors_named
from holdfast.errors import ModelError, PromptError, PromptTooLong
from holdfast.methods import Method
from holdfast.models.rehearsals import (
    GenerateRendered,
    Rehearsals,
    rehearsal_of,
    without_rehearsed,
)
from holdfast.models.rendering import (
    CachedDialog,
    Rendered,
    RequestInThread,
    known_replies,
    render,
)
from holdfast.models.requests import Reply, Request
from holdfast.models.thread_cache import ThreadCache

_MAX_VALID = 1_000  # lists of methods known to be valid; a server may see any number of them


class RenderingModel(Protocol):
    """The part of a `LocalModel` that rendering its requests uses."""

    @property
    def name(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def tokenizer(self) -> PreTrainedTokenizerFast: ...
    @property
    def steerable(self) -> bool: ...
    @property
    def prefix_bytes(self) -> int: ...
    @property
    def context(self) -> int | None: ...
    def check(self, methods: Sequence[Method]) -> None: ...


class RequestRenderer:
    """Turns requests into rows: checked, after what their threads have computed, and resolved.

    A request is *resolved* once none of its methods waits for a rehearsed reply.
    """

    def __init__(self, model: RenderingModel):
        self.model = model
        self.threads = ThreadCache(model.prefix_bytes)
        self._rehearsals = Rehearsals()
        self._valid: set[tuple[Method, ...]] = set()
        self._fingerprint = model.fingerprint

    def render(self, requests: Sequence[Request]) -> list[Rendered]:
        """The requests as rows; those that are not resolved come with their rehearsal.

        Raises:
            PromptError, ModelError, UsageError: a request is refused; the message names it.
        """
        resolved = [self._rehearsals.resolved_request(request) for request in requests]
        # a request that is not resolved is rendered without the methods that wait for a rehearsal
        rendered = self._render(
            [
                known or without_rehearsed(request)
                for known, request in zip(resolved, requests, strict=True)
            ]
        )
        unresolved = [number for number, known in enumerate(resolved) if known is None]
        rehearsals = self._render([self._rehearsal_of(requests[number]) for number in unresolved])
        for number, rehearsal in zip(unresolved, rehearsals, strict=True):
            rendered[number] = replace(
                rendered[number], request=requests[number], rehearsal=rehearsal
            )
        return rendered

    async def resolve(self, chat: Rendered, generate: GenerateRendered) -> Rendered:
        """The chat resolved; `generate` answers its rehearsal, if it needs one."""
        if chat.rehearsal is None:
            return chat
        request, forwarded = await self._rehearsals.rehearse(chat.request, chat.rehearsal, generate)
        return self._resolved(chat, request, forwarded)

    def resolve_batch(
        self, chats: Sequence[Rendered], generate: Callable[[list[Rendered]], Sequence[Reply]]
    ) -> list[Rendered]:
        """The chats resolved, for callers without an event loop; `generate` answers rehearsals."""
        unresolved = [chat for chat in chats if chat.rehearsal is not None]
        if not unresolved:
            return list(chats)
        requests = iter(self._rehearsals.rehearse_batch(unresolved, generate))
        return [
            chat if chat.rehearsal is None else self._resolved(chat, next(requests))
            for chat in chats
        ]

    def keep(self, chat: Rendered, dialog: tuple[CachedDialog, ...]) -> None:
        """Makes a dialog the current one of the chat's thread, where its next request begins."""
        assert chat.request.thread is not None
        self.threads.keep(chat.request.thread, dialog)

    def forget(self, thread: Hashable) -> None:
        """Frees what is known of a thread."""
        self.threads.forget(thread)

    def check_weights(self) -> None:
        """Raises a `ModelError` if the weights changed since the session was opened."""
        if (now := self.model.fingerprint) != self._fingerprint:
            raise ModelError(
                f"The weights, the configuration or the template of {self.model.name!r} changed"
                f" since this session was opened (fingerprint {self._fingerprint[:12]}, now"
                f" {now[:12]}), and it has computed with the old ones; open a new session."
            )

    def check_room(self, chat: Rendered) -> None:
        """Raises `PromptTooLong` if the chat leaves no room for a reply."""
        context, longest = self.model.context, chat.row.longest
        if context and longest >= context:
            with errors_named(chat.row.name):
                raise PromptTooLong(
                    f"A chat of {len(chat.prompt_ids)} tokens leaves no room for a reply in the"
                    f" {context} tokens {self.model.name} can see; use a shorter chat or fewer"
                    " rounds.",
                    value=longest,
                    allowed=context,
                )

    def check_fits(self, chat: Rendered, replies: Sequence[tuple[int, ...]]) -> None:
        """Raises a `PromptError` if the chat exceeds the context with the longest reply."""
        context = self.model.context
        longest = chat.row.longest + max(map(len, replies))
        # A reply has no tokens if the tokenizer drops all of its characters, as some do with
        # whitespace; a chat that fills the context is refused nevertheless.
        if context and (longest > context or chat.row.longest >= context):
            with errors_named(chat.row.name):
                raise PromptError(
                    f"A chat and its reply take {longest} tokens, and {self.model.name} sees"
                    f" {context}; use a shorter chat.",
                    value=longest,
                    allowed=context,
                )

    def _render(self, requests: Sequence[Request]) -> list[Rendered]:
        """Resolved requests as rows that continue their threads."""
        chats: list[RequestInThread] = []
        for request in requests:
            with errors_named(request.name):
                self._check(request.methods)
                dialog = () if request.thread is None else self.threads.use(request.thread)
                dialog = dialog or known_replies(request, self.model.tokenizer)
                chats.append(RequestInThread(request, dialog))
        return render(chats, self.model.tokenizer, traces=self.model.steerable)

    def _rehearsal_of(self, request: Request) -> Request:
        with errors_named(request.name):
            self._check(request.methods)
            return rehearsal_of(request)

    def _resolved(self, chat: Rendered, request: Request, rehearsed: int = 0) -> Rendered:
        """The chat of a request that is resolved now, after a rehearsal of so many tokens."""
        self._check(request.methods)
        return chat.under(request, rehearsed)

    def _check(self, methods: tuple[Method, ...]) -> None:
        """Refuses methods that the model cannot apply, as the model's `check` does."""
        if methods not in self._valid:
            self.model.check(methods)
            if len(self._valid) >= _MAX_VALID:
                self._valid.clear()
            self._valid.add(methods)
