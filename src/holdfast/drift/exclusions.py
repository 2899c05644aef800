"""The instructions of S-IFEval that are left out of a run (docs/suites.md lists the reasons).

An instruction is asked about in every round with one and the same probe, in replies of at most 400
tokens. One that no such reply can keep, or none can break, would measure nothing; nor would two
that contradict each other.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.measures import Measure

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


@dataclass(frozen=True)
class Instruction:
    """One verifiable instruction of a row."""

    id: str  # as published, such as "punctuation:no_comma"
    measure: Measure  # scores a reply 0 or 1, strictly

    def argument(self, name: str) -> Any:
        """An argument of the instruction, None where it has none of the name."""
        return self.measure.arguments.get(name)


def reasons_against(instructions: Sequence[Instruction], probe: str) -> list[str | None]:
    """Why each instruction of a system prompt is left out; None for those that stay."""
    reasons = [reason_alone(instruction, probe) for instruction in instructions]
    for number, instruction in enumerate(instructions):
        if instruction in instructions[:number]:
            reasons[number] = reasons[number] or REPEATED
    staying = [number for number, reason in enumerate(reasons) if reason is None]
    for number in staying:
        others = [instructions[other] for other in staying if other != number]
        if any(contradict(instructions[number], other) for other in others):
            reasons[number] = CONTRADICTION
    return reasons


def reason_alone(instruction: Instruction, probe: str) -> str | None:
    """Why an instruction is left out whatever stands beside it."""
    if instruction.id == REPEAT:
        request = instruction.argument("prompt_to_repeat")
        return None if request.strip().lower() == probe.strip().lower() else ANOTHER_REQUEST
    relation, wanted = counted(instruction)
    match instruction.id, relation:
        case "length_constraints:number_words", "less than" if wanted > TOKENS:
            return NEVER_BROKEN
        case "length_constraints:number_words", "at least" if wanted > WORDS_AT_MOST:
            return TOO_LONG
        case "length_constraints:number_sentences", "at least" if (
            wanted * WORDS_OF_SENTENCE > WORDS_AT_MOST
        ):
            return TOO_LONG
    return None


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
