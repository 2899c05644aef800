"""An actor: one replica of the model, on some machine of the cluster."""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from typing import TYPE_CHECKING, Any

from holdfast.errors import HoldfastError, ModelError
from holdfast.integrations.ray.desk import Desk, News
from holdfast.methods import Ability
from holdfast.models.forked import portable
from holdfast.models.replicas import Work
from holdfast.threads import wait_asleep

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel

_PACKAGES = ("holdfast", "ray", "torch", "transformers", "tokenizers", "numpy")
_POLL = 1.0  # seconds that an actor waits for something to tell


@dataclass(frozen=True)
class Specification:
    """Which model an actor loads; the arguments of `holdfast.load`.

    Nothing is downloaded: a name on the hub is taken from the cache of the actor's machine.
    """

    name: str = "default"
    device: str | None = None
    dtype: str | None = None
    trust_remote_code: bool = False
    batch_size: int | None = None


@dataclass(frozen=True)
class Description:
    """What an actor says of the model that it has loaded; the properties of `ChatModel`."""

    name: str
    fingerprint: str
    runtime: dict[str, str | int]
    offers: frozenset[Ability]


def versions() -> dict[str, str]:
    """What must be alike where units are handed out and where they are done."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"python": python} | {name: metadata.version(name).split("+")[0] for name in _PACKAGES}


class Actor:
    """Calls come one at a time; work goes on in a thread beside them.

    Args:
        processors: threads that it computes with, where it runs on the CPU.
    """

    def __init__(self, processors: int):
        os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        wait_asleep()
        self._processors = processors
        self._desk = Desk()
        self._model: LocalModel | None = None

    def about(self) -> tuple[str, dict[str, str]]:
        """The machine's name, and the versions there."""
        return platform.node(), versions()

    def load(self, specification: Specification) -> Description:
        """Loads the model.

        Raises:
            HoldfastError: as `holdfast.load`, with the machine's name.
        """
        from transformers.utils import logging

        from holdfast.models.loading import load

        logging.disable_progress_bar()
        asked = specification
        size: dict[str, Any] = {} if asked.batch_size is None else {"batch_size": asked.batch_size}
        try:
            model = load(
                asked.name,
                asked.device,
                asked.dtype,
                trust_remote_code=asked.trust_remote_code,
                **size,
            )
        except HoldfastError as error:
            raise ModelError(f"On {platform.node()}: {error:}") from None
        if model.hf_model.device.type == "cpu":  # whose memory it shares with others
            share = min(1.0, self._processors / (os.cpu_count() or 1))
            model = replace(model, prefix_memory=int(share * model.prefix_bytes))
        self._model = model
        return Description(model.name, model.fingerprint, model.runtime, model.offers)

    def compute(
        self, function: Callable[..., Any], arguments: Sequence[Any]
    ) -> tuple[Any, Exception | None]:
        """What a function makes of the model and further arguments, or its error."""
        try:
            return function(self._loaded, *arguments), None
        except Exception as error:
            return None, portable(error)

    def begin(self, work: Work, replicas: int) -> None:
        """Ends the work before, if there was any, and begins another."""
        self._desk.close()
        self._desk = desk = Desk()
        model = self._loaded

        def go_on() -> None:
            import torch

            torch.set_num_threads(self._processors)  # of this thread
            try:
                while not desk.closed:
                    work.do(model, iter(desk), replicas, desk.listener)
            except Exception as error:
                desk.fail(portable(error))

        threading.Thread(target=go_on, name="holdfast-work", daemon=True).start()

    def exchange(self, units: Sequence[tuple[int, Any]]) -> News:
        """Takes further units, and tells what became of those before."""
        self._desk.give(units)
        return self._desk.take(_POLL)

    @property
    def _loaded(self) -> LocalModel:
        assert self._model is not None, "load() comes first"
        return self._model
