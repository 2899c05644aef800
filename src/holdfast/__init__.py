"""Holdfast measures how chat models drift from their system prompt, and keeps them on it.

    import holdfast

    model = holdfast.load("default")                  # or a folder, or a name on the hub
    model.generate(messages, holdfast.SplitSoftmax(0.5))
    holdfast.drift.run(model, "starter", out="runs/first")

`__all__` is the public interface, with that of its modules. Everything that it raises on purpose is
a `HoldfastError`; `holdfast.errors` draws their tree. Importing the package imports neither torch
nor anything else that takes long: every name is imported at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from holdfast.errors import HoldfastError
from holdfast.generation.cpu_threads import limit_spinning
from holdfast.lazy_imports import later
from holdfast.version import __version__ as __version__

if TYPE_CHECKING:
    from holdfast import (
        client,
        drift,
        errors,
        logs,
        measures,
        methods,
        records,
        report,
        study,
        transcripts,
    )
    from holdfast.chat.messages import Message
    from holdfast.generation.sampling import Penalties, Sampling
    from holdfast.methods import (
        AdaCad,
        Anchoring,
        Boost,
        Capping,
        Guidance,
        Hold,
        Pasta,
        Prism,
        PromptStrength,
        Reminder,
        Repair,
        Repetition,
        Seka,
        SplitSoftmax,
        Spotlight,
        Vector,
    )
    from holdfast.models.connecting import connect, connect_all
    from holdfast.models.loading import load
    from holdfast.models.requests import Reply, Request
    from holdfast.models.steering_blocks import encode_chats, steering, unsteered
    from holdfast.papers import zhang2024 as tasks
    from holdfast.proxy.wrapping import wrap
    from holdfast.records import read_run

__all__ = [
    "AdaCad",
    "Anchoring",
    "Boost",
    "Capping",
    "Guidance",
    "Hold",
    "HoldfastError",
    "Message",
    "Pasta",
    "Penalties",
    "Prism",
    "PromptStrength",
    "Reminder",
    "Repair",
    "Repetition",
    "Reply",
    "Request",
    "Sampling",
    "Seka",
    "SplitSoftmax",
    "Spotlight",
    "Vector",
    "client",
    "connect",
    "connect_all",
    "drift",
    "encode_chats",
    "errors",
    "load",
    "logs",
    "measures",
    "methods",
    "read_run",
    "records",
    "report",
    "steering",
    "study",
    "tasks",
    "transcripts",
    "unsteered",
    "wrap",
]

_LIGHT = {  # by name, the module that defines it
    "Message": "holdfast.chat.messages",
    "Penalties": "holdfast.generation.sampling",
    "Sampling": "holdfast.generation.sampling",
    "Reply": "holdfast.models.requests",
    "Request": "holdfast.models.requests",
    "wrap": "holdfast.proxy.wrapping",
}
_LATER = {  # the same for what imports torch
    "load": "holdfast.models.loading",
    "read_run": "holdfast.records",
    "connect": "holdfast.models.connecting",
    "connect_all": "holdfast.models.connecting",
    "encode_chats": "holdfast.models.steering_blocks",
    "steering": "holdfast.models.steering_blocks",
    "unsteered": "holdfast.models.steering_blocks",
}


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _LIGHT:
        return later(__name__, _LIGHT, name)
    if name in __all__ and name[0].isupper():  # a method
        return getattr(import_module("holdfast.methods"), name)
    if name in __all__ and name not in _LATER:
        return import_module("holdfast.papers.zhang2024" if name == "tasks" else f"holdfast.{name}")
    limit_spinning()
    return later(__name__, _LATER, name)
