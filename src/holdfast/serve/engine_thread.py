"""A thread that owns the model and its session, and steps it while there is work.

Requests come from tasks on event loops, and their tokens are sent back there with one call per step
and loop, however many rows there are. Rendering and tokenizing happen in another thread, so that a
long prompt does not delay the running rows.
"""

import asyncio
import logging
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import zip_longest

import torch

from holdfast.common.threads import one_thread
from holdfast.errors import Busy, Draining, ModelError
from holdfast.models.local import LocalModel
from holdfast.models.reader import Answer
from holdfast.models.requests import Request
from holdfast.serve.generation import LiveReply, Token, Update

_LOG = logging.getLogger("holdfast")
_FAILURES = 3  # failed steps with no reply in between after which the thread gives up


class EngineThread:
    """Answers requests from event loops in one batch, and queues up to `queue` more."""

    def __init__(self, model: LocalModel, queue: int = 64):
        self.model, self.queue = model, queue
        self.open = 0
        self.error: Exception | None = None
        self._session = model.session(long_lived=True)
        self._open_answers: dict[LiveReply, Answer] = {}  # used only by the engine thread
        self._failures = 0
        self._news = threading.Condition()  # guards the fields below, and `open`
        self._submitted: list[LiveReply] = []
        self._cancelled: list[LiveReply] = []
        self._draining = self._closing = False
        self._renderer = ThreadPoolExecutor(1, "holdfast-rendering")
        self._thread = threading.Thread(target=self._work, name="holdfast-engine", daemon=True)

    @property
    def ready(self) -> bool:
        """Whether it accepts requests: it has started, is not draining, and has not died."""
        return self._thread.is_alive() and not self._draining and self.error is None

    @property
    def running(self) -> int:
        """How many requests are in the batch; the other open ones wait."""
        return self._session.running

    def start(self) -> None:
        """Starts answering requests."""
        self._thread.start()

    async def submit(self, request: Request, top_logprobs: int | None = None) -> LiveReply:
        """Submits a request, as `LocalSession.submit` does."""
        with self._news:
            self._refuse()
            self.open += 1
        loop = asyncio.get_running_loop()
        try:
            rendered = await loop.run_in_executor(
                self._renderer, self._session.render, request, top_logprobs
            )
        except BaseException:
            self._count_ended(1)
            raise
        generation = LiveReply(rendered, loop, self._cancel)
        with self._news:
            if self._closing or self.error is not None:  # it ended while the request was rendered
                self.open -= 1
                raise self._not_running()
            self._submitted.append(generation)
            self._news.notify()
        return generation

    async def drain(self) -> None:
        """Refuses new requests, and waits until all accepted ones have ended."""
        self._draining = True
        while self.open and self._thread.is_alive():
            await asyncio.sleep(0.02)

    def close(self) -> None:
        """Stops the thread; unfinished requests end with an error."""
        with self._news:
            self._draining = self._closing = True
            self._news.notify()
        if self._thread.ident is not None:
            self._thread.join()
        self._renderer.shutdown(cancel_futures=True)

    # In the callers' threads

    def _refuse(self) -> None:
        if self._draining:
            raise Draining("The server is shutting down and takes no more requests; ask another.")
        if self.error is not None or not self._thread.is_alive():
            raise self._not_running()
        if self.open >= self._session.capacity + self.queue:
            raise Busy(
                f"{self.open} requests are open, which is as many as this server takes; ask again"
                " in a moment."
            )

    def _not_running(self) -> ModelError:
        why = self.error or ("shut down" if self._closing else "not started")
        return ModelError(f"The engine does not run ({why}); restart it.")

    def _cancel(self, generation: LiveReply) -> None:
        with self._news:
            self._cancelled.append(generation)
            self._news.notify()

    def _count_ended(self, count: int) -> None:
        with self._news:
            self.open -= count

    # In the engine's thread

    def _work(self) -> None:
        small = self.model.runner.small  # if so, the other processors are left to the clients
        try:
            with one_thread() if small else nullcontext():
                while self._take_up():
                    self._step()
            self._end_all(ModelError("The server was shut down before it had answered."))
        except BaseException as error:
            _LOG.exception("The engine has ended")
            self._die(error)

    def _take_up(self) -> bool:
        """Waits for work and picks up what has arrived; False once the thread should end."""
        with self._news:
            while not (self._open_answers or self._submitted or self._cancelled or self._closing):
                self._news.wait()
            submitted, self._submitted = self._submitted, []
            cancelled, self._cancelled = self._cancelled, []
            closing = self._closing
        for generation in submitted:
            self._open_answers[generation] = self._session.enter(generation.rendered)
        for generation in cancelled:
            self._drop(generation)
        return not closing

    def _step(self) -> None:
        try:
            self._session.step()
        except Exception as error:
            _LOG.exception("A step of the engine has failed")
            self._failures += 1
            if self._failures == _FAILURES:
                raise
            self._end_all(_failure(error))
        self._notify()

    def _notify(self) -> None:
        """Sends each event loop the new output of its requests."""
        updated = {
            generation: answer
            for generation, answer in self._open_answers.items()
            if answer.has_news or answer.done
        }
        masses = _read_masses(list(updated.values()))
        parts: dict[asyncio.AbstractEventLoop, list[tuple[LiveReply, Update]]] = {}
        for generation, answer in updated.items():
            part = _part(answer, masses.get(answer, ()))
            parts.setdefault(generation.loop, []).append((generation, part))
            if answer.done:
                del self._open_answers[generation]
            if answer.reply is not None:
                self._failures = 0
        self._count_ended(sum(answer.done for answer in updated.values()))
        for loop, updates in parts.items():
            self._deliver(loop, updates)

    def _deliver(
        self, loop: asyncio.AbstractEventLoop, updates: Sequence[tuple[LiveReply, Update]]
    ) -> None:
        try:
            loop.call_soon_threadsafe(_receive, updates)
        except RuntimeError:  # the loop is closed, so nobody is waiting there
            for generation, _ in updates:
                self._drop(generation)

    def _drop(self, generation: LiveReply) -> None:
        answer = self._open_answers.pop(generation, None)
        if answer is not None:
            self._session.cancel(answer)
            self._count_ended(1)

    def _end_all(self, error: Exception) -> None:
        parts = [(generation, Update(error=error)) for generation in self._open_answers]
        ended, self._open_answers = self._open_answers, {}
        for answer in ended.values():
            self._session.cancel(answer)
        self._count_ended(len(ended))
        for generation, part in parts:
            self._deliver(generation.loop, [(generation, part)])

    def _die(self, error: BaseException) -> None:
        """Ends all open requests, and any submitted before callers see that the thread is dead."""
        with self._news:
            self.error = _failure(error)
            submitted, self._submitted = self._submitted, []
            self.open -= len(submitted)
        for generation in submitted:
            self._deliver(generation.loop, [(generation, Update(error=self.error))])
        self._end_all(self.error)


