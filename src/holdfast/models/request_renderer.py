"""Renders the requests of a session: checked, after their threads, and with methods resolved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from transformers import PreTrainedTokenizerFast

from holdfast.engine.scheduler import errors_named
from holdfast.methods import Method
from holdfast.models.rehearsals import (
    GenerateRendered,
    Rehearsals,
    rehearsal_of,
    without_rehearsed,
)
from holdfast.models.rendering import (
    Rendered,
    RequestInThread,
    Unresolved,
    known_replies,
    render,
)
from holdfast.models.requests import Request
from holdfast.models.thread_cache import ThreadCache

_MAX_VALID = 1_000  # lists of methods known to be valid; a server may see any number of them


class RenderingModel(Protocol):
    """The part of a `LocalModel` that rendering its requests uses."""

    @property
    def tokenizer(self) -> PreTrainedTokenizerFast: ...
    @property
    def steerable(self) -> bool: ...
    def check(self, methods: Sequence[Method]) -> None: ...


class RequestRenderer:
    """Turns the requests of a session into rows.

    Args:
        model: has the tokenizer, and says which methods it can apply.
        threads: the dialogs that requests continue.
    """

    def __init__(self, model: RenderingModel, threads: ThreadCache):
        self._model, self._threads = model, threads
        self._rehearsals = Rehearsals()
        self._valid: set[tuple[Method, ...]] = set()

    def render(self, requests: Sequence[Request]) -> list[Rendered]:
        """The requests as rows; an `Unresolved` for one that needs a rehearsal.

        Raises:
            PromptError, ModelError, UsageError: a request is refused; the message names it.
        """
        resolved: list[Request] = []
        rehearsals: dict[int, Request] = {}  # by the number of the request that needs it
        for number, request in enumerate(requests):
            with errors_named(request.name):
                self._check(request.methods)
                known = self._rehearsals.resolved_request(request)
                if known is None:
                    rehearsals[number] = rehearsal_of(request)
                    known = without_rehearsed(request)
                self._check(known.methods)
                resolved.append(known)
        rendered = self._render(resolved)
        rehearsed = self._render(list(rehearsals.values()))
        for number, rehearsal in zip(rehearsals, rehearsed, strict=True):
            chat = rendered[number]
            rendered[number] = Unresolved(
                request=requests[number], row=chat.row, prompts=chat.prompts, rehearsal=rehearsal
            )
        return rendered

    async def resolve(self, chat: Rendered, generate: GenerateRendered) -> Rendered:
        """The chat with all of its methods; `generate` answers its rehearsal, if it needs one."""
        if not isinstance(chat, Unresolved):
            return chat
        request, forwarded = await self._rehearsals.rehearse(chat, generate)
        with errors_named(request.name):
            self._check(request.methods)
        return chat.under(request, forwarded)

    def _render(self, requests: Sequence[Request]) -> list[Rendered]:
        """Resolved requests as rows that continue their threads."""
        chats: list[RequestInThread] = []
        for request in requests:
            with errors_named(request.name):
                dialog = () if request.thread is None else self._threads.use(request.thread)
                dialog = dialog or known_replies(request, self._model.tokenizer)
                chats.append(RequestInThread(request, dialog))
        return render(chats, self._model.tokenizer, traces=self._model.steerable)

    def _check(self, methods: tuple[Method, ...]) -> None:
        """Refuses methods that the model cannot apply, as the model's `check` does."""
        if methods not in self._valid:
            self._model.check(methods)
            if len(self._valid) >= _MAX_VALID:
                self._valid.clear()
            self._valid.add(methods)
