"""One thread owns the model and its session, and steps it while there is work.

Requests come from the tasks of event loops, and their tokens go back there: one call per step and
loop, however many rows there are. Rendering and tokenizing happen in another thread, so that a long
prompt does not keep the rows that run waiting.
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
_FAILURES = 3  # steps that fail without a reply in between, before the thread gives up


class EngineThread:
    """Answers requests of event loops in one batch; takes `queue` more than run at once."""

    def __init__(self, model: LocalModel, queue: int = 64):
        self.model, self.queue = model, queue
        self.open = 0
        self.error: Exception | None = None
        self._session = model.session(long_lived=True)
        self._open_answers: dict[LiveReply, Answer] = {}  # of the thread alone
        self._failures = 0
        self._news = threading.Condition()  # guards what follows, and `open`
        self._submitted: list[LiveReply] = []
        self._cancelled: list[LiveReply] = []
        self._draining = self._closing = False
        self._renderer = ThreadPoolExecutor(1, "holdfast-rendering")
        self._thread = threading.Thread(target=self._work, name="holdfast-engine", daemon=True)

    @property
    def ready(self) -> bool:
        """Whether it takes requests: it was started, does not drain, and has not died."""
        return self._thread.is_alive() and not self._draining and self.error is None

    @property
    def running(self) -> int:
        """Requests that are being forwarded; the other open ones wait."""
        return self._session.running

    def start(self) -> None:
        """Begins to answer."""
        self._thread.start()

    async def submit(self, request: Request, top_logprobs: int | None = None) -> LiveReply:
        """Takes a request in, as `LocalSession.submit`."""
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
            self._submitted.append(generation)
            self._news.notify()
        return generation

    async def drain(self) -> None:
        """Refuses what is new, and waits until all that was taken has ended."""
        self._draining = True
        while self.open and self._thread.is_alive():
            await asyncio.sleep(0.02)

    def close(self) -> None:
        """Ends the thread; what has not ended ends with an error."""
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
            raise ModelError(
                f"The engine does not run ({self.error or 'not started'}); restart it."
            )
        if self.open >= self._session.capacity + self.queue:
            raise Busy(
                f"{self.open} requests are open, which is as many as this server takes; ask again"
                " in a moment."
            )

    def _cancel(self, generation: LiveReply) -> None:
        with self._news:
            self._cancelled.append(generation)
            self._news.notify()

    def _count_ended(self, count: int) -> None:
        with self._news:
            self.open -= count

    # In the engine's thread

    def _work(self) -> None:
        small = self.model.runner.small  # then the other processors are the clients'
        try:
            with one_thread() if small else nullcontext():
                while self._take_up():
                    self._step()
            self._end_all(ModelError("The server was shut down before it had answered."))
        except BaseException as error:
            _LOG.exception("The engine has ended")
            self._die(error)

    def _take_up(self) -> bool:
        """Waits for work and takes up what has come; False where the thread is to end."""
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
        """Notifies every event loop of what the step has given its requests."""
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
        except RuntimeError:  # the loop is closed, and nobody waits there
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
        """Ends what is open, and what is submitted before others see that the thread is dead."""
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
    """The mass on the span of tokens that were not sent yet, for those who want it."""
    # float32 [layer, head] each, with uniform attention as one more column, read at once
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
    """The tokens of an answer that were not sent yet, and its end."""
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
