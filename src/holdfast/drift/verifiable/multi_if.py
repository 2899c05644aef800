"""Multi-IF (He et al. 2024, arXiv:2410.15553): IFEval's requests in eight languages, to which two
further turns add instructions; a CSV file, or JSON lines whose cells are JSON in a text (CC BY-NC).

The turns that add instructions are the system prompt; the first turn is the probe, and what it asks
for itself is no rule of the prompt. So a run tells how long the added instructions hold, not how
well a model follows the published three turns.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.common.validation import shortened
from holdfast.drift.cases import Suite
from holdfast.drift.verifiable.instructions import (
    FileRow,
    Instruction,
    parse,
    read_csv,
    read_instructions,
    read_jsonl,
    text_in,
)
from holdfast.drift.verifiable.prompts import InstructedPrompt, suite_of
from holdfast.errors import UsageError

TURNS = ("turn_1", "turn_2", "turn_3")
WORDS = ("length_constraints:number_words", "length_constraints:nth_paragraph_first_word")
SENTENCES = ("length_constraints:number_sentences",)
COMMAS = ("punctuation:no_comma",)
# What our checkers do not count: words without spaces between them, other stops, other commas.
UNCOUNTED = {
    "Chinese": (*WORDS, *SENTENCES, *COMMAS),
    "Japanese": (*WORDS, *SENTENCES, *COMMAS),
    "Thai": (*WORDS, *SENTENCES),
    "Hindi": SENTENCES,
}


def load_multi_if(where: str, scoring: str = "strict") -> Suite:
    """Loads Multi-IF from a CSV file (its name ends in .csv or .csv.gz) or JSON lines, scored
    `strict`, or `loose` as Zhou et al. 2023 define it.
    """
    path = Path(where)
    rows = read_csv(path) if ".csv" in path.suffixes[-2:] else read_jsonl(path)
    prompts = [read_prompt(row) for row in rows]
    about = (
        "Multi-IF: the instructions that its second and third turn add are the system prompt, its"
        " first turn is the probe; the conversation starters are Holdfast's own, in English."
    )
    return suite_of("multi-if", prompts, scoring, path, about)


def read_prompt(row: FileRow) -> InstructedPrompt:
    """One row: what the later turns add, behind the request of the first."""
    probe, *added = [text for turn in TURNS if (text := said_in(row, turn))]
    language = row.text("language")
    first, last = instructions_of(row, TURNS[0]), instructions_of(row, TURNS[len(added)])
    return InstructedPrompt(
        id=row.key(),
        where=row.where,
        system_prompt="\n".join(added),
        probe=probe,
        instructions=tuple(beyond(last, first, language)),
        of_probe=tuple(first),
        category=language,
    )


def said_in(row: FileRow, turn: str) -> str:
    """The user's message in a turn; '' where a later one is missing."""
    name = f"{turn}_prompt"
    if turn != TURNS[0] and row.fields.get(name) in ("", "None", None):
        return ""
    message = parse(row.text(name), f"{row.where}, {name}")
    if not isinstance(message, dict):
        raise UsageError(
            f"{row.where}: {name!r} is {shortened(message)}, not a message; give the published"
            " file."
        )
    return text_in(message, "content", f"{row.where}, {name}")


def instructions_of(row: FileRow, turn: str) -> list[Instruction]:
    """All instructions up to a turn."""
    ids, arguments = (
        parse(row.text(f"{turn}_{name}"), f"{row.where}, {turn}_{name}")
        for name in ("instruction_id_list", "kwargs")
    )
    where = f"{row.where}, {turn}_kwargs"
    given = [parse(item, where) if isinstance(item, str) else item for item in listed(arguments)]
    return [
        item
        for item in read_instructions(ids, given, row.where, "ifeval")
        if isinstance(item, Instruction)
    ]


def listed(value: Any) -> list[Any]:
    """A list as it is, and nothing of anything else, which the next reader refuses."""
    return value if isinstance(value, list) else []


def beyond(
    last: list[Instruction], first: list[Instruction], language: str
) -> list[Instruction | str]:
    """The instructions that later turns add; as its name, one that nobody counts in a language."""
    known = list(first)
    added: list[Instruction | str] = []
    for instruction in last:
        if instruction in known:
            known.remove(instruction)
        elif instruction.id in UNCOUNTED.get(language, ()):
            added.append(f"{instruction.id} in {language}")
        else:
            added.append(instruction)
    return added
