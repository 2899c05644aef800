"""Sessions of local models, whose requests share the keys and values of their dialogs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Hashable, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import lru_cache
from typing import Self

from holdfast.errors import ModelError, UsageError
from holdfast.generation.reply_scoring import Scored, score_rows
from holdfast.generation.row_errors import name_errors
from holdfast.models.event_loop import run_sync, task_group
from holdfast.models.grammar_masks import compile_grammar
from holdfast.models.protocol import generate_all, prepare_batch
from holdfast.models.rehearsals import Rehearsals, rehearsal_of
from holdfast.models.rendering import (
    Rendered,
    RequestInThread,
    check_room,
    dialog_of_known_replies,
    render_requests,
)
from holdfast.models.requests import Reply, Request, Token
from holdfast.models.scoring_inputs import ScoringInput, check_replies, scoring_inputs
from holdfast.models.step_loop import StepLoop
from holdfast.models.stepped_model import SessionModel, SteppedModel, StepWorker, ThreadCache
from holdfast.validation import ranges

MAX_TOP_LOGPROBS = 20
_MAX_CHECKED = 1_000  # lists of methods that are remembered as checked; a server may see any number


class LocalSession:
    """An engine on a model in this process, which makes steps while tasks wait for replies.

    Requests of all tasks share forward passes, and rows join and leave the batch at any step. The
    requests of a thread share prefixes, which are kept as long as the session.

    Args:
        model: computes the replies.
        long_lived: whether requests without a thread share their common first tokens.
        worker: makes the steps of a server in a thread while its event loop continues; None makes
            them in the event loop, whenever all of its tasks wait.

    Attributes:
        fingerprint: the model's fingerprint when the session was opened.
    """

    def __init__(
        self, model: SessionModel, *, long_lived: bool = False, worker: StepWorker | None = None
    ):
        self.model = model
        self.threads = ThreadCache(model.prefix_bytes)
        self.stepped = SteppedModel(model, self.threads, long_lived=long_lived, worker=worker)
        self._rehearsals = Rehearsals()
        self._check = lru_cache(_MAX_CHECKED)(model.check)  # it may have to read the weights
        self._loop = StepLoop(self.stepped, None if worker is None else worker.executor)
        self.fingerprint = model.fingerprint

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._loop.finish()

    async def generate(self, request: Request) -> Reply:
        """Answers a request; see `Engine.generate`.

        A chat that leaves no room for a reply is not an error: the stop reason is "context".

        Raises:
            PromptError: the chat cannot be rendered, or its system prompt is not found.
            ModelError: a method cannot be applied to this model.
            UsageError: a method names heads that the model does not have.
        """
        if self._loop.idle:  # once for requests that begin together, since it reads every tensor
            self._check_weights()
        (chat,) = self._render([request])
        return await self._answer(chat)

    async def _answer(self, chat: Rendered) -> Reply:
        return await self._loop.answer(await self._resolve(chat))

    def stream(
        self, request: Request, top_logprobs: int | None = None
    ) -> AsyncGenerator[Token | Reply]:
        """Answers a request; yields every token as it is drawn, and the reply last.

        Args:
            request: the chat.
            top_logprobs: the number of likeliest tokens (at most 20) to report with the
                log-probability of each drawn token; None reports no log-probabilities.

        Raises:
            PromptError: the chat cannot be rendered, its system prompt is not found, or it exceeds
                the model's context.
            ModelError: a method cannot be applied to this model.
            UsageError: a method names heads that the model does not have.
        """
        return self.stream_rendered(self.render(request, top_logprobs))

    async def stream_rendered(self, chat: Rendered) -> AsyncGenerator[Token | Reply]:
        """Answers a chat that `render` has returned, as `stream` does."""
        resolved = await self._resolve(chat)
        async with aclosing(self._loop.stream(resolved)) as events:
            async for event in events:
                yield event

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers requests and returns the replies in their order, for callers without an event
        loop.

        Raises:
            PromptError: a chat cannot be rendered, its system prompt is not found, or it exceeds
                the model's context; nothing is generated then.
            ModelError: a method cannot be applied to this model.
            UsageError: a method names heads that the model does not have.
            UsageError: tasks wait for replies of this session, which this call would block.
        """
        self._require_idle()
        self._check_weights()
        chats = self._render(prepare_batch(requests))
        for chat in chats:
            check_room(chat, self.model.context, self.model.name)
        return run_sync(generate_all(self._answer, chats))

    def close(self, error: Exception) -> None:
        """Stops the steps; tasks that wait for replies get this error."""
        self._loop.close(error)

    @property
    def running(self) -> int:
        """The number of requests being forwarded; the other open ones wait."""
        return self.stepped.running

    @property
    def capacity(self) -> int:
        """The most requests that can be forwarded together, as far as is known of the memory."""
        return self.stepped.capacity

    @property
    def rows_at_most(self) -> int | None:
        """The most requests forwarded together since memory ran out; None if it never did."""
        return self.stepped.rows_at_most

    def forget(self, thread: Hashable) -> None:
        """Frees the memory of a finished thread; a later request of this thread starts over."""
        self.threads.forget(thread)

    def _check_weights(self) -> None:
        """Raises a `ModelError` if the model has changed since the session was opened."""
        current = self.model.fingerprint
        if current != self.fingerprint:
            raise ModelError(
                f"The weights, the configuration or the template of {self.model.name!r} changed"
                f" since this session was opened (fingerprint {self.fingerprint[:12]}, now"
                f" {current[:12]}), and it has computed with the old ones; open a new session."
            )

    def _require_idle(self) -> None:
        """Raises a `UsageError` if tasks wait for replies, which a blocking call would delay."""
        if not self._loop.idle:
            raise UsageError(
                "Tasks wait for replies of this session, which cannot be computed while another"
                " call blocks their event loop; await `generate` or `score`, or open another"
                " session."
            )

    # From a request to its row

    def render(self, request: Request, top_logprobs: int | None = None) -> Rendered:
        """Turns a request into a row of the engine.

        It may be called from another thread during a step, unless the request has a `thread`.

        Args:
            request: the chat.
            top_logprobs: the number of likeliest tokens (at most 20) to report with the
                log-probability of each drawn token; None reports no log-probabilities.

        Raises:
            PromptError: the chat cannot be rendered, its system prompt is not found, or it exceeds
                the model's context.
            ModelError: a method cannot be applied to this model.
            UsageError: a method names heads that the model does not have.
        """
        if top_logprobs is not None:
            ranges.whole_number("a request", "top_logprobs", top_logprobs, 0, MAX_TOP_LOGPROBS)
        self._check_weights()
        (chat,) = self._render([request])
        check_room(chat, self.model.context, self.model.name)
        return replace(chat, row=replace(chat.row, top_logprobs=top_logprobs))

    async def _resolve(self, chat: Rendered) -> Rendered:
        """Adds the methods that need a rehearsal to a chat's row, once it is rehearsed."""
        if chat.rehearsal is None:
            return chat
        resolved = await self._rehearsals.rehearse(chat, chat.rehearsal, self._loop.answer)
        with name_errors(chat.request.name):
            self._check(resolved.request.methods)
        return resolved

    def _render(self, requests: Sequence[Request]) -> list[Rendered]:
        """Turns requests into rows that continue their threads, with any rehearsal they need."""
        requests = [self._check_methods(request) for request in requests]
        chats = self._rows(requests)
        unresolved = [n for n, request in enumerate(requests) if request.compiled.rehearsed]
        rehearsals = self._rows([rehearsal_of(requests[n]) for n in unresolved])
        for n, rehearsal in zip(unresolved, rehearsals, strict=True):
            chats[n] = replace(chats[n], rehearsal=rehearsal)
        return chats

    def _check_methods(self, request: Request) -> Request:
        """Checks the methods of a request, and resolves them if their rehearsal is known."""
        with name_errors(request.name):
            self._check(request.methods)
            if request.compiled.rehearsed:
                request = self._rehearsals.resolve_if_known(request)
                self._check(request.methods)
        return request

    def _rows(self, requests: Sequence[Request]) -> list[Rendered]:
        """Turns requests into rows without the methods that need a rehearsal."""
        chats = list[RequestInThread]()
        for request in requests:
            with name_errors(request.name):
                dialog = () if request.thread is None else self.threads.use(request.thread)
                dialog = dialog or dialog_of_known_replies(request, self.model.tokenizer)
                chats.append(RequestInThread(request, dialog))
        rows = render_requests(chats, self.model.tokenizer, traces=self.model.steerable)
        return [self._with_grammar(row) for row in rows]

    def _with_grammar(self, chat: Rendered) -> Rendered:
        """Compiles the grammar of the reply, if the request has one."""
        request = chat.request
        if request.grammar is None:
            return chat
        with name_errors(request.name):
            grammar = compile_grammar(request.grammar, self.model.tokenizer, self.model.stop_ids)
        return replace(chat, row=replace(chat.row, grammar=grammar))

    # Given replies

    async def score(
        self, requests: Sequence[Request], replies: Sequence[Sequence[str]]
    ) -> list[Scored]:
        """Computes the log-probabilities of given replies to each chat, at temperature 1 over the
        whole vocabulary.

        A request with a `thread` continues the dialog that the thread has computed; with `keep`,
        the chat (not the replies) becomes part of it. Unlike a reply, scores are computed at once:
        other tasks of the event loop wait, and cancelling has no effect.

        Args:
            requests: the chats; sampling, seeds (except `conversation_seed`) and traces have no
                effect.
            replies: the replies to each chat, at least one and none empty.

        Raises:
            PromptError: a reply is empty, or a chat cannot be rendered.
            PromptTooLong: a reply does not fit into the model's context.
            ModelError: a method cannot be applied to this model.
            UsageError: there is not one list of replies for each chat, or a method names heads that
                the model does not have.
        """
        inputs = await self.score_inputs(requests, replies)
        if not inputs:
            return []
        chats = [scoring.chat for scoring in inputs]
        rows = score_rows(
            self.model.runner,
            [chat.row for chat in chats],
            [scoring.replies for scoring in inputs],
            self.model.batch_size,
        )
        for chat, row in zip(chats, rows, strict=True):
            if chat.request.thread is not None and row.kv:
                self.threads.keep(chat.request.thread, chat.as_dialog(row.kv))
        return [
            replace(row.scored, forwarded=row.scored.forwarded + chat.rehearsed)
            for row, chat in zip(rows, chats, strict=True)
        ]

    def score_batch(
        self, requests: Sequence[Request], replies: Sequence[Sequence[str]]
    ) -> list[Scored]:
        """Computes scores as `score` does, for callers without an event loop."""
        self._require_idle()
        return run_sync(self.score(requests, replies))

    async def score_inputs(
        self, requests: Sequence[Request], replies: Sequence[Sequence[str]]
    ) -> list[ScoringInput]:
        """Prepares the input of `score`; raises the same errors."""
        check_replies(len(requests), replies)
        self._check_weights()
        chats = self._render(prepare_batch(requests))
        async with task_group() as group:
            tasks = [group.create_task(self._resolve(chat)) for chat in chats]
        return scoring_inputs(
            [task.result() for task in tasks],
            replies,
            self.model.tokenizer,
            context=self.model.context,
            model=self.model.name,
        )

    async def rehearse(self, request: Request) -> Request:
        """Resolves the methods of a request, by rehearsing a reply to its first turn if needed."""
        self._check_weights()
        (chat,) = self._render([request])
        return (await self._resolve(chat)).request
