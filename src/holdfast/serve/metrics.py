"""Prometheus metrics at `/metrics`; each server has its own registry."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from holdfast.serve.answer_formats import Usage
from holdfast.serve.decoding import Delta

if TYPE_CHECKING:
    from holdfast.serve.served_engine import ServedEngine

_SECONDS = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 600,
)  # fmt: skip
_MASS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 1.0)
_MAX_ROUNDS = 16  # later rounds share a label, so that no client can create labels without limit


class Stopwatch:
    """Times one choice's tokens and adds up their mass.

    Args:
        arrived: when the request arrived, by `time.monotonic`.

    Attributes:
        tokens: the number of tokens so far.
        cached: the tokens of the chat that did not go through the model.
        seconds_to_first: the seconds from the arrival to the first token; None before it.
    """

    def __init__(self, arrived: float):
        self.tokens = 0
        self.cached = 0
        self.seconds_to_first: float | None = None
        self._arrived = arrived
        self._first_time = 0.0
        self._latest_time = 0.0
        self._mass = 0.0
        self._num_traced = 0

    def note(self, delta: Delta) -> None:
        """Records a piece of the reply."""
        self.cached = delta.cached
        if not delta.tokens:
            return
        self._latest_time = time.monotonic()
        if self.seconds_to_first is None:
            self._first_time = self._latest_time
            self.seconds_to_first = self._latest_time - self._arrived
        self.tokens += len(delta.tokens)
        for token in delta.tokens:
            if token.mass is not None:
                self._mass += token.mass
                self._num_traced += 1

    @property
    def seconds_per_token(self) -> float | None:
        """The mean time between tokens, in seconds; None with fewer than two tokens."""
        if self.tokens < 2:
            return None
        return (self._latest_time - self._first_time) / (self.tokens - 1)

    @property
    def mass(self) -> float | None:
        """The mean attention mass on the span over the traced tokens; None without any."""
        return self._mass / self._num_traced if self._num_traced else None


class Metrics:
    """The counters and histograms of one server.

    Args:
        engine: the server's engine.
        trace_every: one in this number of submissions is traced, for the histogram of the mass;
            0 traces none.
    """

    def __init__(self, engine: ServedEngine, trace_every: int = 0):
        self._submissions = itertools.count(1)
        self._trace_every = trace_every
        self._registry = registry = CollectorRegistry()

        def histogram(name: str, text: str, buckets: Any = _SECONDS, *labels: str) -> Histogram:
            return Histogram(f"holdfast_{name}", text, labels, buckets=buckets, registry=registry)

        self.requests = Counter(
            "holdfast_requests",
            "Requests answered, by path and status; 499 if the client closed the connection.",
            ("path", "status"),
            registry=registry,
        )
        self.tokens = Counter(
            "holdfast_tokens",
            "Tokens: of prompts, of prompts but not forwarded (cached), and generated.",
            ("kind",),
            registry=registry,
        )
        self._seconds_to_first = histogram(
            "time_to_first_token_seconds", "From a request's arrival to its first token."
        )
        self._seconds_per_token = histogram(
            "time_per_token_seconds", "From one token to the next, mean over each reply."
        )
        self.seconds = histogram("request_seconds", "From a request's arrival to its last token.")
        self._mass = histogram(
            "prompt_mass",
            "Attention mass on the prompt, mean over each traced reply, by round of the dialog.",
            _MASS,
            "round",
            "steered",
        )
        for name, description, count in (
            ("holdfast_running", "Requests in the batch.", lambda: engine.running),
            ("holdfast_open", "Accepted requests that have not ended.", lambda: engine.open),
        ):
            Gauge(name, description, registry=registry).set_function(count)

    def trace_next(self) -> bool:
        """Counts a submission; returns whether to trace it."""
        return bool(self._trace_every) and next(self._submissions) % self._trace_every == 0

    def exposition(self) -> bytes:
        """Returns all metrics in Prometheus's text format."""
        return generate_latest(self._registry)

    def note_answer(
        self, usage: Usage, watches: Sequence[Stopwatch], dialog_round: int, *, steered: bool
    ) -> None:
        """Records the costs of a request, however it ended.

        Args:
            dialog_round: the round of the dialog, from 1; 0 if there is no dialog.
        """
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        self.tokens.labels("prompt").inc(usage["prompt_tokens"])
        self.tokens.labels("cached").inc(cached)
        self.tokens.labels("generated").inc(usage["completion_tokens"])
        label = str(dialog_round) if dialog_round <= _MAX_ROUNDS else f"{_MAX_ROUNDS + 1}+"
        for watch in watches:
            if watch.seconds_to_first is not None:
                self._seconds_to_first.observe(watch.seconds_to_first)
            if watch.seconds_per_token is not None:
                self._seconds_per_token.observe(watch.seconds_per_token)
            if watch.mass is not None and dialog_round:
                self._mass.labels(label, str(steered).lower()).observe(watch.mass)
