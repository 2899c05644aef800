"""Makes the steps of a server's session in a thread of their own."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

from holdfast.errors import ModelError

_LOG = logging.getLogger("holdfast")
_FAILURES = 3  # failed steps with no reply in between after which a session gives up


class StepWorker:
    """Makes the steps of one session in a thread, and decides what a failed step leads to.

    A failed step ends all open requests with a `ModelError`, and the session goes on. After several
    failed steps with no reply in between, the session takes no more requests.

    Attributes:
        executor: makes the steps, one after the other.
        error: why the session has failed for good; None if it has not.
    """

    def __init__(self) -> None:
        self.executor = ThreadPoolExecutor(1, "holdfast-engine")
        self.error: ModelError | None = None
        self._failures = 0
        self._closed = False

    def check_running(self) -> None:
        """Raises a `ModelError` if the session has failed for good, or was closed."""
        if self._closed or self.error is not None:
            why = self.error or "shut down"
            raise ModelError(f"The engine is not running ({why}); restart it.")

    def note_reply(self) -> None:
        """Counts failures from here on, as a reply was completed."""
        self._failures = 0

    def note_failure(self, error: BaseException) -> ModelError:
        """The error for all requests of a failed step; the last one if the session gives up."""
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

    def close(self) -> None:
        """Ends the thread after the step that it is making."""
        self._closed = True
        self.executor.shutdown()
