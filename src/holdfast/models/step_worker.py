"""Makes the steps of a server's session in a separate thread."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

from holdfast.errors import ModelError

_LOG = logging.getLogger("holdfast")
_MAX_FAILURES = 3  # failed steps without a reply in between; then the session gives up


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
