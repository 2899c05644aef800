"""Requests to a local model, which share what was computed for their dialogs."""

from __future__ import annotations

import weakref
from collections.abc import AsyncGenerator, Hashable, Sequence
from dataclasses import replace
from typing import Self

from holdfast.common import ranges
from holdfast.common.event_loop import run_sync
from holdfast.engine.reply_scoring import Scored, score_rows
from holdfast.engine.rows import Continuation, RowState, Stream
from holdfast.engine.scheduler import Scheduler, Serving
from holdfast.engine.shared import SharedPrefixes
from holdfast.errors import (
    HoldfastError,
    ModelError,
    ParameterOutOfRange,
    PromptError,
    PromptTooLong,
)
from holdfast.models.protocol import checked_batch, generate_all
from holdfast.models.rendering import Rendered, all_rendered, tokenize_replies
from holdfast.models.request_reader import Answer, Reader, SessionModel, rehearsal_of, take_tokens
from holdfast.models.requests import Reply, Request, Token
from holdfast.models.step_loop import StepLoop

MOST_LOGPROBS = 20
_INTERRUPTED = "The session was interrupted before this request was answered; ask again."


class LocalSession:
    """An engine on a model in this process, which steps itself while tasks wait for replies.

    Requests of all tasks share forward passes, and rows join and leave the batch at any step. The
    requests of a thread share prefixes; what was computed lives as long as the session. If
    `long_lived`, requests without a thread share their common first tokens.
    """

    def __init__(self, model: SessionModel, *, long_lived: bool = False):
        self.model, self.long_lived = model, long_lived
        self._reader = Reader(model)
        self._scheduler = self._new_scheduler()
        self._open: dict[RowState, Answer] = {}
        # no cycle, so that what was computed is freed with the last use of the session
        self._loop = StepLoop(weakref.proxy(self))
        self.rows_at_most: int | None = None  # the limit since memory ran out; None: it never did

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._loop.finish()

    async def generate(self, request: Request | Rendered) -> Reply:
        """Answers a request; see `Engine.generate`.

        A chat that leaves no room for a reply is no error: its reply says so by its stop reason.

        Raises:
            PromptError: the chat cannot be rendered, or its system prompt is not found.
            ModelError: a method cannot be applied to this model.
            UsageError: heads that the model does not have.
        """
        return await self._loop.generate(request)

    def stream(self, request: Request) -> AsyncGenerator[Token | Reply]:
        """Answers a request; yields every token as it is drawn, and the reply last.

        Raises:
            PromptError, ModelError, UsageError: as in `generate_batch`.
        """
        (chat,) = self._render_whole([request])
        return self._loop.stream(chat)

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers requests in the order given, for callers without an event loop.

        Raises:
            PromptError: a chat cannot be rendered, its system prompt is not found, or it exceeds
                the model's context; nothing is generated then.
            ModelError, UsageError: as in `generate`.
        """
        return run_sync(generate_all(self.generate, self._render_whole(checked_batch(requests))))

    def _render_whole(self, requests: Sequence[Request]) -> list[Rendered]:
        """The requests as rows, all of which have room for a reply."""
        self._reader.check_weights()
        rendered = all_rendered(self._reader.read(requests))
        for chat in rendered:
            self._check_room(chat)
        return rendered

    def begin(
        self, requests: Sequence[Request | Rendered], streamed: Sequence[bool] = ()
    ) -> list[Answer | Exception]:
        """Queues requests, those not rendered yet together; a refused one gives its error."""
        if not self._open:
            self._reader.check_weights()
        new = [request for request in requests if isinstance(request, Request)]
        read = iter(self._reader.read(new))
        chats = [next(read) if isinstance(request, Request) else request for request in requests]
        return [chat if isinstance(chat, HoldfastError) else self.enter(chat) for chat in chats]

    def submit(self, request: Request, top_logprobs: int | None = None) -> Answer:
        """Queues a request; `step` answers it along with all others.

        Args:
            request: the chat; refused as in `generate_batch`.
            top_logprobs: how many likeliest tokens (at most 20) to report with the log-probability
                of each drawn one; None: no log-probabilities.
        """
        return self.enter(self.render(request, top_logprobs))

    def render(self, request: Request, top_logprobs: int | None = None) -> Rendered:
        """A request as the engine reads it; without a `thread` it may run during a step."""
        if top_logprobs is not None:
            ranges.whole_number("a request", "top_logprobs", top_logprobs, 0)
            if top_logprobs > MOST_LOGPROBS:
                raise ParameterOutOfRange(
                    f"A request takes top_logprobs of at most {MOST_LOGPROBS}, not {top_logprobs}.",
                    option="top_logprobs",
                    value=top_logprobs,
                    allowed=f"from 0 to {MOST_LOGPROBS}",
                )
        self._reader.check_weights()
        (rendered,) = all_rendered(self._reader.read([request]))
        self._check_room(rendered)
        return replace(rendered, row=replace(rendered.row, top_logprobs=top_logprobs))

    def enter(self, rendered: Rendered) -> Answer:
        """Queues a request that `render` has read; one that needs a rehearsal waits for it."""
        if rendered.rehearsal is None:
            answer = Answer(rendered, self._submit(rendered))
        else:
            answer = Answer(rendered, RowState(rendered.row))
            self._reader.rehearsals.wait(answer, self._submit)
        self._open[answer.handle] = answer
        return answer

    def _submit(self, rendered: Rendered) -> RowState:
        shares = self.long_lived and rendered.request.thread is None
        return self._scheduler.submit(replace(rendered.row, shares=shares))

    def step(self) -> list[Answer]:
        """Makes a pass; returns the requests that have new tokens or have ended.

        An error of the pass ends every open request.
        """
        try:
            ended = self._scheduler.step()
        except BaseException as error:
            self._give_up(error)
            raise
        if self._scheduler.halvings:
            self.rows_at_most = self._scheduler.halvings[-1]
        finished = list[Answer]()
        for handle in ended:
            if handle in self._reader.rehearsals:
                finished += self._submit_waiting(handle)
            else:
                finished.append(self._finish(self._open.pop(handle)))
        return [answer for answer in self._open.values() if answer.has_new_tokens] + finished

    def take(self, answers: Sequence[Answer]) -> list[list[Token]]:
        """The tokens of each request since the last call."""
        return take_tokens(answers)

    @property
    def running(self) -> int:
        """Requests being forwarded; the other open ones wait."""
        return self._scheduler.running

    @property
    def capacity(self) -> int:
        """The most requests forwarded together, given the memory known to suffice."""
        return self._scheduler.limit

    def cancel(self, answer: Answer) -> None:
        """Cancels a request and frees its rows at once; one that has ended stays as it is."""
        if not answer.done:
            self._scheduler.cancel(answer.handle)
            self._open.pop(answer.handle, None)

    def _new_scheduler(self) -> Scheduler:
        if not self.long_lived:
            return self.model.scheduler()
        runner = self.model.runner
        shared = SharedPrefixes(
            self.model.prefix_bytes, pieces=runner.sees_all, rotary=runner.rotary
        )
        return self.model.scheduler(Serving(shared))

    def _give_up(self, error: BaseException) -> None:
        """Ends all requests with an error, and starts over without them."""
        for answer in self._open.values():
            answer.error = error if isinstance(error, Exception) else ModelError(_INTERRUPTED)
        self._open.clear()
        self._reader.rehearsals.clear()
        self._scheduler = self._new_scheduler()

    def _submit_waiting(self, rehearsal: RowState) -> list[Answer]:
        """Queues the requests that waited for a rehearsal; returns those that fail."""
        ended = []
        for number, answer in enumerate(self._reader.rehearsals.end(rehearsal)):
            del self._open[answer.handle]
            try:
                self._resolve(answer, rehearsal, first=number == 0)
            except Exception as error:
                answer.error = error
                ended.append(answer)
        return ended

    def _resolve(self, answer: Answer, rehearsal: RowState, *, first: bool) -> None:
        """Queues a request whose rehearsal has ended; the first is charged for the rehearsal."""
        before = answer.rendered
        assert before.rehearsal is not None
        done = rehearsal.result()
        self._reader.rehearsals.learn(before.request, self._reply(before.rehearsal, done))
        (rendered,) = all_rendered(self._reader.read([before.request]))
        row = replace(rendered.row, top_logprobs=before.row.top_logprobs)
        answer.rendered = replace(rendered, row=row)
        answer.rehearsed = done.forwarded if first else 0
        answer.handle = self._submit(answer.rendered)
        self._open[answer.handle] = answer

    def _finish(self, answer: Answer) -> Answer:
        try:
            reply = self._reply(answer.rendered, answer.handle.result())
            forwarded, cached = reply.forwarded + answer.rehearsed, answer.handle.cached
            answer.reply = replace(reply, forwarded=forwarded, cached=cached)
        except Exception as error:
            answer.error = error
        return answer

    def _reply(self, rendered: Rendered, done: Continuation) -> Reply:
        if done.stop_reason == "context":
            return Reply("", (), "context", prompt_ids=rendered.prompt_ids)
        ids = list(done.token_ids)
        text = str(self.model.tokenizer.decode(ids, skip_special_tokens=True))
        if rendered.row.keep:
            self._reader.keep(rendered, rendered.known(done.computed, done.token_ids, text))
        return Reply(
            text, done.token_ids, done.stop_reason, done.trace, done.forwarded, rendered.prompt_ids
        )

    def forget(self, thread: Hashable) -> None:
        """Frees what was computed for a finished thread; a later request of it starts over."""
        self._reader.forget(thread)

    def _check_room(self, rendered: Rendered) -> None:
        context, row = self.model.context, rendered.row
        if context and row.longest >= context:
            raise PromptTooLong(
                f"{row.name and f'{row.name}: '}A chat of {len(rendered.prompt_ids)} tokens leaves"
                f" no room for a reply in the {context} tokens {self.model.name} can see; use a"
                " shorter chat or fewer rounds.",
                value=row.longest,
                allowed=context,
            )

    def score(self, requests: Sequence[Request], replies: Sequence[Sequence[str]]) -> list[Scored]:
        """The log-probabilities of given replies to each chat (at temperature 1, the whole
        vocabulary).

        A request with a `thread` continues what that thread has computed; with `keep`, the chat
        (not the replies) becomes part of it.

        Args:
            requests: sampling, seeds (except `conversation_seed`) and traces have no effect.
            replies: per request, at least one and none empty; each is tokenized after its chat.

        Raises:
            PromptError: a reply is empty, or does not fit into the model's context.
            ModelError: a method cannot be applied to this model.
        """
        rendered, wanted = self._read_replies(requests, replies)
        rows, model = [chat.row for chat in rendered], self.model
        scored, computed = score_rows(model.runner, rows, wanted, model.batch_size)
        for chat, chat_computed in zip(rendered, computed, strict=True):
            if chat.row.keep and chat_computed:
                self._reader.keep(chat, chat.known(chat_computed))
        return scored

    def score_inputs(
        self, requests: Sequence[Request], replies: Sequence[Sequence[str]]
    ) -> list[tuple[Stream, list[tuple[int, ...]]]]:
        """The inputs of `score`: each chat's tokens and span, and the tokens of its replies."""
        rendered, wanted = self._read_replies(requests, replies)
        return list(zip((chat.row.streams[0] for chat in rendered), wanted, strict=True))

    def rehearse(self, request: Request) -> Request:
        """The request with its methods resolved by a rehearsed reply to its first turn."""
        self._reader.check_weights()
        self._rehearse([request])
        resolved = self._reader.rehearsals.resolved(request)
        assert resolved is not None
        return resolved

    def _rehearse(self, requests: Sequence[Request]) -> None:
        rehearsals = self._reader.rehearsals
        unresolved = [request for request in requests if rehearsals.resolved(request) is None]
        if not unresolved:
            return
        for request in unresolved:
            self._reader.check(request.methods)
        # in a separate session
        replies = LocalSession(self.model).generate_batch([rehearsal_of(r) for r in unresolved])
        for request, reply in zip(unresolved, replies, strict=True):
            rehearsals.learn(request, reply)

    def _read_replies(
        self, requests: Sequence[Request], replies: Sequence[Sequence[str]]
    ) -> tuple[list[Rendered], list[list[tuple[int, ...]]]]:
        """The requests and the tokens of their replies, all within the model's context."""
        self._reader.check_weights()
        requests = checked_batch(requests)
        self._rehearse(requests)
        rendered = all_rendered(self._reader.read(requests))
        wanted = tokenize_replies(rendered, replies, self.model.tokenizer)
        context = self.model.context
        for chat, options in zip(rendered, wanted, strict=True):
            longest = chat.row.longest + max(map(len, options))
            if context and (longest > context or chat.row.longest >= context):
                name = chat.row.name
                raise PromptError(
                    f"{name and f'{name}: '}A chat and its reply take {longest} tokens, and"
                    f" {self.model.name} sees {context}; use a shorter chat.",
                    value=longest,
                    allowed=context,
                )
        return rendered, wanted
