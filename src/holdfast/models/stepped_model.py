"""Answers the open requests of a session's model step by step.

SessionModel  the model: a `LocalModel`, or a plug-in's model with its own runner
ThreadCache   the dialogs of threads, with their keys and values
StepWorker    makes the steps of a server in a thread, and decides when it gives up
SteppedModel  turns rows into replies; a `StepLoop` calls it
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from holdfast.errors import ModelError
from holdfast.generation.cpu_threads import one_thread
from holdfast.generation.kv_cache import CachedPrefix
from holdfast.generation.prefix_cache import PrefixCache
from holdfast.generation.row_runner import RowRunner
from holdfast.generation.rows import RowState, TokenMass
from holdfast.generation.scheduler import Scheduler, Serving
from holdfast.models.protocol import ChatModel
from holdfast.models.rendering import Rendered
from holdfast.models.requests import Reply, Token
from holdfast.models.step_loop import RowUpdate

_LOG = logging.getLogger("holdfast")
_MAX_FAILURES = 3  # failed steps without a reply in between; then the session gives up
_Dialog = tuple[CachedPrefix, ...]  # one per stream


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
        """The most rows forwarded together."""

    @property
    def prefix_bytes(self) -> int:
        """Bytes of keys and values that a session keeps of its dialogs."""

    @property
    def runner(self) -> RowRunner:
        """The model as the engine sees it."""

    def scheduler(self, serving: Serving | None = None) -> Scheduler:
        """Makes a scheduler without rows."""


class ThreadCache:
    """Keeps the dialog of each thread, with at most `limit` bytes of keys and values in all.

    Those of the least recently used threads are evicted first, and recomputed when needed.

    Attributes:
        size: the bytes of the keys and values that are kept.
    """

    def __init__(self, limit: int):
        self.limit = limit
        self.size = 0
        self._dialogs = OrderedDict[Hashable, _Dialog]()  # the least recently used first

    def __len__(self) -> int:
        return len(self._dialogs)

    def keep(self, thread: Hashable, dialog: _Dialog) -> None:
        """Replaces the dialog of a thread, and evicts keys and values beyond the limit."""
        self.forget(thread)
        self._dialogs[thread] = dialog
        self.size += _size(dialog)
        for other in self._dialogs.values():
            if self.size <= self.limit:
                break
            self.size -= _size(other)
            for stream in other:
                stream.kv = None

    def use(self, thread: Hashable) -> _Dialog:
        """Returns a thread's dialog, which becomes the most recently used; () if it is unknown."""
        if thread not in self._dialogs:
            return ()
        self._dialogs.move_to_end(thread)
        return self._dialogs[thread]

    def forget(self, thread: Hashable) -> None:
        """Drops a thread; streams that already refer to its keys and values can still use them."""
        self.size -= _size(self._dialogs.pop(thread, ()))


