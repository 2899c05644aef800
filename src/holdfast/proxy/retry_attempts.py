"""How often and how long a retry is attempted while the server refuses it or does not answer.

The first request of a chat is repeated by its client. A retry is sent by Holdfast, which therefore
waits for the server as OpenAI's client does: as long as Retry-After says, or else a little longer
each time.

    attempts = RetryAttempts(max_resends=5, deadline=time.monotonic() + 60)
    attempts.delay_after(answer)  # 429 with "Retry-After: 20" -> 20.0; 200 or 400 -> None
"""

from __future__ import annotations

import email.utils
import random
import time
from dataclasses import dataclass

import httpx2

from holdfast.proxy.upstream_answer import UpstreamAnswer

MAX_RESENDS = 5  # as the requests of a run
EXTRA_SECONDS = 60.0  # by which a retry, with its waits, may take longer than the first reply
_FIRST_DELAY = 0.5
_MAX_DELAY = 8.0
_MAX_JITTER = 0.25  # the part of a delay that may be left out, so that clients do not come at once
# statuses after which the same request may be answered: no answer at all, a timeout, a lock, a rate
# limit; and any from 500 on
_PASSING_STATUSES = (0, 408, 409, 429)


@dataclass
class RetryAttempts:
    """The attempts at one retry.

    Attributes:
        max_resends: how often its request may be sent again.
        deadline: the time by `time.monotonic` at which it is given up.
    """

    max_resends: int
    deadline: float
    _resends: int = 0

    @property
    def seconds_left(self) -> float:
        """The time until it is given up; at least 0."""
        return max(0.0, self.deadline - time.monotonic())

    def delay_after(self, answer: UpstreamAnswer) -> float | None:
        """Returns how many seconds to wait before the request is sent again.

        None if the answer is final, because it is a reply, because the server would refuse the
        request again, or because there have been enough attempts or there is no time for another.

        Args:
            answer: the answer to the last attempt; one without a status if there was none.
        """
        if self._resends >= self.max_resends or not _may_pass(answer):
            return None
        delay = _retry_after(answer.headers)
        if delay is None:
            delay = min(_FIRST_DELAY * 2**self._resends, _MAX_DELAY)
            delay *= 1 - _MAX_JITTER * random.random()
        if delay >= self.seconds_left:
            return None
        self._resends += 1
        return delay


def _may_pass(answer: UpstreamAnswer) -> bool:
    """Whether the reason why there is no reply may pass; a header of OpenAI's servers says so."""
    if 0 < answer.status < 400:
        return False
    verdict = answer.headers.get("x-should-retry")
    if verdict in ("true", "false"):
        return verdict == "true"
    return answer.status in _PASSING_STATUSES or answer.status >= 500


def _retry_after(headers: httpx2.Headers) -> float | None:
    """Returns the seconds that the server asks to wait, from its headers; None if it does not.

    `retry-after-ms` has milliseconds, `retry-after` seconds or the date of the end.
    """
    for name, divisor in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers[name]) / divisor
        except (KeyError, ValueError):
            continue
        return seconds if seconds > 0 else None
    try:
        date = email.utils.parsedate_to_datetime(headers["retry-after"])
        seconds = date.timestamp() - time.time()
    except (KeyError, ValueError, OverflowError, OSError):
        return None
    return seconds if seconds > 0 else None
