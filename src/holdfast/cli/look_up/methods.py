"""`holdfast methods`: lists the steering methods, or describes one."""

import json
from typing import Any

from holdfast import methods
from holdfast.cli.look_up.catalogue_lines import (
    CatalogueArguments,
    description_lines,
    print_details,
    print_entries,
)
from holdfast.cli.shared.command import Command
from holdfast.cli.shared.json_output import write_document
from holdfast.errors import UnknownName
from holdfast.methods.all_methods import BY_NAME
from holdfast.methods.kinds import in_words, requirements
from holdfast.methods.parameters import parameters_of, required_parameters
from holdfast.report.wording import aligned


def _run(arguments: CatalogueArguments) -> None:
    if arguments.name is not None:
        print_details(arguments.name, method_lines(arguments.name))
        return
    entries = methods.catalogue()
    print_entries(entries)
    write_document([entry._asdict() for entry in entries])


def method_lines(name: str) -> list[str]:
    """Describes one method: its parameters, an example and its source."""
    if name not in BY_NAME:
        raise UnknownName("method", name, BY_NAME)
    method = BY_NAME[name]
    rows = [("parameter", "takes", "default", "what it is")]
    for parameter, declared in parameters_of(method).items():
        default = _default(method, parameter)
        rows.append((parameter, declared.values.words, default, declared.description))
    example = example_of(method)
    quoted = f"'{example}'" if "[" in example else example  # shells interpret brackets
    return [
        *description_lines(name, method),
        "",
        *aligned(rows, "  "),
        "",
        f"example: --method {quoted}",
        f"needs from the model: {in_words(requirements(method))}",
        f"source: {method.source}",
    ]


def example_of(method: type[Any]) -> str:
    """A spec of a method, with an example of every required parameter."""
    parameters = parameters_of(method)
    required = [f"{name}={parameters[name].example}" for name in required_parameters(method)]
    return f"{method.name}:{','.join(required)}" if required else str(method.name)


def _default(method: type[Any], parameter: str) -> str:
    """A parameter's default as a spec has it; "" for None, which the description explains."""
    if parameter in required_parameters(method):
        return "must be given"
    value = getattr(method, parameter)
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else json.dumps(value).strip('"')


COMMAND = Command(
    "methods",
    _run,
    CatalogueArguments,
    description=(
        "Lists the steering methods, one per line; with a name, shows the details of that method."
    ),
)
