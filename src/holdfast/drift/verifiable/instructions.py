"""Published instructions as measures: an id and its arguments become a measure's spec."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.drift.verifiable.rows import shown
from holdfast.errors import UsageError
from holdfast.measures import Measure, build, catalogue

SCORINGS = ("strict", "loose")


@dataclass(frozen=True)
class Instruction:
    """One verifiable instruction of a row.

    Attributes:
        id: as published, such as "punctuation:no_comma".
        measure: scores a reply 0 or 1, strictly.
    """

    id: str
    measure: Measure

    def argument(self, name: str) -> Any:
        """An argument of the instruction, None where it has none of the name."""
        return self.measure.arguments.get(name)

    def scored(self, scoring: str) -> Measure:
        """The measure under a scoring: `strict`, or `loose` as Zhou et al. 2023 define it."""
        if scoring == "strict":
            return self.measure
        return build({"name": "loosely", "measure": self.measure.spec})


def measure_name(id: str, prefix: str) -> str:
    """The measure of an instruction: "punctuation:no_comma" is `ifeval_punctuation_no_comma`."""
    return f"{prefix}_{id.replace(':', '_').replace('-', '_')}"


def read_instructions(
    ids: Any, arguments: Any, place: str, prefix: str, beyond: Collection[str] = ()
) -> list[Instruction | str]:
    """The instructions of a row, in its order.

    Args:
        ids: the row's `instruction_id_list`.
        arguments: its `kwargs`: a mapping for each; what is null there is not given.
        place: of the row, for messages.
        prefix: of the measures, `ifeval` or `ifbench`.
        beyond: published ids that no measure of ours scores.

    Returns:
        each as an `Instruction`; as its id where it is one of `beyond`.

    Raises:
        UsageError: the two lists do not fit together, an id is unknown, or an argument is.
    """
    if not isinstance(ids, list) or not isinstance(arguments, list) or len(ids) != len(arguments):
        raise UsageError(
            f"{place}: 'instruction_id_list' is {shown(ids)} and 'kwargs' {shown(arguments)}, not"
            " two lists of one length; give the published file."
        )
    return [
        id if id in beyond else read_instruction(id, given, place, prefix)
        for id, given in zip(ids, arguments, strict=True)
    ]


def read_instruction(id: Any, given: Any, place: str, prefix: str) -> Instruction:
    """One instruction, or a `UsageError` about its id or arguments."""
    known = {
        name.removeprefix(f"{prefix}_"): name
        for name, _, _ in catalogue()
        if name.startswith(f"{prefix}_")
    }
    name = measure_name(id, prefix) if isinstance(id, str) else ""
    if name not in known.values():
        near = difflib.get_close_matches(name.removeprefix(f"{prefix}_"), known, n=1)
        cure = f"did you mean {known[near[0]]!r}?" if near else "give the published file."
        raise UsageError(f"{place}: no measure scores the instruction {shown(id)}; {cure}")
    if not isinstance(given, Mapping):
        raise UsageError(
            f"{place}: the arguments of {id!r} are {shown(given)}, not a mapping; give the"
            " published file."
        )
    if "name" in given:  # which names the measure in a spec, and is no argument of one
        raise UsageError(f"{place}: {id!r} has no argument 'name'; give the published file.")
    try:
        return Instruction(id, build({"name": name, **arguments_of(given)}))
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from error


def arguments_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that are given; a whole number may be written as 5.0."""
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in given.items()
        if value is not None
    }
