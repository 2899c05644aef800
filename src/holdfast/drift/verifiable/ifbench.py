"""IFBench's test set (Pyatkin et al. 2025, arXiv:2507.02833): `IFBench_test.jsonl`.

JSON lines with `key`, `prompt`, `instruction_id_list` and `kwargs` (where what is not given is
null). The prompt is a request with its instructions before or behind it, each in published words:
by these it is found, and becomes the system prompt; the request is the probe. The code is
Apache-2.0, the data ODC-BY.
"""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.drift.cases import Suite
from holdfast.drift.verifiable.instructions import (
    FileRow,
    Instruction,
    read_instructions,
    read_jsonl,
)
from holdfast.drift.verifiable.prompts import InstructedPrompt, suite_of

# The words of each instruction that is measured; "..." stands for its arguments.
WORDINGS = {
    "count:word_count_range": "The response must contain between ... and ... words.",
    "count:unique_word_count": "Use at least ... unique words in the response.",
    "count:conjunctions": "Use at least ... different coordinating conjunctions in the response.",
    "count:person_names": "Mention at least ... different person names in the response, from this "
    "list of person names: ... Jonathan .",
    "count:numbers": "Include exactly ... numbers in the response.",
    "count:pronouns": "The response should include at least ... pronouns.",
    "count:punctuation": "Use every standard punctuation mark at least once, ... interrobang (?!).",
    "count:keywords_multiple": "Include keyword ... once in your response, ... seven times in your "
    "response.",
    "count:words_japanese": "Every ... of your response must be in Japanese.",
    "ratio:sentence_type": "Maintain a 2:1 ratio of declarative to interrogative sentences....",
    "ratio:sentence_balance": "Ensure that the ratio of sentence types ... is balanced.",
    "ratio:sentence_words": "Respond with three sentences, ... but using all different words.",
    "words:alphabet": "Each word... must start with the next letter of the alphabet, ... after "
    "'Z'.",
    "words:vowel": "Write a paragraph using words that contain only three types of vowels.",
    "words:consonants": "Ensure each word... has at least one consonant cluster (...).",
    "words:palindrome": "Include at least 10 single-word palindromes, ... characters long.",
    "words:prime_lengths": "Use only words with lengths that are prime numbers.",
    "words:repeats": "The response should not repeat any word more than ... times.",
    "words:last_first": "In your response... the last word of each sentence must become the first "
    "word of the next sentence.",
    "words:paragraph_last_first": "Each paragraph... must end with the same word it started with, "
    "separate paragraphs with a newline.",
    "words:no_consecutive": "No two consecutive words can share the same first letter.",
    "words:words_position": "The second word in your response ... should be the word ...",
    "sentence:alliteration_increment": "Each sentence must have a longer sequence of consecutive "
    "alliterative words than the previous one.",
    "sentence:keyword": "The response must include keyword ... in the ... sentence.",
    "sentence:increment": "Each sentence... must contain exactly ... more words than the previous "
    "one.",
    "format:parentheses": "Nest parentheses (...) at least 5 levels deep.",
    "format:quotes": "Include quotes within quotes within quotes, ... single quotes.",
    "format:options": "Answer with one of the following options: ...",
    "format:newline": "Write each word on a new line.",
    "format:emoji": "Please use an emoji at the end of every sentence.",
    "format:line_indent": "Create stairs by incrementally indenting each new line.",
    "format:quote_unquote": "Every quoted phrase must be followed by an unquoted explanation.",
    "format:list": "Answer with a list of items, instead of bullet points use ...",
    "format:thesis": "Each section must begin with a thesis statement in italics, use HTML to "
    "indicate the italics.",
    "format:sub-bullets": "Your response must include bullet points denoted by * ... for each "
    "bullet point.",
    "format:no_bullets_bullets": "Your answer must contain at least two sentences ending in a "
    "period ... denoted by *.",
    "format:title_case": "Write the entire response in title case (...).",
    "format:output_template": "Use this exact template for your response: ... [outlook]",
    "format:no_whitespace": "The output should not contain any whitespace.",
}
# What no measure of ours scores: the request is the instruction, or its checker needs a tagger, a
# dictionary of sounds, a list of stop words, or replies of many hundred words; published versions
# of `ratio:overlap` count different things.
BEYOND = (
    *(f"custom:{name}" for name in ("multiples", "mcq_count_length", "reverse_newline")),
    *(f"custom:{name}" for name in ("word_reverse", "character_reverse", "sentence_alphabet")),
    *(f"custom:{name}" for name in ("european_capitals_sort", "csv_city", "csv_quotes")),
    *(f"custom:{name}" for name in ("csv_special_character", "date_format_list")),
    *("repeat:repeat_change", "repeat:repeat_simple", "repeat:repeat_span"),
    *("words:start_verb", "words:odd_even_syllables", "words:keywords_specific_position"),
    *("ratio:stop_words", "ratio:overlap"),
)


def load_ifbench(where: str, scoring: str = "strict") -> Suite:
    """Loads IFBench's test set from JSON lines, scored `strict`, or `loose` as Zhou et al. 2023
    define it (and IFBench reports).
    """
    path = Path(where)
    prompts = [read_prompt(row) for row in read_jsonl(path)]
    about = (
        "IFBench: the instructions of its prompts are the system prompt, what is left of a prompt"
        " is the probe; the conversation starters are Holdfast's own."
    )
    return suite_of("ifbench", prompts, scoring, path, about)


def read_prompt(row: FileRow) -> InstructedPrompt:
    """One row: what its prompt says of each instruction, and what is left of the prompt."""
    given = (row.fields.get("instruction_id_list"), row.fields.get("kwargs"))
    request = row.text("prompt")
    wordings: list[str] = []
    instructions: list[Instruction | str] = []
    for item in read_instructions(*given, row.where, "ifbench", BEYOND):
        wording = "" if isinstance(item, str) else wording_in(request, item)
        rest = request.replace(wording, "", 1).strip() if wording else ""
        if rest:
            request = rest
            wordings.append(wording.strip())
            instructions.append(item)
        else:
            instructions.append(item if isinstance(item, str) else f"{item.id} in other words")
    return InstructedPrompt(
        id=row.key(),
        where=row.where,
        system_prompt=" ".join(wordings),
        probe=request,
        instructions=tuple(instructions),
    )


def wording_in(prompt: str, instruction: Instruction) -> str:
    """The words by which a prompt gives an instruction; '' where they are not found."""
    match = pattern_of(instruction).search(prompt)
    return match.group() if match else ""


def pattern_of(instruction: Instruction) -> re.Pattern[str]:
    """A pattern for an instruction's words, with its arguments where they stand at the end."""
    parts = [re.escape(part) for part in WORDINGS[instruction.id].split("...")]
    if not parts[-1]:
        parts[-1] = ending_of(instruction)
    return re.compile(r"[^\n]*?".join(part.replace(r"\ ", r"\s+") for part in parts), re.IGNORECASE)


def ending_of(instruction: Instruction) -> str:
    """The last words of an instruction that ends with an argument."""
    last = next(filter(None, map(instruction.argument, ("options", "sep", "keyword"))), "")
    return rf"{re.escape(str(last))}\.?(?:\s+Do not give any explanation\.)?"
