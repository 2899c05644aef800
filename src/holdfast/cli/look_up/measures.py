"""`holdfast measures`: lists the measures, or describes one."""

import difflib
import itertools
import json
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic.fields import FieldInfo

from holdfast import measures
from holdfast.cli.look_up.catalogue_lines import (
    WIDTH,
    CatalogueArguments,
    description_lines,
    print_details,
    print_entries,
)
from holdfast.cli.shared.command import Command
from holdfast.cli.shared.json_output import write_document
from holdfast.errors import UnknownName, UsageError
from holdfast.measures.arguments import list_names
from holdfast.measures.registry import REGISTRY, SPEC_EXAMPLES, describe_values
from holdfast.report.wording import aligned

# the sources of measures of published benchmarks and studies, by the prefix of their names
PUBLISHED = {"ifeval_": "IFEval", "released_": "Li et al. 2024, as their code scores"}


def _run(arguments: CatalogueArguments) -> None:
    if arguments.name is not None:
        print_details(arguments.name, measure_lines(arguments.name))
        return
    entries = measures.catalogue()
    write_document([entry._asdict() for entry in entries])
    print("For your own prompts:")
    print_entries([entry for entry in entries if not entry.name.startswith(tuple(PUBLISHED))])
    print(f"\n`words` is a list of words, or the name of one of these: {', '.join(list_names())}")
    for prefix, source in PUBLISHED.items():
        print(f"\n{prefix}..., of {source}:")
        print_entries([entry for entry in entries if entry.name.startswith(prefix)])


def measure_lines(name: str) -> list[str]:
    """Describes one measure: its arguments, an example and its source."""
    if name in SPEC_EXAMPLES:
        summaries = {entry.name: entry.summary for entry in measures.catalogue()}
        described = textwrap.wrap(f"{name}: {summaries[name]}", WIDTH)
        return [*described, "", f"example: measure: {SPEC_EXAMPLES[name]}", "source: ours"]
    if name not in REGISTRY:
        names = [*REGISTRY, *SPEC_EXAMPLES]
        # `UnknownName` lists all names if none is alike, and here these would fill a page
        if not difflib.get_close_matches(name, names, 1):
            raise UsageError(f"There is no measure {name!r}; `holdfast measures` lists them.")
        raise UnknownName("measure", name, names)
    measure = REGISTRY[name]
    sources = [source for prefix, source in PUBLISHED.items() if name.startswith(prefix)]
    return [
        *description_lines(name, measure.function),
        "",
        *_argument_lines(measure.arguments),
        "",
        f"example: measure: {measure_example(name)}",
        *_opposite(name),
        f"source: {sources[0] if sources else 'ours'}",
    ]


def _argument_lines(arguments: Mapping[str, FieldInfo]) -> list[str]:
    """A table of the arguments of a measure, and their defaults."""
    if not arguments:
        return ["It takes no arguments."]
    rows = [("argument", "takes", "default")]
    for name, field in arguments.items():
        default = "must be given" if field.is_required() else json.dumps(field.default)
        rows.append((name, describe_values(field), default))
    return aligned(rows, "  ")


def _opposite(name: str) -> list[str]:
    """How to forbid what a measure looks for; [] if it does not score a text, as in logs."""
    if name == "never" or REGISTRY[name].of_turn:
        return []
    return [f"the opposite: measure: {{name: never, measure: {measure_example(name)}}}"]


def measure_example(name: str) -> str:
    """A measure as it is written in a suite file, with an example of every required argument.

    If a measure has no required argument, but must be given one of several, the first is taken.
    """
    arguments = REGISTRY[name].arguments
    required = [argument for argument, field in arguments.items() if field.is_required()]
    optional = [argument for argument in arguments if argument not in required]
    values = _values_of(name, required)
    if optional and not _can_be_built(name, values):
        values = _values_of(name, [*required, optional[0]])
    if not values:
        return name
    fields = ", ".join(f"{argument}: {json.dumps(value)}" for argument, value in values.items())
    if name == "regex":  # its first argument is named like the measure, and stands for it
        return f"{{{fields}}}"
    return f"{{name: {name}, {fields}}}"


def _values_of(name: str, arguments: Sequence[str]) -> dict[str, Any]:
    """The first example of each of these arguments."""
    fields = REGISTRY[name].arguments
    return {argument: _examples_of(fields[argument])[0] for argument in arguments}


def _examples_of(argument: FieldInfo) -> list[Any]:
    """The examples that an argument declares; they may be inside an optional type."""
    nested = (getattr(part, "__metadata__", ()) for part in get_args(argument.annotation))
    fields = [argument, *itertools.chain.from_iterable(nested)]
    return next((field.examples for field in fields if getattr(field, "examples", None)), [])


def _can_be_built(name: str, arguments: Mapping[str, Any]) -> bool:
    try:
        measures.build({"name": name, **arguments})
    except UsageError:
        return False
    return True


COMMAND = Command(
    "measures",
    _run,
    CatalogueArguments,
    description=(
        "Lists the measures, one per line, and the word lists that they know; with a name, shows"
        " the details of that measure."
    ),
)
