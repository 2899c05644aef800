"""A Ray actor: one replica of the model, on a machine of the cluster."""

from __future__ import annotations

import math
import os
import platform
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from holdfast.common.threads import limit_spinning
from holdfast.errors import HoldfastError, ModelError
from holdfast.methods import Ability
from holdfast.models.replicas import Listener, Work, portable

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel


_PACKAGES = ("holdfast-llm", "ray", "torch", "transformers", "tokenizers", "numpy")

Event = tuple[str, tuple[Any, ...]]  # the name of a field of `Listener`, or "error"; its arguments


@dataclass(frozen=True)
class Specification:
    """The model that an actor loads, from its own cache: arguments of `holdfast.load`."""

    name: str = "default"
    device: str | None = None
    dtype: str | None = None
    trust_remote_code: bool = False
    batch_size: int | None = None


@dataclass(frozen=True)
class Description:
    """The `ChatModel` properties of the model that an actor has loaded."""

    name: str
    fingerprint: str
    runtime: dict[str, str | int]
    capabilities: frozenset[Ability]


def versions() -> dict[str, str]:
    """Versions that must be the same on every machine of a run."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"python": python} | {name: metadata.version(name).split("+")[0] for name in _PACKAGES}


class Actor:
    """One replica of the model, which uses `processors` threads on the CPU."""

    def __init__(self, processors: int):
        os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        limit_spinning()
        self._processors = processors
        self._model: LocalModel | None = None

    def about(self) -> tuple[str, dict[str, str]]:
        return platform.node(), versions()

    def load(self, specification: Specification) -> Description:
        """Loads the model; errors are those of `holdfast.load`, with the machine's name."""
        from transformers.utils import logging

        from holdfast.models.loading import load

        logging.disable_progress_bar()
        given = {name: value for name, value in vars(specification).items() if value is not None}
        try:
            model = load(given.pop("name"), **given)
        except HoldfastError as error:
            raise ModelError(f"On {platform.node()}: {error}") from None
        if model.hf_model.device.type == "cpu":  # its memory is shared with others
            share = min(1.0, self._processors / (os.cpu_count() or 1))
            model = replace(model, prefix_memory=int(share * model.prefix_bytes))
        self._model = model
        return Description(model.name, model.fingerprint, model.runtime, model.capabilities)

    def compute(
        self, function: Callable[..., Any], arguments: Sequence[Any]
    ) -> tuple[Any, Exception | None]:
        """Calls a function with the model and further arguments; returns its result or error."""
        try:
            return function(self._loaded, *arguments), None
        except Exception as error:
            return None, portable(error)

    def work(
        self, work: Work, units: Sequence[tuple[int, Any]], replicas: int
    ) -> Iterator[list[Event]]:
        """Does units of work; yields the events for a `Listener` as they happen."""
        events: SimpleQueue[Event | None] = SimpleQueue()
        model = self._loaded

        def send(name: str) -> Callable[..., None]:
            return lambda *arguments: events.put((name, arguments))

        def do() -> None:
            import torch

            torch.set_num_threads(self._processors)  # applies only to this thread
            try:
                listener = Listener(send("outcome"), send("over"), send("progress"))
                work.do(model, iter(units), replicas, listener)
            except Exception as error:
                events.put(("error", (portable(error),)))
            events.put(None)

        threading.Thread(target=do, name="holdfast-work", daemon=True).start()
        more = True
        while more:  # the next event, and those already there
            batch = [events.get(), *(events.get() for _ in range(events.qsize()))]
            more = batch[-1] is not None
            yield [event for event in batch if event is not None]

    @property
    def _loaded(self) -> LocalModel:
        assert self._model is not None, "load() comes first"
        return self._model


_TOGETHER = 2  # losses beside other units after which a unit is tried alone


class Shares:
    """Hands out units of work, by number, in shares to `actors` actors.

    A share is half of an even split of the units that are left, so that the last shares are small
    and all actors finish at about the same time; none is less than half of the `together` units
    that an actor does side by side. The units of a lost actor are handed out again. A unit that was
    in progress on two lost actors is then done alone, so that no other unit is blamed for it; if
    that actor is lost too, the unit is given up.
    """

    def __init__(self, numbers: Iterable[int], together: int, actors: int):
        self._together, self._actors = together, actors
        self._left = deque(numbers)
        self._suspects: deque[int] = deque()
        self._losses: Counter[int] = Counter()

    def __bool__(self) -> bool:
        return bool(self._left or self._suspects)

    def next(self) -> list[int]:
        """The next share; [] if none is left."""
        if not self._left and self._suspects:
            return [self._suspects.popleft()]
        even = math.ceil(len(self._left) / self._actors)
        least = math.ceil(self._together / 2)
        size = max(even / 2, min(even, self._together), least)
        return [self._left.popleft() for _ in range(min(math.ceil(size), len(self._left)))]

    def lose(self, unfinished: Sequence[int]) -> list[int]:
        """Takes back a lost actor's unfinished share; returns the units that are given up."""
        under_way = unfinished[: self._together]
        self._losses.update(under_way)
        self._left.extendleft(n for n in reversed(unfinished) if self._losses[n] < _TOGETHER)
        self._suspects.extend(n for n in under_way if self._losses[n] == _TOGETHER)
        return [n for n in under_way if self._losses[n] > _TOGETHER]
