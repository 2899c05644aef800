"""Answers the open requests of a session's model step by step.

SessionModel  the model: a `LocalModel`, or a plug-in's model with its own runner
StepWorker    makes the steps of a server in a thread, and decides when it gives up
SteppedModel  turns rendered requests into replies; a `StepLoop` calls it
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Protocol

from transformers import PreTrainedTokenizerFast

from holdfast.errors import ModelError
from holdfast.generation.cpu_threads import one_thread
from holdfast.generation.model_runner import ModelRunner
from holdfast.generation.prefix_cache import PrefixCache
from holdfast.generation.scheduler import Scheduler, Serving
from holdfast.generation.token_requests import RequestState
from holdfast.models.new_tokens import new_tokens
from holdfast.models.protocol import ChatModel
from holdfast.models.rendering import RenderedRequest
from holdfast.models.requests import Reply
from holdfast.models.step_loop import ReplyUpdate
from holdfast.models.thread_cache import ThreadCache

_LOG = logging.getLogger("holdfast")
_MAX_FAILURES = 3  # failed steps without a reply in between; then the session gives up


class SessionModel(ChatModel, Protocol):
    """A chat model in this process, as its sessions use it."""

    @property
    def tokenizer(self) -> PreTrainedTokenizerFast:
        """Its fast tokenizer, which has a chat template."""

    @property
    def stop_ids(self) -> frozenset[int]:
        """The tokens that end a reply."""

    @property
    def steerable(self) -> bool:
        """Whether the attention mass on the prompt can be read and moved."""

    @property
    def context(self) -> int | None:
        """The number of tokens that the model can see; None if unknown."""

    @property
    def batch_size(self) -> int:
        """The most sequences forwarded together."""

    @property
    def prefix_bytes(self) -> int:
        """Bytes of keys and values that a session keeps of its threads."""

    @property
    def runner(self) -> ModelRunner:
        """The model as the engine sees it."""


class StepWorker:
    """Makes the steps of one session in a thread, and decides when the session gives up.

    A failed step ends all open requests with a `ModelError`, and the session continues. After
    several failed steps without a reply in between, it takes no more requests.

    Attributes:
        executor: makes the steps, one after the other.
        error: why the session has given up; None if it has not.
    """

    def __init__(self) -> None:
        self.executor = ThreadPoolExecutor(1, "holdfast-engine")
        self.error: ModelError | None = None
        self._failures = 0
        self._closed = False

    def check_running(self) -> None:
        """Raises a `ModelError` if the session has given up or was closed."""
        if self._closed or self.error is not None:
            why = self.error or "shut down"
            raise ModelError(f"The engine is not running ({why}); restart it.")

    def note_reply(self) -> None:
        """Resets the count of failures, because a reply was completed."""
        self._failures = 0

    def note_failure(self, error: BaseException) -> ModelError:
        """Counts a failed step, and returns the error for all its requests.

        The session gives up after too many, or after an error that is no `Exception`.
        """
        _LOG.error("A step of the engine has failed", exc_info=error)
        failure = ModelError(
            f"The engine failed before it had answered ({type(error).__name__}: {error}); ask"
            " again, and check the server's log."
        )
        self._failures += 1
        if self._failures == _MAX_FAILURES or not isinstance(error, Exception):
            _LOG.error("The engine has ended")
            self.error = failure
        return failure

    def close(self) -> None:
        """Ends the thread after the step that it is making."""
        self._closed = True
        self.executor.shutdown()


@dataclass
class OpenRequest:
    """A request that was submitted and has not ended."""

    rendered: RenderedRequest
    streamed: bool  # whether its tokens are reported as they are drawn
    num_reported: int = 0  # tokens that have been reported


class SteppedModel:
    """Turns rendered requests into replies; a `StepLoop` calls it.

    Args:
        model: computes the replies.
        threads: keeps the prefixes of requests with `keep`.
        long_lived: whether requests without a thread share their common first tokens.
        worker: makes the steps of a server; None if the caller of `step` does.

    Attributes:
        open: the requests that were submitted and have not ended.
        scheduler: decides which of them are forwarded; a new one after a failed step.
        reduced_max_sequences: the most sequences forwarded together since memory ran out; None if
            it never did.
    """

    def __init__(
        self,
        model: SessionModel,
        threads: ThreadCache,
        *,
        long_lived: bool = False,
        worker: StepWorker | None = None,
    ):
        self.reduced_max_sequences: int | None = None
        self._model = model
        self._threads = threads
        self._long_lived = long_lived
        self._worker = worker
        # a server with a small model leaves the other processors to its clients
        self._one_processor = worker is not None and model.runner.small
        self.scheduler = self._new_scheduler()
        self.open: dict[RequestState, OpenRequest] = {}

    def _new_scheduler(self) -> Scheduler:
        model = self._model
        runner = model.runner
        serving = None
        if self._long_lived:
            serving = Serving(
                PrefixCache(model.prefix_bytes, saves_pieces=runner.sees_all, rotary=runner.rotary)
            )
        return Scheduler(runner, model.stop_ids, model.batch_size, serving)

    def submit(self, rendered: RenderedRequest, *, streamed: bool = False) -> RequestState:
        """Queues a request; `step` answers it together with all others.

        Raises:
            ModelError: the worker has given up or was closed.
        """
        if self._worker is not None:
            self._worker.check_running()
        shares_kv = self._long_lived and rendered.request.thread is None
        state = self.scheduler.submit(replace(rendered.token_request, shares_kv=shares_kv))
        self.open[state] = OpenRequest(rendered, streamed)
        return state

    def step(self) -> dict[RequestState, ReplyUpdate]:
        """Makes a pass; returns updates of the replies that have ended or have new tokens.

        If the pass raises an error, all open requests end. With a `StepWorker`, the error is a
        `ModelError`.
        """
        try:
            with one_thread() if self._one_processor else nullcontext():
                updates = self._collect_updates(self.scheduler.step())
        except BaseException as error:
            self.open.clear()
            self.scheduler = self._new_scheduler()
            if self._worker is None:
                raise
            raise self._worker.note_failure(error) from error
        if self._worker is not None and _have_reply(updates):
            self._worker.note_reply()
        return updates

    def cancel(self, state: RequestState) -> None:
        """Cancels a request and frees its slots at once, unless it has ended."""
        if not state.done:  # otherwise the next step reports it
            self.scheduler.cancel(state)
            self.open.pop(state, None)

    def _collect_updates(self, ended: Sequence[RequestState]) -> dict[RequestState, ReplyUpdate]:
        """Collects the new tokens and the outcomes of a step, in which these requests ended."""
        if self.scheduler.halvings:
            self.reduced_max_sequences = self.scheduler.halvings[-1]
        num_reported = {
            state: request.num_reported
            for state, request in self.open.items()
            if request.streamed and len(state.token_ids) > request.num_reported
        }
        tokens = new_tokens(num_reported)
        for state in tokens:
            self.open[state].num_reported = len(state.token_ids)
        outcomes = {state: self._end(state) for state in ended}
        changed = dict.fromkeys((*tokens, *ended))
        return {state: ReplyUpdate(tokens.get(state, ()), outcomes.get(state)) for state in changed}

    def _end(self, state: RequestState) -> Reply | Exception:
        """Closes a request that has ended; returns its reply or its error."""
        request = self.open.pop(state)
        try:
            return self._reply(request.rendered, state)
        except Exception as error:
            return error

    def _reply(self, rendered: RenderedRequest, state: RequestState) -> Reply:
        """Makes the reply to a request that has ended, and keeps it in its thread."""
        state.require_reply()
        ids = tuple(state.token_ids)
        reply = Reply(
            text=str(self._model.tokenizer.decode(state.token_ids, skip_special_tokens=True)),
            token_ids=ids,
            stop_reason=state.stop_reason,
            trace=state.trace,
            forwarded=state.forwarded + rendered.rehearsed,
            prompt_ids=rendered.prompt_ids,
            cached=state.cached,
        )
        if state.request.keep and reply.stop_reason != "context":
            prefixes = rendered.as_prefixes(state.kv, ids, reply.text)
            self._threads.keep(rendered.request.thread, prefixes)
        return reply


def _have_reply(updates: Mapping[RequestState, ReplyUpdate]) -> bool:
    return any(isinstance(update.outcome, Reply) for update in updates.values())
