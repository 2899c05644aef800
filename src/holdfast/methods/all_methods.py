"""All methods, and their descriptions, which are derived from their classes."""

import dataclasses
from typing import Any

from holdfast.catalogue_entry import CatalogueEntry
from holdfast.methods import method_classes
from holdfast.methods.kinds import Ability, MethodKind, requirements
from holdfast.methods.parameters import parameters_of, required_parameters

METHODS: tuple[type[Any], ...] = tuple(
    value for value in vars(method_classes).values() if isinstance(value, type)
)
BY_NAME: dict[str, type[Any]] = {method.name: method for method in METHODS}
# the methods that anything between a client and a model can apply, whatever the model
METHODS_OUTSIDE_MODELS = tuple(
    method.name for method in METHODS if method.kind in (MethodKind.MESSAGES, MethodKind.RETRIES)
)


def catalogue() -> list[CatalogueEntry]:
    """Lists every method with its parameters and a one-line summary, for help texts."""
    return [
        CatalogueEntry(method.name, tuple(parameters_of(method)), summary(method))
        for method in METHODS
    ]


def schema() -> list[dict[str, Any]]:
    """Describes every method as plain data, for other languages and for pages.

    Returns:
        for each method its "name"; its "kind"; the abilities that it "needs" of a model; whether it
        "needs_rules" of a suite, and so works only with one; "description" and "source"; and
        "parameters", a JSON Schema object whose properties are the parameters.
    """
    return [
        {
            "name": method.name,
            "kind": _kind_name(method.kind),
            "needs_rules": getattr(method, "needs_rules", None) is True,
            "needs": [ability.value for ability in Ability if ability in requirements(method)],
            "description": summary(method),
            "source": method.source,
            "parameters": _parameters_schema(method),
        }
        for method in METHODS
    ]


def _kind_name(kind: MethodKind) -> str:
    """Returns a kind's name in the server's answers, which keep an older one for `LOGITS`."""
    return "stream" if kind is MethodKind.LOGITS else kind.name.lower().replace("_", "-")


def summary(method: type[Any]) -> str:
    """Returns the first paragraph of a class's docstring on one line."""
    return " ".join((method.__doc__ or "").strip().split("\n\n")[0].split())


def _parameters_schema(method: type[Any]) -> dict[str, Any]:
    """Describes the parameters of a method as the JSON Schema of an object."""
    defaults = {
        field.name: list(field.default) if isinstance(field.default, tuple) else field.default
        for field in dataclasses.fields(method)
    }
    required_names = required_parameters(method)
    properties: dict[str, dict[str, Any]] = {}
    for name, parameter in parameters_of(method).items():
        description = {"description": parameter.description, **parameter.values.schema}
        if name not in required_names and defaults[name] is not None:
            description["default"] = defaults[name]
        if parameter.example and description["type"] == "number":
            description["examples"] = [float(parameter.example)]
        properties[name] = description
    return {
        "type": "object",
        "properties": properties,
        "required": list(required_names),
        "additionalProperties": False,
    }
