"""Rows of every format as one kind of prompt, and prompts as a suite.

Some instructions are left out (docs/suites.md lists the reasons). An instruction is asked about in
every round with one and the same probe, in replies of at most 400 tokens. One that no such reply
can keep, or none can break, would measure nothing; nor would two that contradict each other.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.drift.cases import Case, Rule, Suite, generic_starters
from holdfast.drift.verifiable.instructions import SCORINGS, Instruction
from holdfast.errors import UnknownName, UsageError

WORDS_AT_MOST = 250  # that a reply of 400 tokens surely holds, at three tokens for two words
WORDS_OF_SENTENCE = 10
TOKENS = 400  # `Settings().sampling.max_new_tokens`; no reply has more words

TOO_LONG = "asking for more than 400 tokens hold"
NEVER_BROKEN = "that no reply of 400 tokens breaks"
ANOTHER_REQUEST = "repeating another request than the probe"
REPEATED = "given twice"
CONTRADICTION = "contradicting another instruction"
REASONS = (TOO_LONG, NEVER_BROKEN, ANOTHER_REQUEST, REPEATED, CONTRADICTION)

REPEAT = "combination:repeat_prompt"
LANGUAGE = "language:response_language"
CAPITALS, LOWER_CASE = "change_case:english_capital", "change_case:english_lowercase"
BARE = ("detectable_format:json_format", "startend:quotation")  # what may begin a reply is fixed
PROHIBITIONS = ("punctuation:no_comma", "keywords:forbidden_words")
CAPITAL_WORDS = "change_case:capital_word_frequency"
COUNTED = {  # the arguments that say how many
    "keywords:frequency": ("relation", "frequency"),
    "keywords:letter_frequency": ("let_relation", "let_frequency"),
    "length_constraints:number_words": ("relation", "num_words"),
    "length_constraints:number_sentences": ("relation", "num_sentences"),
    CAPITAL_WORDS: ("capital_relation", "capital_frequency"),
}


def reasons_against(
    instructions: Sequence[Instruction], probe: str, of_probe: Sequence[Instruction] = ()
) -> list[str | None]:
    """Why each instruction of a system prompt is left out; None for those that stay. The probe may
    itself give further instructions (`of_probe`).
    """
    reasons = [reason_alone(instruction, probe) for instruction in instructions]
    for number, instruction in enumerate(instructions):
        if instruction in instructions[:number]:
            reasons[number] = reasons[number] or REPEATED
    staying = [number for number, reason in enumerate(reasons) if reason is None]
    for number in staying:
        others = [instructions[other] for other in staying if other != number]
        if any(contradict(instructions[number], other) for other in (*others, *of_probe)):
            reasons[number] = CONTRADICTION
    return reasons


def reason_alone(instruction: Instruction, probe: str) -> str | None:
    """Why an instruction is left out whatever stands beside it."""
    if instruction.id == REPEAT:
        request = instruction.argument("prompt_to_repeat")
        return None if request.strip().lower() == probe.strip().lower() else ANOTHER_REQUEST
    relation, wanted = counted(instruction)
    if instruction.id == "length_constraints:number_words" and relation == "less than":
        return NEVER_BROKEN if wanted > TOKENS else None
    return TOO_LONG if least_words(instruction) > WORDS_AT_MOST else None


def least_words(instruction: Instruction) -> int:
    """How many words an instruction demands, as far as it says so in numbers."""
    relation, wanted = counted(instruction)
    match instruction.id:
        case "length_constraints:number_words" if relation == "at least":
            return wanted
        case "length_constraints:number_sentences" if relation == "at least":
            return WORDS_OF_SENTENCE * wanted
        case "count:word_count_range":
            return int(instruction.argument("min_words"))
        case "count:unique_word_count":
            return int(instruction.argument("N"))
        case "sentence:keyword":
            return WORDS_OF_SENTENCE * int(instruction.argument("N"))
    return 0


def counted(instruction: Instruction) -> tuple[str, int]:
    """The relation and the number of an instruction that counts; ("", 0) of another."""
    if instruction.id not in COUNTED:
        return "", 0
    relation, number = COUNTED[instruction.id]
    return instruction.argument(relation), instruction.argument(number)


def contradict(first: Instruction, second: Instruction) -> bool:
    """Whether no reply can keep two instructions."""
    return any(
        clash(here, there)
        for clash in (in_ranges, in_languages, in_cases, in_beginnings, in_demanded_words)
        for here, there in ((first, second), (second, first))
    )


def in_ranges(least: Instruction, most: Instruction) -> bool:
    """At least so many, and less than fewer, of the same."""
    if least.id != most.id or any(
        least.argument(name) != most.argument(name) for name in ("keyword", "letter")
    ):
        return False
    (relation, number), (other, limit) = counted(least), counted(most)
    return (relation, other) == ("at least", "less than") and limit <= number


def in_languages(first: Instruction, second: Instruction) -> bool:
    """Another language than English, and English letters or request; or two languages."""
    if first.id != LANGUAGE:
        return False
    if second.id == LANGUAGE:
        return bool(first.argument("language") != second.argument("language"))
    return first.argument("language") != "en" and second.id in (CAPITALS, LOWER_CASE, REPEAT)


def in_cases(whole: Instruction, part: Instruction) -> bool:
    """Letters of one case only, and something that is in the other."""
    if whole.id not in (CAPITALS, LOWER_CASE):
        return False
    if part.id == CAPITAL_WORDS:
        relation, _ = counted(part)
        return relation == ("less than" if whole.id == CAPITALS else "at least")
    other = str.islower if whole.id == CAPITALS else str.isupper
    return {whole.id, part.id} == {CAPITALS, LOWER_CASE} or any(
        map(other, demanded_as_written(part))
    )


def in_beginnings(repeat: Instruction, bare: Instruction) -> bool:
    """A reply that begins with the request, and with a quotation mark or as JSON does."""
    if repeat.id != REPEAT or bare.id not in BARE:
        return False
    return not repeat.argument("prompt_to_repeat").strip().startswith('"')


def in_demanded_words(demand: Instruction, limit: Instruction) -> bool:
    """Words that one instruction demands break the other, whatever else the reply holds."""
    words, (relation, _) = demanded(demand), counted(limit)
    if not words or not (limit.id in PROHIBITIONS or relation == "less than"):
        return False
    return limit.measure.score(words).value == 0.0


def demanded(instruction: Instruction) -> str:
    """The words that an instruction demands, in one text; case does not count for them."""
    texts: list[str] = list(instruction.argument("keywords") or ())
    relation, times = counted(instruction)
    if instruction.id == "keywords:frequency" and relation == "at least":
        texts += itertools.repeat(instruction.argument("keyword"), times)
    names = ("end_phrase", "first_word", "prompt_to_repeat")
    texts += [text for text in map(instruction.argument, names) if text]
    return " ".join(texts)


def demanded_as_written(instruction: Instruction) -> str:
    """The words that an instruction demands in just these letters."""
    if instruction.id == "detectable_format:constrained_response":
        return "My answer is"
    return instruction.argument("section_spliter") or ""


SEVERAL = "several"  # the category of a prompt with instructions of more than one group


@dataclass(frozen=True)
class InstructedPrompt:
    """One row of a published file."""

    id: str  # unlike all others of the file
    where: str  # its file and line, for messages
    system_prompt: str
    probe: str  # the request, which every round asks
    instructions: tuple[Instruction | str, ...]  # one that no measure scores is only its id
    of_probe: tuple[Instruction, ...] = ()  # further ones, which the probe gives
    category: str | None = None  # of the case; None: the group of its instructions


def suite_of(
    name: str, prompts: Sequence[InstructedPrompt], scoring: str, path: Path, *about: str
) -> Suite:
    """The suite of a file: a case per prompt, with a rule per instruction that stays; `about` is
    what a reader of the results has to know, before what was left out.
    """
    if scoring not in SCORINGS:
        raise UnknownName("scoring", scoring, SCORINGS)
    places: dict[str, str] = {}  # a conversation is known by its case
    left_out: Counter[str] = Counter()
    unscored: Counter[str] = Counter()
    cases = []
    for prompt in prompts:
        if prompt.id in places:
            raise UsageError(
                f"{prompt.where}: the key is {prompt.id!r}, taken by {places[prompt.id]}; give"
                " every row its own."
            )
        places[prompt.id] = prompt.where
        if rules := rules_of(prompt, scoring, left_out, unscored):
            groups = {str(rule.id).split(":")[0] for rule in rules}
            category = prompt.category or (groups.pop() if len(groups) == 1 else SEVERAL)
            cases.append(Case(prompt.id, category, prompt.system_prompt, rules=rules))
    if not cases:
        raise UsageError(
            f"{path} holds {len(prompts)} prompts, and none with an instruction that can be"
            " measured; give the published file."
        )
    total = sum(len(prompt.instructions) for prompt in prompts)
    kept = sum(len(case.rules) for case in cases)
    why = ", ".join(f"{left_out[reason]} {reason}" for reason in REASONS if left_out[reason])
    notes = [
        *about,
        f"{kept} of {total} instructions and {len(cases)} of {len(prompts)} prompts are asked about"
        f"{f'; left out: {why}' if why else ''}.",
    ]
    if unscored:
        shown = ", ".join(f"{id} ({times})" for id, times in sorted(unscored.items()))
        notes.append(f"No measure scores {shown}; these are left out.")
    how = "strictly" if scoring == "strict" else "loosely: the best of eight readings"
    notes.append(f"Each instruction scores 0 or 1, {how}.")
    suite_name = name if scoring == "strict" else f"{name}-{scoring}"
    return Suite(suite_name, tuple(cases), generic_starters(), tuple(notes))


def rules_of(
    prompt: InstructedPrompt, scoring: str, left_out: Counter[str], unscored: Counter[str]
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
