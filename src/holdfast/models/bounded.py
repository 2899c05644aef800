"""An HTTP client whose timeout is for the whole answer, however slowly its bytes arrive."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import openai


class BoundedClient(openai.DefaultHttpxClient):  # the official client asks for one of this class
    """Gives up an answer that is not whole in `seconds`: the client's own timeouts begin anew with
    every byte. `before_each` is called before each request, outside its time.
    """

    def __init__(self, seconds: float, before_each: Callable[[], None], **options: Any):
        super().__init__(**options)
        self._seconds, self._before_each = seconds, before_each

    def send(
        self, request: httpx2.Request, *, stream: bool = False, **more: Any
    ) -> httpx2.Response:
        """Sends a request; a `ReadTimeout` if its answer is not whole in time."""
        if stream:
            return super().send(request, stream=True, **more)
        self._before_each()
        end = time.monotonic() + self._seconds
        outcomes: list[httpx2.Response | BaseException] = []

        def fetch() -> None:
            try:
                outcomes.append(self._fetch(request, end, more))
            except BaseException as error:
                outcomes.append(error)

        # in a thread, as names that resolve slowly and headers that trickle heed no timeout
        thread = threading.Thread(target=fetch, name="holdfast-answer", daemon=True)
        thread.start()
        thread.join(self._seconds)
        outcome = outcomes[0] if outcomes else _too_late(request)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def _fetch(self, request: httpx2.Request, end: float, more: dict[str, Any]) -> httpx2.Response:
        response = super().send(request, stream=True, **more)
        response.stream = _BoundedStream(response.stream, end, request)
        response.read()  # which closes it, whatever happens
        return response


class _BoundedStream(httpx2.SyncByteStream):
    """The body of an answer, which ends in a timeout when its time is over."""

    def __init__(self, stream: Any, end: float, request: httpx2.Request):
        self._stream, self._end, self._request = stream, end, request

    def __iter__(self) -> Iterator[bytes]:
        for part in self._stream:
            if time.monotonic() > self._end:
                raise _too_late(self._request)
            yield part

    def close(self) -> None:
        self._stream.close()


def _too_late(request: httpx2.Request) -> httpx2.ReadTimeout:
    return httpx2.ReadTimeout("the answer is not whole in time", request=request)
