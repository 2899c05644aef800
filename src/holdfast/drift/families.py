"""Families of prompts, divided into one half for exploring and one for confirming.

A family is one set of rules in several wordings, whose ids differ after the last hyphen: `bakery-1`
and `bakery-2` are the family `bakery`. A choice that depends on results, such as that of prompts,
methods or settings, is made on the families for exploring, and its results are reported on those
for confirming.
"""

import dataclasses
from collections import Counter
from typing import Literal

from holdfast.drift.cases import Suite
from holdfast.errors import UsageError, option

Half = Literal["explore", "confirm"]

_NOTES: dict[Half, str] = {
    "explore": "Only the families of prompts that are for exploring.",
    "confirm": "Only the families of prompts that are for confirming.",
}


def family_of(case_id: str) -> str:
    """The family of a prompt, from its id: `city-born-2` belongs to `city-born`."""
    return case_id.rsplit("-", 1)[0]


def halves(suite: Suite) -> dict[str, Half]:
    """The half of each family; the families of a category alternate, in the suite's order."""
    families = dict.fromkeys((case.category, family_of(case.id)) for case in suite.cases)
    count: Counter[str] = Counter()
    result: dict[str, Half] = {}
    for category, family in families:
        result[family] = "confirm" if count[category] % 2 else "explore"
        count[category] += 1
    return result


def half_of(suite: Suite, half: Half) -> Suite:
    """The suite with only the families of one half.

    Raises:
        UsageError: that half has no family.
    """
    by_family = halves(suite)
    cases = tuple(case for case in suite.cases if by_family[family_of(case.id)] == half)
    if not cases:
        raise UsageError(
            f"The suite {suite.name!r} has no families to {half}, as each of its categories has"
            f" only one family; leave out {option('families')}.",
            option="families",
            value=half,
        )
    return dataclasses.replace(suite, cases=cases, notes=(*suite.notes, _NOTES[half]))
