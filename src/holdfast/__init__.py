"""Holdfast measures how chat models drift from their system prompt, and keeps them on it.

    import holdfast

    model = holdfast.load("default")                  # or a folder, or a name on the hub
    model.generate(messages, holdfast.SplitSoftmax(0.5))
    holdfast.drift.run(model, "starter", out="runs/first")

The public interface is what `dir(holdfast)` lists, with the public names of the modules in it.
Everything that Holdfast raises on purpose is a `HoldfastError`; `holdfast.errors` draws their
tree. Importing the package imports neither torch nor any other slow library: each name is imported
when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from holdfast.errors import HoldfastError as HoldfastError
from holdfast.generation.cpu_threads import set_before_torch
from holdfast.lazy_imports import import_name
from holdfast.version import __version__ as __version__

if TYPE_CHECKING:
    from holdfast import client as client
    from holdfast import drift as drift
    from holdfast import errors as errors
    from holdfast import logs as logs
    from holdfast import measures as measures
    from holdfast import methods as methods
    from holdfast import records as records
    from holdfast import report as report
    from holdfast import study as study
    from holdfast import transcripts as transcripts
    from holdfast.chat.messages import Message as Message
    from holdfast.generation.sampling import Penalties as Penalties
    from holdfast.generation.sampling import Sampling as Sampling
    from holdfast.methods.method_classes import *  # noqa: F403  # every method
    from holdfast.models.connecting import connect as connect
    from holdfast.models.connecting import connect_all as connect_all
    from holdfast.models.function_model import from_function as from_function
    from holdfast.models.loading import load as load
    from holdfast.models.requests import Reply as Reply
    from holdfast.models.requests import Request as Request
    from holdfast.models.steering_blocks import encode_chats as encode_chats
    from holdfast.models.steering_blocks import steering as steering
    from holdfast.models.steering_blocks import unsteered as unsteered
    from holdfast.papers import zhang2024
    from holdfast.proxy.wrapping import wrap as wrap
    from holdfast.records import read_run as read_run

    tasks = zhang2024

_LIGHT = {  # each name, and the module that defines it
    "Message": "holdfast.chat.messages",
    "Penalties": "holdfast.generation.sampling",
    "Sampling": "holdfast.generation.sampling",
    "Reply": "holdfast.models.requests",
    "Request": "holdfast.models.requests",
    "wrap": "holdfast.proxy.wrapping",
}
_HEAVY = {  # likewise, for modules that import torch
    "load": "holdfast.models.loading",
    "read_run": "holdfast.records",
    "connect": "holdfast.models.connecting",
    "connect_all": "holdfast.models.connecting",
    "from_function": "holdfast.models.function_model",
    "encode_chats": "holdfast.models.steering_blocks",
    "steering": "holdfast.models.steering_blocks",
    "unsteered": "holdfast.models.steering_blocks",
}
_MODULES = {
    "client": "holdfast.client",
    "drift": "holdfast.drift",
    "errors": "holdfast.errors",
    "logs": "holdfast.logs",
    "measures": "holdfast.measures",
    "methods": "holdfast.methods",
    "records": "holdfast.records",
    "report": "holdfast.report",
    "study": "holdfast.study",
    "tasks": "holdfast.papers.zhang2024",
    "transcripts": "holdfast.transcripts",
}
_METHODS = "holdfast.methods.method_classes"  # every class in this module is a method


def __dir__() -> list[str]:
    methods = (name for name in vars(import_module(_METHODS)) if name[0].isupper())
    return sorted(["HoldfastError", "__version__", *_LIGHT, *_HEAVY, *_MODULES, *methods])


def __getattr__(name: str) -> Any:
    if name == "__all__":  # built when it is read, as listing the methods imports their modules
        return [public for public in __dir__() if public != "__version__"]
    if name in _LIGHT:
        return import_name(__name__, _LIGHT, name)
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name[:1].isupper() and hasattr(classes := import_module(_METHODS), name):
        return getattr(classes, name)
    if name in _HEAVY:
        set_before_torch()
    return import_name(__name__, _HEAVY, name)
