"""Tables of the methods, from their classes."""

from __future__ import annotations

import re

from holdfast.methods.parameters import parameters_of, required_parameters
from holdfast.methods.registry import METHODS, summary


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
