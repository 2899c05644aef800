"""Admits requests to a server's session, up to a limit, and drains it on shutdown.

The model computes in one thread, and chats are rendered and tokenized in another, so that neither
delays the event loop, and a long prompt does not delay the requests that are running.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from holdfast.errors import Busy, Draining, ModelError
from holdfast.generation.cpu_threads import release_threads
from holdfast.models.rendering import RenderedRequest
from holdfast.models.requests import Reply, Request, Token
from holdfast.models.session import LocalSession
from holdfast.models.stepped_model import SessionModel, StepWorker


class ServedEngine:
    """Answers requests in one batch, and queues up to `queue` more; used in one event loop.

        with engine.admit(1):
            (chat,) = await engine.render([request])
            async for event in engine.stream(chat): ...

    Attributes:
        open: the number of accepted requests that have not ended.
        session: answers them.
    """

    def __init__(self, model: SessionModel, queue: int = 64):
        self.queue = queue
        self.open = 0
        self._worker = StepWorker()
        self.session = LocalSession(model, long_lived=True, worker=self._worker)
        self._renderer = ThreadPoolExecutor(1, "holdfast-rendering")
        self._draining = False
        release_threads()  # those of this thread, which loaded the model; the worker has its own

    @property
    def ready(self) -> bool:
        """Whether the engine accepts requests: it is not draining, and has not given up."""
        return not self._draining and self.error is None

    @property
    def error(self) -> ModelError | None:
        """Why the engine has given up; None if it has not."""
        return self._worker.error

    @property
    def running(self) -> int:
        """The number of requests in the batch; the other open ones wait."""
        return self.session.running

    @property
    def fingerprint(self) -> str:
        """The model's fingerprint; rendering a chat checks that it has not changed."""
        return self.session.fingerprint

    @contextmanager
    def admit(self, count: int) -> Iterator[None]:
        """Accepts this number of requests, which are open while the block runs.

        Raises:
            Busy: too many requests are open.
            Draining: the engine is shutting down.
            ModelError: the engine is not running.
        """
        if self._draining:
            raise Draining("The server is shutting down and takes no more requests; ask another.")
        self._worker.check_running()
        if self.open + count > self.session.max_sequences + self.queue:
            raise Busy(
                f"{self.open} requests are open, and {count} more are too many for this server; try"
                " again in a moment."
            )
        self.open += count
        try:
            yield
        finally:
            self.open -= count

    async def render(
        self, requests: Sequence[Request], top_logprobs: int | None = None
    ) -> list[RenderedRequest]:
        """Renders the chats of requests for the engine; see `LocalSession.render`."""

        def render_all() -> list[RenderedRequest]:
            return [self.session.render(request, top_logprobs) for request in requests]

        chats = await asyncio.get_running_loop().run_in_executor(self._renderer, render_all)
        self._worker.check_running()  # it may have ended in the meantime
        return chats

    def stream(self, chat: RenderedRequest) -> AsyncGenerator[Token | Reply]:
        """Answers a chat; yields every token as it is drawn, and the reply last.

        Closing the stream frees its slots at the next step.

        Raises:
            ModelError: a step has failed, or the engine was closed.
        """
        return self.session.stream_rendered(chat)

    async def drain(self) -> None:
        """Refuses new requests, and waits until all accepted ones have ended."""
        self._draining = True
        while self.open:
            await asyncio.sleep(0.02)

    def close(self) -> None:
        """Stops the engine; unfinished requests end with an error.

        To be called in its event loop, or after that has ended.
        """
        self._draining = True
        self.session.close(ModelError("The server was shut down before it had answered."))
        self._renderer.shutdown(cancel_futures=True)
        self._worker.close()
