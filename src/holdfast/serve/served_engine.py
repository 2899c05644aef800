"""The engine of a server: which requests it accepts, and how it handles a failed step.

The model computes in one thread, and chats are rendered and tokenized in another, so that neither
delays the event loop, and a long prompt does not delay the rows that are running.
"""

import asyncio
import logging
import weakref
from collections.abc import AsyncGenerator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager, nullcontext

from holdfast.errors import Busy, Draining, ModelError
from holdfast.generation.cpu_threads import one_thread, release_threads
from holdfast.generation.rows import RowState
from holdfast.models.local import LocalModel
from holdfast.models.rendering import Rendered
from holdfast.models.requests import Reply, Request, Token
from holdfast.models.step_loop import RowUpdate, StepLoop

_LOG = logging.getLogger("holdfast")
_FAILURES = 3  # failed steps with no reply in between after which the engine gives up


class ServedEngine:
    """Answers requests in one batch, and queues up to `queue` more; used in one event loop.

        with engine.admit(1):
            (chat,) = await engine.render([request])
            async for event in engine.stream(chat): ...

    Attributes:
        open: how many accepted requests have not ended.
        error: why it has failed for good; None if it has not.
    """

    def __init__(self, model: LocalModel, queue: int = 64):
        self.model, self.queue = model, queue
        self.open = 0
        self.error: ModelError | None = None
        self._session = model.session(long_lived=True)
        self._failures = 0
        self._draining = self._closed = False
        self._renderer = ThreadPoolExecutor(1, "holdfast-rendering")
        self._stepper = ThreadPoolExecutor(1, "holdfast-engine")
        release_threads()
        # no cycle, so that what was computed is freed with the last use of the engine
        self._loop = StepLoop[RowState](weakref.proxy(self), self._stepper)

    @property
    def ready(self) -> bool:
        """Whether it accepts requests: it is not draining, and has not failed for good."""
        return not self._draining and self.error is None

    @property
    def running(self) -> int:
        """How many requests are in the batch; the other open ones wait."""
        return self._session.running

    @contextmanager
    def admit(self, count: int) -> Iterator[None]:
        """Accepts requests, which are open while the block runs.

        Raises:
            Busy: too many requests are open.
            Draining: it is shutting down.
            ModelError: it is not running.
        """
        if self._draining:
            raise Draining("The server is shutting down and takes no more requests; ask another.")
        self._check_running()
        if self.open + count > self._session.stepped.capacity + self.queue:
            raise Busy(
                f"{self.open} requests are open, and {count} more are too many for this server; ask"
                " again in a moment."
            )
        self.open += count
        try:
            yield
        finally:
            self.open -= count

    async def render(
        self, requests: Sequence[Request], top_logprobs: int | None = None
    ) -> list[Rendered]:
        """The chats of requests as the engine reads them; see `LocalSession.render`."""

        def render_all() -> list[Rendered]:
            return [self._session.render(request, top_logprobs) for request in requests]

        chats = await asyncio.get_running_loop().run_in_executor(self._renderer, render_all)
        self._check_running()  # it may have ended in the meantime
        return chats

    async def stream(self, chat: Rendered) -> AsyncGenerator[Token | Reply]:
        """Answers a chat; yields every token as it is drawn, and the reply last.

        Closing the stream frees its row within a step.

        Raises:
            ModelError: a step has failed, or the engine was closed.
        """
        resolved = await self._session.resolve(chat, self._loop.generate)
        async with aclosing(self._loop.stream(resolved)) as events:
            async for event in events:
                yield event

    async def drain(self) -> None:
        """Refuses new requests, and waits until all accepted ones have ended."""
        self._draining = True
        while self.open:
            await asyncio.sleep(0.02)

    def close(self) -> None:
        """Stops; unfinished requests end with an error. Called in its event loop, or after it."""
        self._draining = self._closed = True
        self._loop.close(ModelError("The server was shut down before it had answered."))
        self._renderer.shutdown(cancel_futures=True)
        self._stepper.shutdown()

    def _check_running(self) -> None:
        if self._closed or self.error is not None:
            why = self.error or "shut down"
            raise ModelError(f"The engine is not running ({why}); restart it.")

    # Called by the step loop, in the thread that computes

    def submit(self, chat: Rendered, streamed: bool) -> RowState:
        """Queues a chat; refused once it has failed for good."""
        self._check_running()
        return self._session.stepped.submit(chat, streamed)

    def step(self) -> dict[RowState, RowUpdate]:
        """Makes a pass; reports the new tokens and the replies that have ended."""
        try:
            # leaves the other processors to the clients
            with one_thread() if self.model.runner.small else nullcontext():
                changed = self._session.stepped.step()
        except BaseException as error:
            raise self._failed(error) from error
        if any(isinstance(update.outcome, Reply) for update in changed.values()):
            self._failures = 0
        return changed

    def cancel(self, row: RowState) -> None:
        """Frees a row that nobody waits for any more."""
        self._session.stepped.cancel(row)

    def _failed(self, error: BaseException) -> ModelError:
        """The error for all requests of a failed step; after several, the engine gives up."""
        _LOG.error("A step of the engine has failed", exc_info=error)
        failure = ModelError(
            f"The engine failed before it had answered ({type(error).__name__}: {error}); ask"
            " again, and check the server's log."
        )
        self._failures += 1
        if self._failures == _FAILURES or not isinstance(error, Exception):
            _LOG.error("The engine has ended")
            self.error = failure
        return failure
