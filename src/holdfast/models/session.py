"""Requests to a local model, which share what was computed for their dialogs."""

from __future__ import annotations

import weakref
from collections.abc import AsyncGenerator, Hashable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Protocol, Self

from transformers import PreTrainedTokenizerFast

from holdfast.common import ranges
from holdfast.common.event_loop import run_sync
from holdfast.engine.reply_scoring import Scored, score_rows
from holdfast.engine.rows import RowState, Stream
from holdfast.engine.runner import Runner
from holdfast.engine.scheduler import Scheduler, Serving, errors_named
from holdfast.engine.shared import SharedPrefixes
from holdfast.errors import (
    ModelError,
    ParameterOutOfRange,
    PromptError,
    PromptTooLong,
)
from holdfast.methods import Method
from holdfast.models.protocol import checked_batch, generate_all
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
    tokenize_replies,
)
from holdfast.models.requests import Reply, Request, Token
from holdfast.models.step_loop import RowUpdate, StepLoop
from holdfast.models.thread_cache import ThreadCache
from holdfast.models.token_details import new_tokens

MAX_TOP_LOGPROBS = 20
_MAX_CHECKED = 1_000  # lists of methods known to be valid; a server may see any number of them


class SessionModel(Protocol):
    """The part of a `LocalModel` that its sessions use."""

    @property
    def name(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def tokenizer(self) -> PreTrainedTokenizerFast: ...
    @property
    def steerable(self) -> bool: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def prefix_bytes(self) -> int: ...
    @property
    def context(self) -> int | None: ...
    @property
    def runner(self) -> Runner: ...
    def scheduler(self, serving: Serving | None = None) -> Scheduler: ...
    def check(self, methods: Sequence[Method]) -> None: ...


@dataclass
class _OpenRequest:
    """A request that was submitted and has not ended."""

    chat: Rendered
    streamed: bool  # whether its tokens are reported as they are drawn
    reported: int = 0  # tokens that were


@dataclass(frozen=True)
class ScoringInput:
    """A chat whose given replies are scored."""

    chat: Rendered
    replies: list[tuple[int, ...]]  # the tokens of each reply

    @property
    def stream(self) -> Stream:
        """The chat's tokens and span."""
        return self.chat.row.streams[0]


class LocalSession:
    """An engine on a model in this process, which steps itself while tasks wait for replies.

    Requests of all tasks share forward passes, and rows join and leave the batch at any step. The
    requests of a thread share prefixes; what was computed lives as long as the session. If
    `long_lived`, requests without a thread share their common first tokens.
    """

    def __init__(self, model: SessionModel, *, long_lived: bool = False):
        self.model, self.long_lived = model, long_lived
        self.rows_at_most: int | None = None  # the limit since memory ran out; None: it never did
        self._threads = ThreadCache(model.prefix_bytes)
        self._rehearsals = Rehearsals()
        self._checked: set[tuple[Method, ...]] = set()
        self._fingerprint = model.fingerprint
        self._scheduler = self._new_scheduler()
        self._open: dict[RowState, _OpenRequest] = {}
        # no cycle, so that what was computed is freed with the last use of the session
        self._loop = StepLoop(weakref.proxy(self))

    def _new_scheduler(self) -> Scheduler:
        if not self.long_lived:
            return self.model.scheduler()
        runner = self.model.runner
        shared = SharedPrefixes(
            self.model.prefix_bytes, pieces=runner.sees_all, rotary=runner.rotary
        )
        return self.model.scheduler(Serving(shared))

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
        (chat,) = self._render_with_rehearsals([request])
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
        return self._stream(self.render(request, top_logprobs))

    async def _stream(self, chat: Rendered) -> AsyncGenerator[Token | Reply]:
        chat = await self.resolve(chat, self._loop.generate)
        async with aclosing(self._loop.stream(chat)) as events:
            async for event in events:
                yield event

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers requests in the order given, for callers without an event loop.

        Raises:
            PromptError: a chat cannot be rendered, its system prompt is not found, or it exceeds
                the model's context; nothing is generated then.
            ModelError, UsageError: as in `generate`.
        """
        self._check_weights()
        chats = self._render_with_rehearsals(checked_batch(requests))
        for chat in chats:
            self._check_room(chat)
        return run_sync(generate_all(self._generate, chats))

    @property
    def running(self) -> int:
        """Requests being forwarded; the other open ones wait."""
        return self._scheduler.running

    @property
    def capacity(self) -> int:
        """The most requests forwarded together, given the memory known to suffice."""
        return self._scheduler.limit

    def forget(self, thread: Hashable) -> None:
        """Frees what was computed for a finished thread; a later request of it starts over."""
        self._threads.forget(thread)

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
            ranges.whole_number("a request", "top_logprobs", top_logprobs, 0)
            if top_logprobs > MAX_TOP_LOGPROBS:
                raise ParameterOutOfRange(
                    f"A request takes top_logprobs of at most {MAX_TOP_LOGPROBS},"
                    f" not {top_logprobs}.",
                    option="top_logprobs",
                    value=top_logprobs,
                    allowed=f"from 0 to {MAX_TOP_LOGPROBS}",
                )
        self._check_weights()
        (chat,) = self._render_with_rehearsals([request])
        self._check_room(chat)
        return replace(chat, row=replace(chat.row, top_logprobs=top_logprobs))

    async def resolve(self, chat: Rendered, generate: GenerateRendered) -> Rendered:
        """The chat with its methods resolved; `generate` answers its rehearsal, if it needs one."""
        if chat.rehearsal is None:
            return chat
        forwarded = await self._rehearsals.rehearse(chat.request, chat.rehearsal, generate)
        request = self._rehearsals.resolved_request(chat.request)
        assert request is not None
        chat = chat.under(request, forwarded)
        self._check(request.methods)
        return chat

    def _render_with_rehearsals(self, requests: Sequence[Request]) -> list[Rendered]:
        """The requests as rows; those with unresolved methods get a rehearsal.

        Raises the error of the first request that cannot be rendered, with its name.
        """
        resolved = [self._rehearsals.resolved_request(request) for request in requests]
        stand_ins = [
            known or without_rehearsed(request)
            for known, request in zip(resolved, requests, strict=True)
        ]
        chats = self._render_resolved(stand_ins)
        for number, (request, known) in enumerate(zip(requests, resolved, strict=True)):
            if known is None:
                chats[number] = self._with_rehearsal(chats[number], request)
        return chats

    def _render_resolved(self, requests: Sequence[Request]) -> list[Rendered]:
        """The requests as rows that continue their threads."""
        chats: list[RequestInThread] = []
        for request in requests:
            with errors_named(request.name):
                self._check(request.methods)
                dialog = () if request.thread is None else self._threads.use(request.thread)
                dialog = dialog or known_replies(request, self.model.tokenizer)
                chats.append(RequestInThread(request, dialog))
        return render(chats, self.model.tokenizer, traces=self.model.steerable)

    def _with_rehearsal(self, chat: Rendered, request: Request) -> Rendered:
        """A request whose methods are not resolved, with its rehearsal."""
        with errors_named(request.name):
            self._check(request.methods)
            rehearsal = rehearsal_of(request)
        (rendered,) = self._render_resolved([rehearsal])
        return replace(chat, request=request, rehearsal=rendered)

    def _check(self, methods: tuple[Method, ...]) -> None:
        """Refuses methods that the model cannot apply, as the model's `check` does."""
        if methods not in self._checked:
            self.model.check(methods)
            if len(self._checked) >= _MAX_CHECKED:
                self._checked.clear()
            self._checked.add(methods)

    def _check_weights(self) -> None:
        """Raises a `ModelError` if the weights changed since the session was opened."""
        if (now := self.model.fingerprint) != self._fingerprint:
            raise ModelError(
                f"The weights, the configuration or the template of {self.model.name!r} changed"
                f" since this session was opened (fingerprint {self._fingerprint[:12]}, now"
                f" {now[:12]}), and it has computed with the old ones; open a new session."
            )

    def _check_room(self, chat: Rendered) -> None:
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

    # From a row to its reply; called by the loop that steps the engine

    def submit(self, chat: Rendered, streamed: bool = False) -> RowState:
        """Queues a chat whose methods are resolved; `step` answers it along with all others."""
        assert chat.rehearsal is None, "`resolve` comes first"
        shares = self.long_lived and chat.request.thread is None
        row = self._scheduler.submit(replace(chat.row, shares=shares))
        self._open[row] = _OpenRequest(chat, streamed)
        return row

    def step(self) -> list[RowUpdate[RowState]]:
        """Makes a pass; reports the replies that have ended, and streamed ones with new tokens.

        An error of the pass ends every open request.
        """
        try:
            ended = self._scheduler.step()
        except BaseException:
            self._open.clear()
            self._scheduler = self._new_scheduler()
            raise
        if self._scheduler.halvings:
            self.rows_at_most = self._scheduler.halvings[-1]
        tokens = new_tokens(
            {
                row: request.reported
                for row, request in self._open.items()
                if request.streamed and len(row.token_ids) > request.reported
            }
        )
        for row in tokens:
            self._open[row].reported = len(row.token_ids)
        outcomes = {row: self._end(row) for row in ended}
        changed = dict.fromkeys((*tokens, *ended))
        return [RowUpdate(row, tokens.get(row, ()), outcomes.get(row)) for row in changed]

    def cancel(self, row: RowState) -> None:
        """Cancels a request and frees its rows at once; one that has ended stays as it is."""
        self._scheduler.cancel(row)
        self._open.pop(row, None)

    def _end(self, row: RowState) -> Reply | Exception:
        request = self._open.pop(row)
        try:
            return self._reply(request.chat, row)
        except Exception as error:
            return error

    def _reply(self, chat: Rendered, row: RowState) -> Reply:
        done = row.result()
        forwarded = done.forwarded + chat.rehearsed
        if done.stop_reason == "context":
            return Reply(
                text="",
                token_ids=(),
                stop_reason="context",
                forwarded=forwarded,
                prompt_ids=chat.prompt_ids,
            )
        ids = done.token_ids
        text = str(self.model.tokenizer.decode(list(ids), skip_special_tokens=True))
        if chat.row.keep:
            self._remember(chat, chat.as_dialog(done.computed, ids, text))
        return Reply(
            text=text,
            token_ids=ids,
            stop_reason=done.stop_reason,
            trace=done.trace,
            forwarded=forwarded,
            prompt_ids=chat.prompt_ids,
            cached=row.cached,
        )

    def _remember(self, chat: Rendered, dialog: tuple[CachedDialog, ...]) -> None:
        """Makes a dialog the current one of its thread."""
        assert chat.request.thread is not None
        self._threads.keep(chat.request.thread, dialog)

    # Given replies

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
        inputs = self.score_inputs(requests, replies)
        rows = [scored.chat.row for scored in inputs]
        token_ids = [scored.replies for scored in inputs]
        model = self.model
        results, computed = score_rows(model.runner, rows, token_ids, model.batch_size)
        for scored, keys_values in zip(inputs, computed, strict=True):
            chat = scored.chat
            if chat.row.keep and keys_values:
                self._remember(chat, chat.as_dialog(keys_values))
        return results

    def score_inputs(
        self, requests: Sequence[Request], replies: Sequence[Sequence[str]]
    ) -> list[ScoringInput]:
        """The input of `score`: chats, and the tokens of their replies; raises as it does."""
        self._check_weights()
        requests = checked_batch(requests)
        chats = self._render_resolved(self._rehearsed(requests))
        token_ids = tokenize_replies(chats, replies, self.model.tokenizer)
        for chat, options in zip(chats, token_ids, strict=True):
            self._check_fits(chat, options)
        return list(map(ScoringInput, chats, token_ids))

    def _check_fits(self, chat: Rendered, replies: Sequence[tuple[int, ...]]) -> None:
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

    # Rehearsals without an event loop

    def rehearse(self, request: Request) -> Request:
        """The request with its methods resolved by a rehearsed reply to its first turn."""
        self._check_weights()
        (resolved,) = self._rehearsed([request])
        return resolved

    def _rehearsed(self, requests: Sequence[Request]) -> list[Request]:
        """The requests with their methods resolved, by a rehearsal if none is remembered."""
        resolved = [self._rehearsals.resolved_request(request) for request in requests]
        new = [request for request, known in zip(requests, resolved, strict=True) if known is None]
        for request in new:
            self._check(request.methods)
        # in a session of its own, as an event loop may be stepping this one
        rehearsals = [rehearsal_of(request) for request in new]
        replies = LocalSession(self.model).generate_batch(rehearsals) if new else []
        learned = iter(list(map(self._rehearsals.learn, new, replies)))
        return [next(learned) if known is None else known for known in resolved]
