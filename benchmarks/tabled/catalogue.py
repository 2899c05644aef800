"""Tables of the methods, from their classes."""

from __future__ import annotations

import pydoc
import re

from tabled.reading import ROOT, markdown

from holdfast.methods.parameters import parameters_of, required_parameters
from holdfast.methods.registry import METHODS, summary


def api_table() -> str:
    """What users call, by the page of the Python API, with the first sentence of each docstring."""
    rows = [["name", "what it is"]]
    entry = r'^::: (\S+)(?:\n    options: \{heading: "([^"]+)")?'
    for path, heading in re.findall(entry, (ROOT / "docs/python.md").read_text(), re.MULTILINE):
        name = f"holdfast.{path.rpartition('.')[2]}"
        if heading or pydoc.locate(name):
            text = " ".join((pydoc.locate(path).__doc__ or "").split("\n\n")[0].split())
            rows.append([f"`{heading or name}`", text])
    return "\n".join(markdown(rows))


def catalogue_table() -> str:
    """Every method with its parameters, as declared by its class."""
    lines = ["| method | what it does | parameters | source |", "| --- " * 4 + "|"]
    for method in METHODS:
        names = ", ".join(
            f"`{name}`" for name in parameters_of(method) if name not in ("heads", "layers", "file")
        )
        lines.append(row_of(example(method), summary(method), names, linked(method.source)))
    return "\n".join(lines)


def row_of(*cells: str) -> str:
    """A row of a table of methods, with asterisks escaped."""
    return "| " + " | ".join(cell.replace("*", r"\*") for cell in cells) + " |"


def example(method: type) -> str:
    """An example of a method's spec, with the parameters that it requires."""
    required = [
        f"{name}={parameters_of(method)[name].example}" for name in required_parameters(method)
    ]
    return f"`{':'.join([method.name, *filter(None, [','.join(required)])])}`"


def linked(source: str) -> str:
    """A source with its arXiv numbers as links."""
    return re.sub(r"arXiv (\d{4}\.\d{5})", r"[arXiv \1](https://arxiv.org/abs/\1)", source)
