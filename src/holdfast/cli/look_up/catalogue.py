"""`holdfast measures` and `holdfast methods`: list them all, or describe one."""

import difflib
import inspect
import itertools
import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, get_args

from pydantic.fields import FieldInfo

from holdfast import measures, methods
from holdfast.catalogue_entry import CatalogueEntry
from holdfast.cli.shared.command import Arg, Command, Options
from holdfast.cli.shared.json_output import write_document
from holdfast.drift.suites import SHIPPED
from holdfast.errors import UnknownName, UsageError, cut
from holdfast.measures.arguments import list_names
from holdfast.measures.registry import REGISTRY, SPEC_EXAMPLES, describe_values
from holdfast.methods.all_methods import BY_NAME
from holdfast.methods.kinds import in_words, requirements
from holdfast.methods.parameters import parameters_of, required_parameters
from holdfast.models.checkpoint import DEFAULT, REAL_MODELS
from holdfast.report.wording import aligned

# the sources of measures of published benchmarks and studies, by the prefix of their names
PUBLISHED = {"ifeval_": "IFEval", "released_": "Li et al. 2024, as their code scores"}
_WIDTH = 100  # of lines; a longer signature is cut, and shown whole with the name of its measure
_SIMILAR = 0.8  # how similar a misspelt name is to the one that was meant, as `difflib` measures it
_MAX_SIGNATURE_WIDTH = 44  # a longer one is on a line of its own, above its summary


class CatalogueArguments(Options):
    name: Annotated[str | None, Arg("NAME", positional=True, nargs="?")] = None
    """show the details of this one (default: list all)"""


def _run_measures(arguments: CatalogueArguments) -> None:
    if arguments.name is not None:
        lines = measure_lines(arguments.name)
        print("\n".join(lines))
        write_document({"name": arguments.name, "text": "\n".join(lines)})
        return
    entries = measures.catalogue()
    write_document([entry._asdict() for entry in entries])
    print("For your own prompts:")
    _print_entries([entry for entry in entries if not entry.name.startswith(tuple(PUBLISHED))])
    print(f"\n`words` is a list of words, or the name of one of these: {', '.join(list_names())}")
    for prefix, source in PUBLISHED.items():
        print(f"\n{prefix}..., of {source}:")
        _print_entries([entry for entry in entries if entry.name.startswith(prefix)])


def _run_methods(arguments: CatalogueArguments) -> None:
    if arguments.name is not None:
        lines = method_lines(arguments.name)
        print("\n".join(lines))
        write_document({"name": arguments.name, "text": "\n".join(lines)})
        return
    _print_entries(methods.catalogue())
    write_document([entry._asdict() for entry in methods.catalogue()])


def _print_entries(entries: Sequence[CatalogueEntry]) -> None:
    """Prints the signature and the summary of each entry, in two columns."""
    width = min(_MAX_SIGNATURE_WIDTH, max(len(entry.signature) for entry in entries))
    for entry in entries:
        if len(entry.signature) <= width:
            print(f"{entry.signature:<{width}}  {entry.summary}")
        else:
            print(cut(entry.signature, _WIDTH))
            print(f"{'':<{width}}  {entry.summary}")


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
        *_description(name, method),
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


def measure_lines(name: str) -> list[str]:
    """Describes one measure: its arguments, an example and its source."""
    if name in SPEC_EXAMPLES:
        summaries = {entry.name: entry.summary for entry in measures.catalogue()}
        described = textwrap.wrap(f"{name}: {summaries[name]}", _WIDTH)
        return [*described, "", f"example: measure: {SPEC_EXAMPLES[name]}", "source: ours"]
    if name not in REGISTRY:
        names = [*REGISTRY, *SPEC_EXAMPLES]
        if not difflib.get_close_matches(name, names, 1):
            raise UsageError(f"There is no measure {name!r}; `holdfast measures` lists them.")
        raise UnknownName("measure", name, names)
    measure = REGISTRY[name]
    rows = [("argument", "takes", "default")]
    for argument, field in measure.arguments.items():
        default = "must be given" if field.is_required() else json.dumps(field.default)
        rows.append((argument, describe_values(field), default))
    sources = [source for prefix, source in PUBLISHED.items() if name.startswith(prefix)]
    return [
        *_description(name, measure.function),
        "",
        *(aligned(rows, "  ") if measure.arguments else ["It takes no arguments."]),
        "",
        f"example: measure: {measure_example(name)}",
        *_opposite(name),
        f"source: {sources[0] if sources else 'ours'}",
    ]


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


def _description(name: str, documented: type[Any] | Callable[..., Any]) -> list[str]:
    """The lines of a docstring up to its arguments, without backticks."""
    docstring = (inspect.getdoc(documented) or "").replace("`", "")
    text = docstring.split("\n\nArgs:")[0].split("\n\nRaises:")[0]
    first, *rest = text.split("\n\n")
    lines = textwrap.wrap(f"{name}: {' '.join(first.split())}", _WIDTH)
    for paragraph in rest:
        lines += ["", *paragraph.splitlines()]
    return lines


def _default(method: type[Any], parameter: str) -> str:
    """A parameter's default as a spec has it; "" for None, which the description explains."""
    if parameter in required_parameters(method):
        return "must be given"
    value = getattr(method, parameter)
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else json.dumps(value).strip('"')


class _Use(NamedTuple):
    """The kind of a name, and a command that takes it."""

    kind: str
    command: str


def use_of_name(word: str, commands: Sequence[str]) -> str:
    """Says which command takes a name that was typed as a command.

    Such as "'boost' is a method, not a command; give it as in `holdfast methods boost`."

    Returns:
        "" if the word is not nearly the name of a method, measure, suite or model, or if it is more
        like one of the commands.
    """
    typed = word.partition(":")[0]  # of a spec, such as boost:factor=4
    uses = {
        **{model: _Use("model", f"try --model {model}") for model in (DEFAULT, *REAL_MODELS)},
        **{suite: _Use("suite", f"drift --suite {suite}") for suite in SHIPPED},
        **{name: _Use("measure", f"measures {name}") for name in (*REGISTRY, *SPEC_EXAMPLES)},
        **{name: _Use("method", f"methods {name}") for name in BY_NAME},
    }
    similar = difflib.get_close_matches(typed, [*commands, *uses], 1, _SIMILAR)
    if not similar or similar[0] in commands:
        return ""
    name = similar[0]
    kind, command = uses[name]
    if name != typed:
        return (
            f"There is no command {word!r}; did you mean the {kind} {name!r}, as in `holdfast"
            f" {command}`?"
        )
    return f"{typed!r} is a {kind}, not a command; give it as in `holdfast {command}`."


MEASURES = Command(
    "measures",
    _run_measures,
    CatalogueArguments,
    description=(
        "Lists the measures, one per line, and the word lists that they know; with a name, shows"
        " the details of that measure."
    ),
)
METHODS = Command(
    "methods",
    _run_methods,
    CatalogueArguments,
    description=(
        "Lists the steering methods, one per line; with a name, shows the details of that method."
    ),
)
