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
_ROUNDS = 16  # later ones share a label, so that no client can create labels without limit


class Stopwatch:
    """Times one choice's tokens and adds up their mass; values are None if nothing was measured.

    `arrived` is when its request arrived, by `time.monotonic`.
    """

    def __init__(self, arrived: float):
        self.tokens = self.cached = 0
        self.first: float | None = None
        self._arrived = arrived
        self._began = 0.0
        self._latest = 0.0
        self._mass = 0.0
        self._traced = 0

    def note(self, delta: Delta) -> None:
        """Records a piece of the reply."""
        self.cached = delta.cached
        if not delta.tokens:
            return
        self._latest = time.monotonic()
        if self.first is None:
            self._began = self._latest
            self.first = self._latest - self._arrived
        self.tokens += len(delta.tokens)
        for token in delta.tokens:
            if token.mass is not None:
                self._mass = self._mass + token.mass
                self._traced = self._traced + 1

    @property
    def gap(self) -> float | None:
        """The mean time between tokens, in seconds."""
        return (self._latest - self._began) / (self.tokens - 1) if self.tokens > 1 else None

    @property
    def mass(self) -> float | None:
        """The mean attention mass on the span over the traced tokens."""
        return self._mass / self._traced if self._traced else None


class Metrics:
    """Counters and histograms of one server; one submission in `watched` is traced (0: none)."""

    def __init__(self, engine: ServedEngine, watched: int = 0):
        self._submissions = itertools.count(1)
        self._watched = watched
        self._registry = registry = CollectorRegistry()

        def histogram(name: str, text: str, buckets: Any = _SECONDS, *labels: str) -> Histogram:
            return Histogram(f"holdfast_{name}", text, labels, buckets=buckets, registry=registry)

        self.requests = Counter(
            "holdfast_requests",
            "Requests answered, by path and status; 499: the client went away.",
            ("path", "status"),
            registry=registry,
        )
        self.tokens = Counter(
            "holdfast_tokens",
            "Tokens: of prompts, of them those that were not forwarded, and generated ones.",
            ("kind",),
            registry=registry,
        )
        self._first = histogram(
            "time_to_first_token_seconds", "From a request's arrival to its first token."
        )
        self._gap = histogram(
            "time_per_token_seconds", "From one token of a reply to the next, mean of each reply."
        )
        self.seconds = histogram("request_seconds", "From a request's arrival to its last token.")
        self._mass = histogram(
            "prompt_mass",
            "Attention mass on the prompt, mean of each traced reply, by round of a dialog.",
            _MASS,
            "round",
            "steered",
        )
        for name, description, count in (
            ("holdfast_running", "Rows that are being forwarded.", lambda: engine.running),
            ("holdfast_open", "Requests taken that have not ended.", lambda: engine.open),
        ):
            Gauge(name, description, registry=registry).set_function(count)

    def trace_next(self) -> bool:
        """Counts a submission; returns whether its mass is to be measured."""
        return bool(self._watched) and next(self._submissions) % self._watched == 0

    def exposition(self) -> bytes:
        """Returns all metrics in Prometheus's text format."""
        return generate_latest(self._registry)

    def note_answer(
        self, usage: Usage, watches: Sequence[Stopwatch], round_: int, steered: bool
    ) -> None:
        """Records a request's costs, however it ended; `round_` is 0 if there is no dialog."""
        cached = usage["prompt_tokens_details"]["cached_tokens"]
        self.tokens.labels("prompt").inc(usage["prompt_tokens"])
        self.tokens.labels("cached").inc(cached)
        self.tokens.labels("generated").inc(usage["completion_tokens"])
        label = str(round_) if round_ <= _ROUNDS else f"{_ROUNDS + 1}+"
        for watch in watches:
            if watch.first is not None:
                self._first.observe(watch.first)
            if watch.gap is not None:
                self._gap.observe(watch.gap)
            if watch.mass is not None and round_:
                self._mass.labels(label, str(steered).lower()).observe(watch.mass)
