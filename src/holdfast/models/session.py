"""Requests to a local model, which share what was computed for their dialogs."""

from __future__ import annotations

import weakref
from collections.abc import AsyncGenerator, Hashable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Protocol, Self

from holdfast.common import ranges
from holdfast.common.event_loop import run_sync, task_group
from holdfast.engine.reply_scoring import Scored, score_rows
from holdfast.engine.rows import RowState
from holdfast.engine.runner import Runner
from holdfast.engine.scheduler import Scheduler, Serving
from holdfast.engine.shared import SharedPrefixes
from holdfast.errors import ModelError, UsageError
from holdfast.models.protocol import checked_batch, generate_all
from holdfast.models.rehearsals import GenerateRendered
from holdfast.models.rendering import CachedDialog, Rendered, Unresolved, check_room
from holdfast.models.reply_scores import ScoringInput, check_replies, scoring_inputs
from holdfast.models.request_renderer import RenderingModel, RequestRenderer
from holdfast.models.requests import Reply, Request, Token
from holdfast.models.step_loop import RowUpdate, StepLoop
from holdfast.models.thread_cache import ThreadCache
from holdfast.models.token_details import new_tokens

MAX_TOP_LOGPROBS = 20


class SessionModel(RenderingModel, Protocol):
    """The part of a `LocalModel` that its sessions use."""

    @property
    def name(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def context(self) -> int | None: ...
    @property
    def prefix_bytes(self) -> int: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def runner(self) -> Runner: ...
    def scheduler(self, serving: Serving | None = None) -> Scheduler: ...


@dataclass
class _OpenRequest:
    """A request that was submitted and has not ended."""

    chat: Rendered
    streamed: bool  # whether its tokens are reported as they are drawn
    reported: int = 0  # tokens that were


class LocalSession:
    """An engine on a model in this process, which steps itself while tasks wait for replies.

    Requests of all tasks share forward passes, and rows join and leave the batch at any step. The
    requests of a thread share prefixes; what was computed lives as long as the session. If
    `long_lived`, requests without a thread share their common first tokens.
    """

    def __init__(self, model: SessionModel, *, long_lived: bool = False):
        self.model, self.long_lived = model, long_lived
        self.rows_at_most: int | None = None  # the limit since memory ran out; None: it never did
        self.threads = ThreadCache(model.prefix_bytes)
        self._renderer = RequestRenderer(model, self.threads)
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
        (chat,) = self._renderer.render([request])
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
            UsageError: tasks wait for replies of this session, which would never come meanwhile.
        """
        self._require_idle()
        self._check_weights()
        chats = self._renderer.render(checked_batch(requests))
        for chat in chats:
            check_room(chat, self.model.context, self.model.name)
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
        self.threads.forget(thread)

    def _check_weights(self) -> None:
        """Raises a `ModelError` if the weights changed since the session was opened."""
        if (now := self.model.fingerprint) != self._fingerprint:
            raise ModelError(
                f"The weights, the configuration or the template of {self.model.name!r} changed"
                f" since this session was opened (fingerprint {self._fingerprint[:12]}, now"
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
        (chat,) = self._renderer.render([request])
        check_room(chat, self.model.context, self.model.name)
        return replace(chat, row=replace(chat.row, top_logprobs=top_logprobs))

    async def resolve(self, chat: Rendered, generate: GenerateRendered) -> Rendered:
        """The chat with all of its methods; `generate` answers its rehearsal, if it needs one."""
        return await self._renderer.resolve(chat, generate)

    # From a row to its reply; called by the loop that steps the engine

    def submit(self, chat: Rendered, streamed: bool = False) -> RowState:
        """Queues a chat whose methods are resolved; `step` answers it along with all others."""
        assert not isinstance(chat, Unresolved), "`resolve` comes first"
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
        if not row.done:  # else the next step reports it
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
            self._keep(chat, chat.as_dialog(done.computed, ids, text))
        return Reply(
            text=text,
            token_ids=ids,
            stop_reason=done.stop_reason,
            trace=done.trace,
            forwarded=forwarded,
            prompt_ids=chat.prompt_ids,
            cached=row.cached,
        )

    def _keep(self, chat: Rendered, dialog: tuple[CachedDialog, ...]) -> None:
        """Makes a dialog the current one of its thread."""
        assert chat.request.thread is not None
        self.threads.keep(chat.request.thread, dialog)

    # Given replies

    async def score(
        self, requests: Sequence[Request], replies: Sequence[Sequence[str]]
    ) -> list[Scored]:
        """The log-probabilities of given replies to each chat (at temperature 1, the whole
        vocabulary).

        A request with a `thread` continues what that thread has computed; with `keep`, the chat
        (not the replies) becomes part of it.

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
        inputs, model = await self.score_inputs(requests, replies), self.model
        if not inputs:
            return []
        results, computed = score_rows(
            model.runner,
            [given.chat.row for given in inputs],
            [given.replies for given in inputs],
            model.batch_size,
        )
        for given, keys_values in zip(inputs, computed, strict=True):
            if given.chat.row.keep and keys_values:
                self._keep(given.chat, given.chat.as_dialog(keys_values))
        return [
            replace(result, forwarded=result.forwarded + given.chat.rehearsed)
            for result, given in zip(results, inputs, strict=True)
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
        chats = self._renderer.render(checked_batch(requests))
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
        (chat,) = self._renderer.render([request])
        return (await self.resolve(chat, self._loop.generate)).request
