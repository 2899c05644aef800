"""A Ray actor: one replica of the model, on a machine of the cluster."""

from __future__ import annotations

import os
import pickle
import platform
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from holdfast.errors import HoldfastError, ModelError
from holdfast.generation.cpu_threads import set_before_torch
from holdfast.methods import Ability

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel
    from holdfast.models.session import LocalSession

_PACKAGES = ("holdfast-llm", "ray", "torch", "transformers", "tokenizers", "numpy")


@dataclass(frozen=True)
class Specification:
    """The model that an actor loads from its machine's cache, as arguments of `holdfast.load`."""

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
    about: dict[str, object]  # facts for the manifest, from `facts_about`


@dataclass(frozen=True)
class CallOutcome:
    """The result of a call, or the error that it raised.

    Attributes:
        reduced_max_sequences: the most sequences forwarded together since memory ran out; None if
            it has not.
    """

    result: Any
    error: Exception | None
    reduced_max_sequences: int | None


def versions() -> dict[str, str]:
    """Returns the versions of software that must be the same on all machines of a run."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"python": python} | {name: metadata.version(name).split("+")[0] for name in _PACKAGES}


class Actor:
    """A replica of the model that uses `processors` threads on the CPU.

    Its methods share an event loop, so that requests that wait at the same time share a batch.
    """

    def __init__(self, processors: int):
        os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        set_before_torch()
        self._processors = processors
        self._model: LocalModel | None = None
        self._sessions: dict[int, LocalSession] = {}  # by the number of the `RaySession`

    async def about(self) -> tuple[str, dict[str, str]]:
        """Returns the name of the machine, and the versions of the software on it."""
        return platform.node(), versions()

    async def load(self, specification: Specification) -> Description:
        """Loads the model; raises the errors of `holdfast.load` with the machine's name added."""
        import torch
        from transformers.utils import logging

        from holdfast.models.loading import load
        from holdfast.models.protocol import facts_about

        torch.set_num_threads(self._processors)  # for this thread, in which everything runs
        logging.disable_progress_bar()
        fields = vars(specification).items()
        arguments = {name: value for name, value in fields if value is not None}
        try:
            model = load(arguments.pop("name"), **arguments)
        except HoldfastError as error:
            raise ModelError(f"On {platform.node()}: {error}") from None
        if model.hf_model.device.type == "cpu":  # the machine's memory is shared with other actors
            share = min(1.0, self._processors / (os.cpu_count() or 1))
            model = replace(model, prefix_memory=int(share * model.prefix_bytes))
        self._model = model
        return Description(
            model.name, model.fingerprint, model.runtime, model.capabilities, facts_about(model)
        )

    async def call(
        self, session: int, function: Callable[..., Any], arguments: Sequence[Any]
    ) -> CallOutcome:
        """Calls a function with a session and further arguments; awaits the result if it has to."""
        assert self._model is not None, "load() comes first"
        if session not in self._sessions:
            self._sessions[session] = self._model.session()
        engine = self._sessions[session]
        try:
            result = function(engine, *arguments)
            if isawaitable(result):
                result = await result
        except Exception as error:
            return CallOutcome(None, make_portable(error), engine.reduced_max_sequences)
        return CallOutcome(result, None, engine.reduced_max_sequences)

    async def close(self, session: int) -> None:
        """Frees everything that a session keeps."""
        self._sessions.pop(session, None)


def make_portable(error: Exception) -> Exception:
    """Returns an error that another process can unpickle; unexpected ones carry their traceback."""
    trace = traceback.format_exc()
    try:
        same: Exception = pickle.loads(pickle.dumps(error))
    except Exception:
        same = ModelError(f"{type(error).__name__}: {error}")
    if not isinstance(error, HoldfastError):
        same.add_note(trace)
    return same
