"""Every method, with the example of its help, for tests that a new method joins by itself; and a
method that fails.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import torch

from holdfast.cli.look_up.methods import example_of
from holdfast.methods import Ability, Method, MethodKind, parse
from holdfast.methods.all_methods import METHODS
from holdfast.methods.parameters import parameters_of

_NEUTRAL = re.compile(r"(\d+) (?:changes nothing|adds none)")


def of_kind(kind: MethodKind) -> list[Method]:
    """The examples of the methods of a kind that takes no file."""
    return [example(method) for method in METHODS if method.kind is kind]


def example(method: type[Any]) -> Method:
    """An object of a method's class, with the examples of its required parameters."""
    return parse(example_of(method))[0]


def neutral(method: Method) -> Method | None:
    """The method with the value that changes nothing by its description; None if it names none."""
    for name, declared in parameters_of(type(method)).items():
        if match := _NEUTRAL.search(declared.description):
            return dataclasses.replace(method, **{name: float(match[1])})
    return None


@dataclasses.dataclass(frozen=True)
class Broken:
    """A method that raises an error or returns NaN, depending on `how`."""

    name = "broken"
    kind = MethodKind.LOG_ODDS
    requires = frozenset({Ability.LOG_ODDS})
    heads = None
    span_includes_generated = False
    how: str = "raises"

    def shift(self, log_odds, layer):
        if self.how == "raises":
            raise ValueError("a bug in a method")
        return log_odds * torch.nan
