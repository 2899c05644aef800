"""Renders the requests of a session: checked, after their threads, and with methods resolved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast.generation.row_errors import errors_named
from holdfast.methods import Method
from holdfast.models.grammar_masks import compile_grammar
from holdfast.models.rehearsals import (
    GenerateRendered,
    Rehearsals,
    rehearsal_of,
    without_rehearsed,
)
from holdfast.models.rendering import (
    Rendered,
    RequestInThread,
    known_replies,
    render,
)
from holdfast.models.requests import Request
from holdfast.models.session_model import SessionModel
from holdfast.models.thread_cache import ThreadCache

_MAX_VALID = 1_000  # lists of methods known to be valid; a server may see any number of them


class RequestRenderer:
    """Turns the requests of a session into rows.

    Args:
        model: has the tokenizer, and says which methods it can apply.
        threads: the dialogs that requests continue.
    """

    def __init__(self, model: SessionModel, threads: ThreadCache):
        self._model, self._threads = model, threads
        self._rehearsals = Rehearsals()
        self._valid: set[tuple[Method, ...]] = set()

    def render(self, requests: Sequence[Request]) -> list[Rendered]:
        """The requests as rows; one that needs a rehearsal comes with it.

        Raises:
            PromptError, ModelError, UsageError: a request is refused; the message names it.
        """
        known = list(map(self._after_known_rehearsal, requests))
        rows = self._rows(list(map(without_rehearsed, known)))
        pending = [request for request in known if request.compiled.rehearsed]
        rehearsals = iter(self._rows(list(map(rehearsal_of, pending))))
        return [
            replace(row, request=request, rehearsal=next(rehearsals))
            if request.compiled.rehearsed
            else row
            for request, row in zip(known, rows, strict=True)
        ]

    async def resolve(self, chat: Rendered, generate: GenerateRendered) -> Rendered:
        """The chat with all of its methods; `generate` answers its rehearsal, if it needs one."""
        if chat.rehearsal is None:
            return chat
        request, forwarded = await self._rehearsals.rehearse(chat.request, chat.rehearsal, generate)
        with errors_named(request.name):
            self._check(request.methods)
        return chat.resolved(request, forwarded)

    def _rows(self, requests: Sequence[Request]) -> list[Rendered]:
        """Requests without unresolved methods, as rows that continue their threads."""
        chats: list[RequestInThread] = []
        for request in requests:
            with errors_named(request.name):
                self._check(request.methods)
                dialog = () if request.thread is None else self._threads.use(request.thread)
                dialog = dialog or known_replies(request, self._model.tokenizer)
                chats.append(RequestInThread(request, dialog))
        rows = render(chats, self._model.tokenizer, traces=self._model.steerable)
        return [self._with_grammar(row) for row in rows]

    def _with_grammar(self, chat: Rendered) -> Rendered:
        """The chat with the grammar of its reply compiled, if it has one."""
        request = chat.request
        if request.grammar is None:
            return chat
        with errors_named(request.name):
            grammar = compile_grammar(request.grammar, self._model.tokenizer, self._model.stop_ids)
        return replace(chat, row=replace(chat.row, grammar=grammar))

    def _after_known_rehearsal(self, request: Request) -> Request:
        """The request with its methods resolved, if their rehearsal has been answered before."""
        if not request.compiled.rehearsed:
            return request
        with errors_named(request.name):
            self._check(request.methods)
            return self._rehearsals.resolved_if_known(request)

    def _check(self, methods: tuple[Method, ...]) -> None:
        """Refuses methods that the model cannot apply, as the model's `check` does."""
        if methods not in self._valid:
            self._model.check(methods)
            if len(self._valid) >= _MAX_VALID:
                self._valid.clear()
            self._valid.add(methods)
