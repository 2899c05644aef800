"""Rows of every format as one kind of prompt, and prompts as a suite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.drift.cases import Case, Rule, Suite, generic_starters
from holdfast.drift.verifiable.instructions import SCORINGS, Instruction
from holdfast.drift.verifiable.leaving_out import reasons_against, told
from holdfast.errors import UnknownName, UsageError

SEVERAL = "several"  # the category of a prompt with instructions of more than one group


@dataclass(frozen=True)
class Prompt:
    """One row of a published file.

    Attributes:
        id: unlike all others of the file.
        place: its file and line, for messages.
        system_prompt: gives the instructions.
        probe: the request, which every round asks.
        instructions: of the system prompt; one that no measure scores is only its id.
        of_probe: further instructions, which the probe gives.
        category: of the case; None: the group of its instructions.
    """

    id: str
    place: str
    system_prompt: str
    probe: str
    instructions: tuple[Instruction | str, ...]
    of_probe: tuple[Instruction, ...] = ()
    category: str | None = None


def suite_of(name: str, prompts: Sequence[Prompt], scoring: str, path: Path, *about: str) -> Suite:
    """The suite of a file: a case per prompt, with a rule per instruction that stays.

    Args:
        name: of the suite; its scoring is added where it is not the strict one.
        prompts: of the file, at least one.
        scoring: one of `SCORINGS`.
        path: of the file, for messages.
        about: what a reader of the results has to know, before what was left out.

    Raises:
        UnknownName: no scoring of this name.
        UsageError: two rows with one id, or nothing is left.
    """
    if scoring not in SCORINGS:
        raise UnknownName("scoring", scoring, SCORINGS)
    refuse_repeated(prompts)
    left_out: Counter[str] = Counter()
    unscored: Counter[str] = Counter()
    cases = []
    for prompt in prompts:
        rules = rules_of(prompt, scoring, left_out, unscored)
        if rules:
            cases.append(
                Case(prompt.id, category_of(prompt, rules), prompt.system_prompt, rules=rules)
            )
    if not cases:
        raise UsageError(
            f"{path} holds {len(prompts)} prompts, and none with an instruction that can be"
            " measured; give the published file."
        )
    total = sum(len(prompt.instructions) for prompt in prompts)
    kept = sum(len(case.rules) for case in cases)
    counts = (
        f"{kept} of {total} instructions and {len(cases)} of {len(prompts)} prompts are asked about"
        f"{f'; left out: {told(left_out)}' if left_out else ''}."
    )
    scored = {
        "strict": "Each instruction scores 0 or 1, strictly.",
        "loose": "Each instruction scores 0 or 1, loosely: the best of eight readings.",
    }[scoring]
    notes = (*about, counts, *names_of(unscored), scored)
    suite_name = name if scoring == "strict" else f"{name}-{scoring}"
    return Suite(suite_name, tuple(cases), generic_starters(), notes)


def refuse_repeated(prompts: Sequence[Prompt]) -> None:
    """A conversation is known by its case, so every row needs an id of its own."""
    places: dict[str, str] = {}
    for prompt in prompts:
        if prompt.id in places:
            raise UsageError(
                f"{prompt.place}: the key is {prompt.id!r}, taken by {places[prompt.id]}; give"
                " every row its own."
            )
        places[prompt.id] = prompt.place


def rules_of(
    prompt: Prompt, scoring: str, left_out: Counter[str], unscored: Counter[str]
) -> tuple[Rule, ...]:
    """The instructions of a prompt that stay, as rules; the others are counted."""
    measured = [item for item in prompt.instructions if isinstance(item, Instruction)]
    unscored.update(item for item in prompt.instructions if isinstance(item, str))
    reasons = reasons_against(measured, prompt.probe, prompt.of_probe)
    left_out.update(reason for reason in reasons if reason)
    names: Counter[str] = Counter()
    rules = []
    for instruction, reason in zip(measured, reasons, strict=True):
        names[instruction.id] += 1
        if reason is None:
            again = f" ({names[instruction.id]})" if names[instruction.id] > 1 else ""
            measure = instruction.scored(scoring)
            rules.append(Rule(instruction.id + again, (prompt.probe,), measure))
    return tuple(rules)


def category_of(prompt: Prompt, rules: Sequence[Rule]) -> str:
    """The group of a prompt's instructions, as "keywords", where they have but one."""
    groups = {str(rule.id).split(":")[0] for rule in rules}
    return prompt.category or (groups.pop() if len(groups) == 1 else SEVERAL)


def names_of(unscored: Counter[str]) -> tuple[str, ...]:
    """A note on instructions without a measure, if there are any."""
    if not unscored:
        return ()
    shown = ", ".join(f"{id} ({times})" for id, times in sorted(unscored.items()))
    return (f"No measure scores {shown}; these are left out.",)
