"""Chat models in an engine of another package, selected by the model name: "vllm:MODEL".

The package declares an entry point of the group `holdfast.models`, under the engine's name:

    load(name, **options) -> ChatModel

The options are `dtype`, `batch_size` and `trust_remote_code`, and those that users give with
`--engine`. A `load` declares those that it takes; any other is refused for it.
"""

import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from inspect import Parameter, signature
from typing import Any

from holdfast.errors import ModelError, UsageError, option
from holdfast.methods.kinds import Ability
from holdfast.models.protocol import ChatModel

GROUP = "holdfast.models"
_STANDARD_OPTIONS = ("dtype", "batch_size", "trust_remote_code", "prefix_memory")


def load_in_engine(model: str, *, to_serve: bool = False, **options: Any) -> ChatModel:
    """Loads a model by a name such as "vllm:default".

    Raises a `ModelError` or `UsageError` if it cannot. With `to_serve`, the engine's `load` must
    accept `prefix_memory`.
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
    chat_model: ChatModel = load(name, **_options_for(load, engine, options))
    return chat_model


def _options_for(
    load: Callable[..., ChatModel], engine: str, options: Mapping[str, Any]
) -> dict[str, Any]:
    """The options that an engine's `load` declares; refuses any other that was given."""
    declared = signature(load).parameters
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in declared.values()):
        return dict(options)
    for name, value in options.items():
        is_default = name in _STANDARD_OPTIONS and (value is None or value is False)
        if name not in declared and not is_default:
            own = [other for other in list(declared)[1:] if other not in _STANDARD_OPTIONS]
            raise UsageError(
                f"The engine {engine} does not take {option(name, value)}; leave it out (its own"
                f" options: {', '.join(own) or 'none'}).",
                option=name,
                value=value,
                allowed=own,
            )
    return {name: value for name, value in options.items() if name in declared}


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
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name.isidentifier() or name in options:
            raise UsageError(
                f"{word!r} is no option of an engine; give each once, as in max_model_len=4096."
            )
        try:
            options[name] = json.loads(text)
        except ValueError:
            options[name] = text
    return options
