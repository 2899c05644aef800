"""Chat models in an engine of another package, selected by the model name: "vllm:MODEL".

The package declares an entry point of the group `holdfast.models`, under the engine's name:

    load(name, dtype=None, *, batch_size=None, trust_remote_code=False, **options) -> ChatModel
"""

import difflib
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from inspect import signature
from typing import Any

from holdfast.errors import ModelError, UsageError
from holdfast.methods.kinds import Ability
from holdfast.models.protocol import ChatModel

GROUP = "holdfast.models"


def load_in_engine(model: str, *, to_serve: bool = False, **options: Any) -> ChatModel:
    """Loads a model by a name such as "vllm:default"; raises a `ModelError` or `UsageError` if it
    cannot. With `to_serve`, the engine's `load` must accept `prefix_memory`.
    """
    engine, _, name = model.partition(":")
    points = {point.name: point for point in entry_points(group=GROUP)}
    if engine not in points:
        near = difflib.get_close_matches(engine, points, 1)
        cure = (
            f"did you mean {near[0]}:{name}"
            if near
            else f"pip install its package, such as holdfast-{engine}"
        )
        installed = ", ".join(sorted(points)) or "none"
        raise ModelError(
            f"{model!r} needs the engine {engine!r}, which is not installed here (installed:"
            f" {installed}); {cure}, or give the model as {name!r}."
        )
    load = points[engine].load()
    if to_serve and "prefix_memory" not in signature(load).parameters:
        raise UsageError(
            f"{model} runs in {engine}, which `holdfast serve` does not serve; start the server of"
            " that engine, if it has one, or give a folder or a name on the hub."
        )
    chat_model: ChatModel = load(name, **options)
    return chat_model


def abilities_in(engine: str) -> frozenset[Ability] | None:
    """The abilities that every model in an engine offers methods, as the attribute `capabilities`
    of its `load` says; None if the engine is not installed.
    """
    for point in entry_points(group=GROUP):
        if point.name == engine:
            abilities: frozenset[Ability] = getattr(point.load(), "capabilities", frozenset())
            return abilities
    return None


def read_options(words: Sequence[str]) -> Mapping[str, Any]:
    """An engine's own options, given as NAME=VALUE, with JSON or plain text as the value."""
    options: dict[str, Any] = {}
    for option in words:
        name, equals, text = option.partition("=")
        if not equals or not name.isidentifier() or name in options:
            raise UsageError(
                f"{option!r} is no option of an engine; give each once, as in max_model_len=4096."
            )
        try:
            options[name] = json.loads(text)
        except ValueError:
            options[name] = text
    return options