def _receive(updates: Sequence[tuple[LiveReply, Update]]) -> None:
    for generation, part in updates:
        generation.receive(part)


def _read_masses(replies: Sequence[Answer]) -> dict[Answer, tuple[torch.Tensor, ...]]:
    """The masses on the span of tokens not sent yet, for the answers that trace them."""
    # each float32 [layer, head], with uniform attention as an extra column; all read at once
    wanted = {
        answer: [
            torch.column_stack(both)
            for both in zip(answer.handle.masses, answer.handle.uniform_masses, strict=True)
        ][answer.taken : len(answer.token_ids)]
        for answer in replies
        if answer.has_news and answer.rendered.row.trace and answer.rendered.span_ranges
    }
    new = [mass for masses in wanted.values() for mass in masses]
    if not new:
        return {}
    read = iter(torch.stack(new).float().cpu())
    return {answer: tuple(next(read) for _ in masses) for answer, masses in wanted.items()}


def _part(answer: Answer, masses: Sequence[torch.Tensor]) -> Update:
    """The tokens of an answer not sent yet, and its reply or error if it has ended."""
    updates = answer.handle.log_probabilities[answer.taken : len(answer.token_ids)]
    tokens = []
    for token, mass, known in zip_longest(answer.take(), masses, updates):
        logprob, top = (None, ()) if known is None else (known.drawn, known.top)
        mean = uniform = heads = None
        if mass is not None:
            heads = mass[:, :-1]
            mean, uniform = float(heads.mean()), float(mass[:, -1].mean())
        tokens.append(Token(token, mean, uniform, heads, logprob, top))
    return Update(tuple(tokens), answer.handle.cached, answer.reply, answer.error)


def _failure(error: BaseException) -> ModelError:
    failure = ModelError(
        f"The engine failed before it had answered ({type(error).__name__}: {error}); ask again,"
        " and look into the server's log."
    )
    failure.__cause__ = error
    return failure
