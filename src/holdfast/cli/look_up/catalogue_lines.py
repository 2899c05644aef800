"""The parts of `holdfast methods` and `holdfast measures`: lists of entries, and details of one."""

import difflib
import inspect
import textwrap
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

from holdfast.catalogue_entry import CatalogueEntry
from holdfast.cli.shared.command import Arg, Options
from holdfast.cli.shared.json_output import write_document
from holdfast.drift.suites import SHIPPED
from holdfast.errors import cut
from holdfast.measures.registry import REGISTRY, SPEC_EXAMPLES
from holdfast.methods.all_methods import BY_NAME
from holdfast.models.checkpoint import DEFAULT, REAL_MODELS

WIDTH = 100  # of lines; a longer signature is cut, and shown whole with the name of its entry
_MAX_SIGNATURE_WIDTH = 44  # a longer one is on a line of its own, above its summary
_SIMILAR = 0.8  # how similar a misspelt name is to the one that was meant, as `difflib` measures it


class CatalogueArguments(Options):
    name: Annotated[str | None, Arg("NAME", positional=True, nargs="?")] = None
    """show the details of this one (default: list all)"""


def print_entries(entries: Sequence[CatalogueEntry]) -> None:
    """Prints the signature and the summary of each entry, in two columns."""
    width = min(_MAX_SIGNATURE_WIDTH, max(len(entry.signature) for entry in entries))
    for entry in entries:
        if len(entry.signature) <= width:
            print(f"{entry.signature:<{width}}  {entry.summary}")
        else:
            print(cut(entry.signature, WIDTH))
            print(f"{'':<{width}}  {entry.summary}")


def print_details(name: str, lines: Sequence[str]) -> None:
    """Prints the details of one entry."""
    text = "\n".join(lines)
    print(text)
    write_document({"name": name, "text": text})


def description_lines(name: str, documented: type[Any] | Callable[..., Any]) -> list[str]:
    """The lines of a docstring up to its arguments, without backticks."""
    docstring = (inspect.getdoc(documented) or "").replace("`", "")
    text = docstring.split("\n\nArgs:")[0].split("\n\nRaises:")[0]
    first, *rest = text.split("\n\n")
    lines = textwrap.wrap(f"{name}: {' '.join(first.split())}", WIDTH)
    for paragraph in rest:
        lines += ["", *paragraph.splitlines()]
    return lines


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
