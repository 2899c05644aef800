"""Sessions of local models, whose requests share the keys and values of their conversations.

LocalSession         the engine
GeneratesInSessions  implements a model's methods with a new session for each call
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Hashable, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import lru_cache
from typing import Protocol, Self

from holdfast.chat.emphasis import Part
from holdfast.chat.messages import Messages
from holdfast.errors import ModelError, UsageError
from holdfast.generation.reply_scoring import Scored, score_requests
from holdfast.generation.request_errors import name_errors
from holdfast.methods import Methods
from holdfast.models.event_loop import run_sync, task_group
from holdfast.models.grammar_masks import compile_grammar
from holdfast.models.protocol import Generates
from holdfast.models.rehearsals import Rehearsals, rehearsal_of
from holdfast.models.rendering import (
    RenderedRequest,
    RequestInThread,
    check_room,
    prefixes_of_known_replies,
    render_requests,
)
from holdfast.models.request_batches import generate_all, prepare_batch
from holdfast.models.requests import Reply, Request, Token
from holdfast.models.scoring_inputs import ScoringInput, check_replies, scoring_inputs
from holdfast.models.step_loop import StepLoop
from holdfast.models.stepped_model import SessionModel, SteppedModel, StepWorker
from holdfast.models.streaming import stream_reply
from holdfast.models.thread_cache import ThreadCache
from holdfast.validation import ranges

MAX_TOP_LOGPROBS = 20
_MAX_CHECKED = 1_000  # lists of methods that are remembered as checked; a server may see any number


class LocalSession:
    """An engine on a model in this process, which makes steps while tasks wait for replies.

    Requests of all tasks share forward passes, and join and leave the batch at any step. The
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
        (rendered,) = self._render([request])
        return await self._answer(rendered)

    async def _answer(self, rendered: RenderedRequest) -> Reply:
        return await self._loop.answer(await self._resolve(rendered))

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

    async def stream_rendered(self, rendered: RenderedRequest) -> AsyncGenerator[Token | Reply]:
        """Answers a request that `render` has rendered, as `stream` does."""
        resolved = await self._resolve(rendered)
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
        batch = self._render(prepare_batch(requests))
        for rendered in batch:
            check_room(rendered, self.model.context, self.model.name)
        return run_sync(generate_all(self._answer, batch))

    def close(self, error: Exception) -> None:
        """Stops the steps; tasks that wait for replies get this error."""
        self._loop.close(error)

    @property
    def running(self) -> int:
        """The number of requests being forwarded; the other open ones wait."""
        return len(self.stepped.scheduler.running)

    @property
    def max_sequences(self) -> int:
        """The most sequences that can be forwarded together, as far as is known of the memory."""
        return self.stepped.scheduler.max_sequences

    @property
    def reduced_max_sequences(self) -> int | None:
        """The most sequences forwarded together since memory ran out; None if it never did."""
        return self.stepped.reduced_max_sequences

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

    # Rendering

    def render(self, request: Request, top_logprobs: int | None = None) -> RenderedRequest:
        """Turns a request into tokens for the engine.

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
        (rendered,) = self._render([request])
        check_room(rendered, self.model.context, self.model.name)
        token_request = replace(rendered.token_request, top_logprobs=top_logprobs)
        return replace(rendered, token_request=token_request)

    def _render(self, requests: Sequence[Request]) -> list[RenderedRequest]:
        """Renders requests so that they continue their threads, with any rehearsal they need."""
        requests = [self._check_methods(request) for request in requests]
        batch = self._render_without_rehearsals(requests)
        unresolved = [index for index, request in enumerate(requests) if request.compiled.rehearsed]
        to_rehearse = [rehearsal_of(requests[index]) for index in unresolved]
        rehearsals = self._render_without_rehearsals(to_rehearse)
        for index, rehearsal in zip(unresolved, rehearsals, strict=True):
            batch[index] = replace(batch[index], rehearsal=rehearsal)
        return batch

    def _check_methods(self, request: Request) -> Request:
        """Checks the methods of a request, and resolves them if their rehearsal is known."""
        with name_errors(request.name):
            self._check(request.methods)
            if request.compiled.rehearsed:
                request = self._rehearsals.resolve_if_known(request)
                self._check(request.methods)
        return request

    def _render_without_rehearsals(self, requests: Sequence[Request]) -> list[RenderedRequest]:
        """Renders requests, leaving out methods that need a rehearsal."""
        in_threads = list[RequestInThread]()
        for request in requests:
            with name_errors(request.name):
                prefixes = () if request.thread is None else self.threads.use(request.thread)
                prefixes = prefixes or prefixes_of_known_replies(request, self.model.tokenizer)
                in_threads.append(RequestInThread(request, prefixes))
        batch = render_requests(in_threads, self.model.tokenizer, traces=self.model.steerable)
        return [self._with_grammar(rendered) for rendered in batch]

    def _with_grammar(self, rendered: RenderedRequest) -> RenderedRequest:
        """Compiles the grammar of the reply, if the request has one."""
        request = rendered.request
        if request.grammar is None:
            return rendered
        with name_errors(request.name):
            grammar = compile_grammar(request.grammar, self.model.tokenizer, self.model.stop_ids)
        token_request = replace(rendered.token_request, grammar=grammar)
        return replace(rendered, token_request=token_request)

    async def _resolve(self, rendered: RenderedRequest) -> RenderedRequest:
        """Adds the methods that need a rehearsal, once the request is rehearsed."""
        if rendered.rehearsal is None:
            return rendered
        resolved = await self._rehearsals.rehearse(rendered, rendered.rehearsal, self._loop.answer)
        with name_errors(rendered.request.name):
            self._check(resolved.request.methods)
        return resolved

    # Given replies

    async def score(
        self, requests: Sequence[Request], replies: Sequence[Sequence[str]]
    ) -> list[Scored]:
        """Computes the log-probabilities of given replies to each chat, at temperature 1 over the
        whole vocabulary.

        A request with a `thread` continues what the thread has computed; with `keep`,
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
        scored = score_requests(
            self.model.runner,
            [scoring.rendered.token_request for scoring in inputs],
            [scoring.replies for scoring in inputs],
            self.model.batch_size,
        )
        for scoring, result in zip(inputs, scored, strict=True):
            thread = scoring.rendered.request.thread
            if thread is not None and result.kv:
                self.threads.keep(thread, scoring.rendered.as_prefixes(result.kv))
        return [
            replace(result.scored, forwarded=result.scored.forwarded + scoring.rendered.rehearsed)
            for scoring, result in zip(inputs, scored, strict=True)
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
        batch = self._render(prepare_batch(requests))
        async with task_group() as group:
            tasks = [group.create_task(self._resolve(rendered)) for rendered in batch]
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
        (rendered,) = self._render([request])
        return (await self._resolve(rendered)).request


class GeneratesInSessions(Generates, Protocol):
    """Implements `generate_batch`, `stream` and `score` of a `SessionModel` with its sessions."""

    def session(self: SessionModel, *, long_lived: bool = False) -> LocalSession:
        """Opens a session; with `long_lived`, requests without a thread share their beginnings."""
        return LocalSession(self, long_lived=long_lived)

    def generate_batch(self: SessionModel, requests: Sequence[Request]) -> list[Reply]:
        """Answers many chats in a new session; see `LocalSession.generate_batch`."""
        return LocalSession(self).generate_batch(requests)

    def stream(self: SessionModel, request: Request, write: Callable[[str], None]) -> Reply:
        """Answers one chat; `write` receives the text piece by piece as it is drawn."""
        return stream_reply(LocalSession(self).stream, self.tokenizer, request, write)

    def score(
        self: SessionModel,
        messages: Messages,
        replies: Sequence[str],
        methods: Methods = (),
        *,
        emphasis: Sequence[Part] = (),
        marks: bool = False,
    ) -> Scored:
        """The log-probabilities of given replies to one chat; see `LocalSession.score`."""
        request = Request(messages, methods, emphasis=emphasis, marks=marks)
        return LocalSession(self).score_batch([request], [replies])[0]