def _size(dialog: _Dialog) -> int:
    return sum(stream.size for stream in dialog)


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
        """Counts a failed step, and returns the error for all its requests; the session gives up
        after too many, or after an error that is no `Exception`.
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
class _OpenRequest:
    """A request that was submitted and has not ended."""

    chat: Rendered
    streamed: bool  # whether its tokens are reported as they are drawn
    num_reported: int = 0  # tokens that have been reported


class SteppedModel:
    """Turns rows into replies; a `StepLoop` calls it.

    Args:
        model: computes the replies.
        threads: keeps the dialogs of requests with `keep`.
        long_lived: whether requests without a thread share their common first tokens.
        worker: makes the steps of a server; None if the caller of `step` does.

    Attributes:
        rows_at_most: the most requests forwarded together since memory ran out; None if it never
            did.
    """

    def __init__(
        self,
        model: SessionModel,
        threads: ThreadCache,
        *,
        long_lived: bool = False,
        worker: StepWorker | None = None,
    ):
        self.rows_at_most: int | None = None
        self._model = model
        self._threads = threads
        self._long_lived = long_lived
        self._worker = worker
        # a server with a small model leaves the other processors to its clients
        self._one_processor = worker is not None and model.runner.small
        self._scheduler = self._new_scheduler()
        self._open: dict[RowState, _OpenRequest] = {}

    def _new_scheduler(self) -> Scheduler:
        if not self._long_lived:
            return self._model.scheduler()
        runner = self._model.runner
        prefixes = PrefixCache(
            self._model.prefix_bytes, pieces=runner.sees_all, rotary=runner.rotary
        )
        return self._model.scheduler(Serving(prefixes))

    @property
    def running(self) -> int:
        """The number of requests being forwarded; the other open ones wait."""
        return self._scheduler.running

    @property
    def capacity(self) -> int:
        """The most requests that can be forwarded together, as far as is known of the memory."""
        return self._scheduler.limit

    def submit(self, chat: Rendered, *, streamed: bool = False) -> RowState:
        """Queues a chat; `step` answers it together with all others.

        Raises:
            ModelError: the worker has given up or was closed.
        """
        if self._worker is not None:
            self._worker.check_running()
        shares = self._long_lived and chat.request.thread is None
        row = self._scheduler.submit(replace(chat.row, shares=shares))
        self._open[row] = _OpenRequest(chat, streamed)
        return row

    def step(self) -> dict[RowState, RowUpdate]:
        """Makes a pass; returns updates of the replies that have ended or have new tokens.

        If the pass raises an error, all open requests end. With a `StepWorker`, the error is a
        `ModelError`.
        """
        try:
            with one_thread() if self._one_processor else nullcontext():
                updates = self._advance()
        except BaseException as error:
            self._open.clear()
            self._scheduler = self._new_scheduler()
            if self._worker is None:
                raise
            raise self._worker.note_failure(error) from error
        if self._worker is not None and _have_reply(updates):
            self._worker.note_reply()
        return updates

    def _advance(self) -> dict[RowState, RowUpdate]:
        """Runs a step; returns the new tokens and the outcomes of the rows."""
        ended = self._scheduler.step()
        if self._scheduler.halvings:
            self.rows_at_most = self._scheduler.halvings[-1]
        tokens = _new_tokens(
            {
                row: request.num_reported
                for row, request in self._open.items()
                if request.streamed and len(row.token_ids) > request.num_reported
            }
        )
        for row in tokens:
            self._open[row].num_reported = len(row.token_ids)
        outcomes = {row: self._end(row) for row in ended}
        changed = dict.fromkeys((*tokens, *ended))
        return {row: RowUpdate(tokens.get(row, ()), outcomes.get(row)) for row in changed}

    def cancel(self, row: RowState) -> None:
        """Cancels a request and frees its rows at once, unless it has ended."""
        if not row.done:  # otherwise the next step reports it
            self._scheduler.cancel(row)
            self._open.pop(row, None)

    def _end(self, row: RowState) -> Reply | Exception:
        request = self._open.pop(row)
        try:
            return self._reply(request.chat, row)
        except Exception as error:
            return error

    def _reply(self, chat: Rendered, row: RowState) -> Reply:
        """Makes the reply of a row that has ended."""
        continuation = row.result()
        forwarded = continuation.forwarded + chat.rehearsed
        if continuation.stop_reason == "context":
            return Reply(
                text="",
                token_ids=(),
                stop_reason="context",
                forwarded=forwarded,
                prompt_ids=chat.prompt_ids,
            )
        ids = continuation.token_ids
        text = str(self._model.tokenizer.decode(list(ids), skip_special_tokens=True))
        if chat.row.keep and chat.request.thread is not None:
            dialog = chat.as_dialog(continuation.kv, ids, text)
            self._threads.keep(chat.request.thread, dialog)
        return Reply(
            text=text,
            token_ids=ids,
            stop_reason=continuation.stop_reason,
            trace=continuation.trace,
            forwarded=forwarded,
            prompt_ids=chat.prompt_ids,
            cached=row.cached,
        )


def _have_reply(updates: Mapping[RowState, RowUpdate]) -> bool:
    return any(isinstance(update.outcome, Reply) for update in updates.values())


def _new_tokens(rows: Mapping[RowState, int]) -> dict[RowState, list[Token]]:
    """The tokens of each row from the given index on, with their mass and log-probabilities."""
    masses = _new_masses(rows)
    return {row: _tokens(row, first, masses.get(row, [])) for row, first in rows.items()}


def _tokens(row: RowState, first: int, masses: list[TokenMass]) -> list[Token]:
    """The tokens of a row from index `first` on; `masses` has one for each of them, or is empty."""
    tokens: list[Token] = []
    for index in range(first, len(row.token_ids)):
        mass = masses[index - first] if masses else None
        # the list is empty unless log-probabilities were requested
        drawn = row.log_probabilities[index] if row.log_probabilities else None
        token = Token(
            token_id=row.token_ids[index],
            mass=float(mass.heads.mean()) if mass else None,
            uniform=float(mass.uniform.mean()) if mass else None,
            heads=mass.heads if mass else None,
            logprob=drawn.drawn if drawn else None,
            top=drawn.top if drawn else (),
            cached=row.cached,
        )
        tokens.append(token)
    return tokens


def _new_masses(rows: Mapping[RowState, int]) -> dict[RowState, list[TokenMass]]:
    """The masses at the tokens of each row from the given index on, float32 on the CPU.

    Rows that do not trace their mass are left out.
    """
    traced = {
        row: slice(first, len(row.token_ids))
        for row, first in rows.items()
        if len(row.token_ids) > first and row.row.traces_span
    }
    if not traced:
        return {}
    counts = [tokens.stop - tokens.start for tokens in traced.values()]
    masses = [mass for row, tokens in traced.items() for mass in row.masses[tokens]]
    # one copy for all rows, because each copy waits for the device
    heads_by_row = torch.split(_copy_to_cpu([mass.heads for mass in masses]), counts)
    uniform_by_row = torch.split(_copy_to_cpu([mass.uniform for mass in masses]), counts)
    return {
        row: list(map(TokenMass, row_heads, row_uniform))
        for row, row_heads, row_uniform in zip(traced, heads_by_row, uniform_by_row, strict=True)
    }


def _copy_to_cpu(masses: list[Tensor]) -> Tensor:
    return torch.stack(masses).float().cpu()
