"""Requests to a local model, which share what was computed for their dialogs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Hashable, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import lru_cache
from typing import Self

from holdfast.errors import ModelError, UsageError
from holdfast.generation.reply_scoring import Scored, score_rows
from holdfast.generation.row_errors import errors_named
from holdfast.models.event_loop import run_sync, task_group
from holdfast.models.grammar_masks import compile_grammar
from holdfast.models.protocol import checked_batch, generate_all
from holdfast.models.rehearsals import GenerateRendered, Rehearsals, rehearsal_of
from holdfast.models.rendering import (
    Rendered,
    RequestInThread,
    check_room,
    known_replies,
    render,
)
from holdfast.models.requests import Reply, Request, Token
from holdfast.models.scoring_inputs import ScoringInput, check_replies, scoring_inputs
from holdfast.models.session_model import SessionModel
from holdfast.models.step_loop import StepLoop
from holdfast.models.step_worker import StepWorker
from holdfast.models.stepped_model import SteppedModel
from holdfast.models.thread_cache import ThreadCache
from holdfast.validation import ranges

MAX_TOP_LOGPROBS = 20
_MAX_CHECKED = 1_000  # lists of methods that were checked; a server may see any number of them


class LocalSession:
    """An engine on a model in this process, which steps itself while tasks wait for replies.

    Requests of all tasks share forward passes, and rows join and leave the batch at any step. The
    requests of a thread share prefixes; what was computed lives as long as the session.

    Args:
        model: computes the replies.
        long_lived: whether requests without a thread share their common first tokens.
        worker: of a server, makes the steps while the event loop goes on; None: they are made in
            the event loop, once all of its tasks wait.

    Attributes:
        fingerprint: that of the model when the session was opened.
    """

    def __init__(
        self, model: SessionModel, *, long_lived: bool = False, worker: StepWorker | None = None
    ):
        self.model = model
        self.threads = ThreadCache(model.prefix_bytes)
        self.stepped = SteppedModel(model, self.threads, long_lived=long_lived, worker=worker)
        self._rehearsals = Rehearsals()
        self._check = lru_cache(_MAX_CHECKED)(model.check)  # which may read the model's weights
        self._loop = StepLoop(self.stepped, None if worker is None else worker.executor)
        self.fingerprint = model.fingerprint

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._loop.finish()

    async def generate(self, request: Request) -> Reply:
        """Answers a request; see `Engine.generate`.

        A chat that leaves no room for a reply is no error: its reply says so by its stop reason.

        Raises:
            PromptError: the chat cannot be rendered, or its system prompt is not found.
            ModelError: a method cannot be applied to this model.
            UsageError: heads that the model does not have.
        """
        if self._loop.idle:  # once for requests that begin together, as it reads every tensor
            self._check_weights()
        (chat,) = self._render([request])
        return await self._generate(chat)

    async def _generate(self, chat: Rendered) -> Reply:
        return await self._loop.generate(await self.resolve(chat, self._loop.generate))

    def stream(
        self, request: Request, top_logprobs: int | None = None
    ) -> AsyncGenerator[Token | Reply]:
        """Answers a request; yields every token as it is drawn, and the reply last.

        Args:
            request: the chat; refused as in `render`.
            top_logprobs: as in `render`.
        """
        return self.stream_rendered(self.render(request, top_logprobs))

    async def stream_rendered(self, chat: Rendered) -> AsyncGenerator[Token | Reply]:
        """As `stream`, for a request that `render` has returned as a chat."""
        resolved = await self.resolve(chat, self._loop.generate)
        async with aclosing(self._loop.stream(resolved)) as events:
            async for event in events:
                yield event

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers requests in the order given, for callers without an event loop.

        Raises:
            PromptError: a chat cannot be rendered, its system prompt is not found, or it exceeds
                the model's context; nothing is generated then.
            ModelError, UsageError: as in `generate`.
            UsageError: tasks wait for replies of this session, which would never come meanwhile.
        """
        self._require_idle()
        self._check_weights()
        chats = self._render(checked_batch(requests))
        for chat in chats:
            check_room(chat, self.model.context, self.model.name)
        return run_sync(generate_all(self._generate, chats))

    def close(self, error: Exception) -> None:
        """Makes no more steps; the tasks that wait for replies get this error."""
        self._loop.close(error)

    @property
    def running(self) -> int:
        """Requests being forwarded; the other open ones wait."""
        return self.stepped.running

    @property
    def capacity(self) -> int:
        """The most requests forwarded together, given the memory known to suffice."""
        return self.stepped.capacity

    @property
    def rows_at_most(self) -> int | None:
        """The most requests forwarded together since memory ran out; None: it never did."""
        return self.stepped.rows_at_most

    def forget(self, thread: Hashable) -> None:
        """Frees what was computed for a finished thread; a later request of it starts over."""
        self.threads.forget(thread)

    def _check_weights(self) -> None:
        """Raises a `ModelError` if the weights changed since the session was opened."""
        if (now := self.model.fingerprint) != self.fingerprint:
            raise ModelError(
                f"The weights, the configuration or the template of {self.model.name!r} changed"
                f" since this session was opened (fingerprint {self.fingerprint[:12]}, now"
                f" {now[:12]}), and it has computed with the old ones; open a new session."
            )

    def _require_idle(self) -> None:
        if not self._loop.idle:
            raise UsageError(
                "Tasks wait for replies of this session, which nothing computes while another call"
                " blocks their event loop; await `generate` or `score`, or open another session."
            )

    # From a request to its row

    def render(self, request: Request, top_logprobs: int | None = None) -> Rendered:
        """A request as the engine reads it.

        May be called from another thread during a step, unless the request has a `thread`.

        Args:
            request: the chat.
            top_logprobs: how many likeliest tokens (at most 20) to report with the log-probability
                of each drawn one; None: no log-probabilities.

        Raises:
            PromptError, ModelError, UsageError: as in `generate_batch`.
        """
        if top_logprobs is not None:
            ranges.whole_number("a request", "top_logprobs", top_logprobs, 0, MAX_TOP_LOGPROBS)
        self._check_weights()
        (chat,) = self._render([request])
        check_room(chat, self.model.context, self.model.name)
        return replace(chat, row=replace(chat.row, top_logprobs=top_logprobs))

    async def resolve(self, chat: Rendered, generate: GenerateRendered) -> Rendered:
        """The chat with all of its methods; `generate` answers its rehearsal, if it needs one."""
        if chat.rehearsal is None:
            return chat
        request, forwarded = await self._rehearsals.rehearse(chat.request, chat.rehearsal, generate)
        with errors_named(request.name):
            self._check(request.methods)
        return chat.resolved(request, forwarded)

    def _render(self, requests: Sequence[Request]) -> list[Rendered]:
        """The requests as rows that continue their threads; one that needs a rehearsal has it."""
        requests = [self._after_known_rehearsal(request) for request in requests]
        rows = self._rows(requests)
        rehearsed = [n for n, request in enumerate(requests) if request.compiled.rehearsed]
        rehearsals = self._rows([rehearsal_of(requests[n]) for n in rehearsed])
        for n, rehearsal in zip(rehearsed, rehearsals, strict=True):
            rows[n] = replace(rows[n], rehearsal=rehearsal)
        return rows

    def _after_known_rehearsal(self, request: Request) -> Request:
        """The request, checked, with its methods resolved if a rehearsal was answered before."""
        with errors_named(request.name):
            self._check(request.methods)
            if request.compiled.rehearsed:
                request = self._rehearsals.resolved_if_known(request)
                self._check(request.methods)
        return request

    def _rows(self, requests: Sequence[Request]) -> list[Rendered]:
        """The requests as rows, which have no part of the methods that need a rehearsal."""
        chats = list[RequestInThread]()
        for request in requests:
            with errors_named(request.name):
                dialog = () if request.thread is None else self.threads.use(request.thread)
                dialog = dialog or known_replies(request, self.model.tokenizer)
                chats.append(RequestInThread(request, dialog))
        rows = render(chats, self.model.tokenizer, traces=self.model.steerable)
        return [self._with_grammar(row) for row in rows]

    def _with_grammar(self, chat: Rendered) -> Rendered:
        """The chat with the grammar of its reply compiled, if it has one."""
        request = chat.request
        if request.grammar is None:
            return chat
        with errors_named(request.name):
            grammar = compile_grammar(request.grammar, self.model.tokenizer, self.model.stop_ids)
        return replace(chat, row=replace(chat.row, grammar=grammar))

    # Given replies

    async def score(
        self, requests: Sequence[Request], replies: Sequence[Sequence[str]]
    ) -> list[Scored]:
        """The log-probabilities of given replies to each chat (at temperature 1, the whole
        vocabulary).

        A request with a `thread` continues what that thread has computed; with `keep`, the chat
        (not the replies) becomes part of it. Unlike a reply, scores are computed in one go: other
        tasks of the event loop wait meanwhile, and cancelling has no effect.

        Args:
            requests: sampling, seeds (except `conversation_seed`) and traces have no effect.
            replies: per request, at least one and none empty; each is tokenized after its chat.

        Raises:
            PromptError: a reply is empty, or a chat cannot be rendered.
            PromptTooLong: a reply does not fit into the model's context.
            ModelError: a method cannot be applied to this model.
            UsageError: replies that are no lists, or not one list per chat; heads that the model
                does not have.
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
            if chat.request.thread is not None and row.computed:
                self.threads.keep(chat.request.thread, chat.as_dialog(row.computed))
        return [
            replace(row.scored, forwarded=row.scored.forwarded + chat.rehearsed)
            for row, chat in zip(rows, chats, strict=True)
        ]

    def score_batch(
        self, requests: Sequence[Request], replies: Sequence[Sequence[str]]
    ) -> list[Scored]:
        """As `score`, for callers without an event loop."""
        self._require_idle()
        return run_sync(self.score(requests, replies))

    async def score_inputs(
        self, requests: Sequence[Request], replies: Sequence[Sequence[str]]
    ) -> list[ScoringInput]:
        """The input of `score`: chats, and the tokens of their replies; raises as it does."""
        check_replies(len(requests), replies)
        self._check_weights()
        chats = self._render(checked_batch(requests))
        async with task_group() as group:
            tasks = [group.create_task(self.resolve(chat, self._loop.generate)) for chat in chats]
        return scoring_inputs(
            [task.result() for task in tasks],
            replies,
            self.model.tokenizer,
            context=self.model.context,
            model=self.model.name,
        )

    async def rehearse(self, request: Request) -> Request:
        """The request with its methods resolved by a rehearsed reply to its first turn."""
        self._check_weights()
        (chat,) = self._render([request])
        return (await self.resolve(chat, self._loop.generate)).request
