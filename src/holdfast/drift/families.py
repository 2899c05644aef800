"""Families of prompts, of which one half is for exploring and the other for confirming.

A family is one set of rules in several wordings, whose ids differ after their last hyphen:
`bakery-1` and `bakery-2` are the family `bakery`. What is chosen by looking at results (prompts,
methods, settings) is chosen on the families for exploring, and reported on those for confirming.
"""

import dataclasses
from collections import Counter
from typing import Literal

from holdfast.drift.cases import Suite
from holdfast.errors import UsageError

Half = Literal["explore", "confirm"]

_NOTES: dict[Half, str] = {
    "explore": "Only the families of prompts that are for exploring.",
    "confirm": "Only the families of prompts that are for confirming.",
}


def family_of(case_id: str) -> str:
    """The family of a prompt, from its id: `city-born-2` belongs to `city-born`."""
    return case_id.rsplit("-", 1)[0]


def halves(suite: Suite) -> dict[str, Half]:
    """The half of each family: within a category, in the order of the file, they alternate."""
    families = dict.fromkeys((case.category, family_of(case.id)) for case in suite.cases)
    count: Counter[str] = Counter()
    result: dict[str, Half] = {}
    for category, family in families:
        result[family] = "confirm" if count[category] % 2 else "explore"
        count[category] += 1
    return result


def half_of(suite: Suite, half: Half) -> Suite:
    """The suite with the families of one half.

    Raises:
        UsageError: it has no family for that half.
    """
    by_family = halves(suite)
    cases = tuple(case for case in suite.cases if by_family[family_of(case.id)] == half)
    if not cases:
        raise UsageError(
            f"The suite {suite.name!r} has no families to {half}; each of its categories has one."
            " Leave out --families.",
            option="families",
            value=half,
        )
    return dataclasses.replace(suite, cases=cases, notes=(*suite.notes, _NOTES[half]))
