"""`holdfast measures` and `holdfast methods`: list all of them, or describe one."""

import inspect
import json
import textwrap
from collections.abc import Callable
from typing import Annotated, Any

from holdfast import measures, methods
from holdfast.cli.options import Arg, Command, Options
from holdfast.errors import UnknownName
from holdfast.measures.arguments import list_names
from holdfast.measures.registry import REGISTRY, catalogue, expected_of
from holdfast.methods.all_methods import BY_NAME
from holdfast.methods.kinds import Ability, requirements
from holdfast.methods.parameters import parameters_of, required_parameters
from holdfast.report.wording import aligned

# measures of published benchmarks and studies, by the prefix of their names
PUBLISHED = {"ifeval_": "of IFEval", "released_": "of Li et al. 2024, as their code scores"}
# measures that are built from their own kind of spec, as written in a suite
_BUILT = {
    "python": "measure: {python: my_measures.rhymes}",
    "judge": 'measure: {judge: "Is the reply polite?", model: "http://localhost:8000/v1"}',
}
_WIDTH = 100


class CatalogueArguments(Options):
    name: Annotated[str | None, Arg("NAME", positional=True, nargs="?")] = None
    """show the details of this one"""


def _measures(arguments: CatalogueArguments) -> None:
    if arguments.name is not None:
        print("\n".join(measure_lines(arguments.name)))
        return
    rows = measures.catalogue()
    print("For your own prompts:")
    _print([row for row in rows if not row[0].startswith(tuple(PUBLISHED))])
    print(f"\n`words` is a list of words, or the name of one of these: {', '.join(list_names())}")
    for beginning, source in PUBLISHED.items():
        print(f"\n{beginning}..., {source}:")
        _print([row for row in rows if row[0].startswith(beginning)])


def _methods(arguments: CatalogueArguments) -> None:
    if arguments.name is not None:
        print("\n".join(method_lines(arguments.name)))
        return
    _print([(name, ", ".join(parameters), line) for name, parameters, line in methods.catalogue()])


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
        *_about(name, method),
        "",
        *aligned(rows, "  "),
        "",
        f"example: --method {quoted}",
        f"needs of the model: {', '.join(a.value for a in Ability if a in requirements(method))}",
        f"source: {method.source}",
    ]


def example_of(method: type[Any]) -> str:
    """A spec of a method, with an example of every required parameter."""
    known = parameters_of(method)
    given = ",".join(f"{name}={known[name].example}" for name in required_parameters(method))
    return f"{method.name}:{given}" if given else str(method.name)


def measure_lines(name: str) -> list[str]:
    """Describes one measure: its arguments, an example and its source."""
    if name in _BUILT:
        line = next(f"{name}: {line}" for known, _, line in catalogue() if known == name)
        return [*textwrap.wrap(line, _WIDTH), "", f"example: {_BUILT[name]}", "source: ours"]
    if name not in REGISTRY:
        raise UnknownName("measure", name, [*REGISTRY, *_BUILT])
    entry = REGISTRY[name]
    rows = [("argument", "takes", "default")]
    for argument, field in entry.arguments.items():
        default = "must be given" if field.is_required() else json.dumps(field.default)
        rows.append((argument, expected_of(field), default))
    published = (line for beginning, line in PUBLISHED.items() if name.startswith(beginning))
    return [
        *_about(name, entry.function),
        "",
        *(aligned(rows, "  ") if rows[1:] else ["It takes no arguments."]),
        "",
        f"example: measure: {measure_example(name)}",
        f"source: {next(published, 'ours').removeprefix('of ')}",
    ]


def measure_example(name: str) -> str:
    """A measure as written in a suite file, with a value for every required argument."""
    fields = REGISTRY[name].arguments.items()
    needed = {argument: field.examples or [] for argument, field in fields if field.is_required()}
    if not needed:
        return name
    given = ", ".join(f"{argument}: {json.dumps(some[0])}" for argument, some in needed.items())
    return f"{{{given}}}" if name == "regex" else f"{{name: {name}, {given}}}"


def _about(name: str, documented: Any) -> list[str]:
    """The lines of an object's docstring, up to its arguments."""
    text = (inspect.getdoc(documented) or "").split("\n\nArgs:")[0].split("\n\nRaises:")[0]
    first, *rest = text.split("\n\n")
    lines = textwrap.wrap(f"{name}: {' '.join(first.split())}", _WIDTH)
    for paragraph in rest:
        lines += ["", *paragraph.replace("`", "").splitlines()]
    return [line.replace("`", "") for line in lines]


def _default(method: type[Any], parameter: str) -> str:
    """A parameter's default in a spec; "" for None, which the description explains."""
    if parameter in required_parameters(method):
        return "must be given"
    value = getattr(method, parameter)
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else json.dumps(value).strip('"')


def _print(rows) -> None:
    heads = [f"{name}({arguments})" if arguments else name for name, arguments, _ in rows]
    width = min(44, max(map(len, heads)))
    for head, (_, _, line) in zip(heads, rows, strict=True):
        print(
            f"{head:<{width}}  {line}" if len(head) <= width else f"{head}\n{'':<{width}}  {line}"
        )


def _command(
    name: str, run: Callable[[CatalogueArguments], None], line: str
) -> Command[CatalogueArguments]:
    about = f"{line.capitalize()}, one line each; with a name, the details of one."
    return Command(name, line, run, CatalogueArguments, about)


MEASURES = _command("measures", _measures, "list the measures, and the word lists that they know")
METHODS = _command("methods", _methods, "list the steering methods")
