"""Compares Holdfast's checkers of IFEval's 25 instructions with lm-evaluation-harness's, verdict by
verdict, on the same thousand replies; arguments are drawn near the limit of what a reply satisfies.

    make integrations   # sets up the environment
    .venv-integrations/bin/python benchmarks/ifeval.py --out benchmarks/results/ifeval.json
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import string
import sysconfig
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ifeval_replies import LANGUAGES, replies_of
from stamp import measured_on

import holdfast
from holdfast.drift.sys_ifeval import measure_name
from holdfast.measures import build
from holdfast.seeds import seed_of

REPLIES = 1_000
FROM_MODEL = 200
BY_HAND = 200
MAX_EXAMPLES = 12  # disagreements in the record
MAX_SHOWN = 240  # characters of a reply there
SOURCES = {"from_model": FROM_MODEL, "by_hand": BY_HAND, "edited": REPLIES - FROM_MODEL - BY_HAND}
LANGUAGE_SEEDS = 5
RELATIONS = ("at least", "less than")
# draws the arguments of an instruction, near the limit of what a reply satisfies: for a reply of 20
# words, {"num_words": 19, "relation": "at least"}
Draw = Callable[[str, random.Random], dict[str, Any]]


# Arguments of each instruction


def near(count: int, rng: random.Random, least: int = 1) -> int:
    """A number close to a count: the same, one less, or one more."""
    return max(least, count + rng.randint(-1, 1))


def some_word(text: str, rng: random.Random) -> str:
    """A word of the reply, part of one, or an unrelated word."""
    words = [*re.findall(r"[^\W\d_]+", text), "garden", "coffee"]
    word = rng.choice(words)
    return rng.choice((word, word, word.upper(), word[: max(1, len(word) // 2)], "lantern"))


def draw_keyword_frequency(text: str, rng: random.Random) -> dict[str, Any]:
    word = some_word(text, rng)
    times = len(re.findall(re.escape(word), text, re.IGNORECASE))
    return {"keyword": word, "frequency": near(times, rng), "relation": rng.choice(RELATIONS)}


def draw_letter_frequency(text: str, rng: random.Random) -> dict[str, Any]:
    letter = rng.choice(string.ascii_letters)
    times = near(text.lower().count(letter.lower()), rng)
    return {"letter": letter, "let_frequency": times, "let_relation": rng.choice(RELATIONS)}


def draw_nth_paragraph(text: str, rng: random.Random) -> dict[str, Any]:
    blocks = [block.split() for block in text.split("\n\n")]
    number = rng.randrange(len(blocks))
    word = (blocks[number] or ["the"])[0].strip("'\".,?!").lower() or "the"
    blank = sum(not block for block in blocks)
    paragraphs = max(number + 1, near(len(blocks) - blank, rng))
    return {"num_paragraphs": paragraphs, "nth_paragraph": number + 1, "first_word": word}


def draw_ending(text: str, rng: random.Random) -> dict[str, Any]:
    words = text.strip().split()[-rng.randint(1, 4) :]
    phrase = " ".join(words) or "Any other questions?"
    phrases = (phrase, phrase, phrase.upper(), phrase + "!", phrase[:-1] or phrase)
    return {"end_phrase": rng.choice(phrases)}


def draw_language(text: str, rng: random.Random) -> dict[str, Any]:
    """Mostly the language of the reply, as far as `LANGUAGES` tells, else any language."""
    of_reply = next((code for code in LANGUAGES if LANGUAGES[code][:20] in text), "en")
    return {"language": of_reply if rng.random() < 0.7 else rng.choice(list(LANGUAGES))}


def draw_sections(text: str, rng: random.Random) -> dict[str, Any]:
    splitter = rng.choice(("SECTION", "Section"))
    return {"section_spliter": splitter, "num_sections": near(text.lower().count("section"), rng)}


def draw_prompt_to_repeat(text: str, rng: random.Random) -> dict[str, Any]:
    start = text.strip()[: rng.randint(5, 30)].strip() or "What now?"
    return {"prompt_to_repeat": rng.choice((start, start.upper(), start[1:] or start, start + "?"))}


def draw_paragraphs(text: str, rng: random.Random) -> dict[str, Any]:
    blocks = [block for block in text.split("***") if block.strip()]
    return {"num_paragraphs": near(len(blocks), rng)}


def draws_count(pattern: str, name: str) -> Draw:
    """Returns a function that draws one number, close to how often a pattern occurs."""
    return lambda text, rng: {name: near(len(re.findall(pattern, text, re.MULTILINE)), rng)}


def draws_relation(pattern: str, name: str, relation: str = "relation") -> Draw:
    """Returns a function that draws such a number, and whether it is a minimum."""
    draw_count = draws_count(pattern, name)
    return lambda text, rng: {**draw_count(text, rng), relation: rng.choice(RELATIONS)}


def draw_nothing(text: str, rng: random.Random) -> dict[str, Any]:
    return {}


ARGUMENTS: dict[str, Draw] = {
    "keywords:existence": lambda text, rng: {"keywords": [some_word(text, rng) for _ in range(2)]},
    "keywords:frequency": draw_keyword_frequency,
    "keywords:forbidden_words": lambda text, rng: {"forbidden_words": [some_word(text, rng)]},
    "keywords:letter_frequency": draw_letter_frequency,
    "language:response_language": draw_language,
    "length_constraints:number_sentences": draws_relation(r"[.?!]+(?:\s|$)", "num_sentences"),
    "length_constraints:number_paragraphs": draw_paragraphs,
    "length_constraints:number_words": draws_relation(r"\w+", "num_words"),
    "length_constraints:nth_paragraph_first_word": draw_nth_paragraph,
    "detectable_content:number_placeholders": draws_count(r"\[", "num_placeholders"),
    "detectable_content:postscript": lambda text, rng: {
        "postscript_marker": rng.choice(("P.S.", "P.P.S"))
    },
    "detectable_format:number_bullet_lists": draws_count(r"^\s*[-*]", "num_bullets"),
    "detectable_format:constrained_response": draw_nothing,
    "detectable_format:number_highlighted_sections": draws_count(r"\*\w", "num_highlights"),
    "detectable_format:multiple_sections": draw_sections,
    "detectable_format:json_format": draw_nothing,
    "detectable_format:title": draw_nothing,
    "combination:two_responses": draw_nothing,
    "combination:repeat_prompt": draw_prompt_to_repeat,
    "startend:end_checker": draw_ending,
    "change_case:capital_word_frequency": draws_relation(
        r"\b[A-Z]+\b", "capital_frequency", "capital_relation"
    ),
    "change_case:english_capital": draw_nothing,
    "change_case:english_lowercase": draw_nothing,
    "punctuation:no_comma": draw_nothing,
    "startend:quotation": draw_nothing,
}


# Verdicts


def harness_checkers() -> Any:
    """The harness's checkers; nltk's Punkt is taken from an installed package that includes it."""
    packaged = Path(sysconfig.get_paths()["purelib"], "llama_index/core/_static/nltk_cache")
    if packaged.is_dir():
        os.environ.setdefault("NLTK_DATA", str(packaged))
    from lm_eval.tasks.ifeval import utils

    return utils


def harness_verdicts(
    checkers: Any, id: str, arguments: dict[str, Any], reply: str
) -> dict[str, bool]:
    """The harness's verdicts, strict and loose; langdetect uses a seeded generator."""
    case = checkers.InputExample(0, [id], "", [arguments])
    return {
        "strict": checkers.test_instruction_following_strict(case, reply).follow_all_instructions,
        "loose": checkers.test_instruction_following_loose(case, reply).follow_all_instructions,
    }


def our_verdicts(id: str, arguments: dict[str, Any], reply: str) -> dict[str, Any]:
    """Holdfast's verdicts, strict and loose, and the reason of the strict one."""
    spec = {"name": measure_name(id), **arguments}
    strict = build(spec).score(reply)
    loose = build({"name": "loosely", "measure": spec}).score(reply)
    return {"strict": strict.value == 1, "loose": loose.value == 1, "reason": strict.reason}


def compare(id: str, replies: Sequence[str], checkers: Any) -> dict[str, Any]:
    """Both verdicts on every reply: how often they agree, and the shortest disagreements."""
    followed = 0
    agreed = {"strict": 0, "loose": 0}
    examples = []
    for number, reply in enumerate(replies):
        arguments = ARGUMENTS[id](reply, random.Random(seed_of(id, number)))
        verdicts = our_verdicts(id, arguments, reply)
        expected = harness_verdicts(checkers, id, arguments, reply)
        followed += expected["strict"]
        for scoring in agreed:
            agreed[scoring] += verdicts[scoring] == expected[scoring]
        shown = {example["reply"] for example in examples}
        if verdicts["strict"] != expected["strict"] and reply[:MAX_SHOWN] not in shown:
            examples.append(
                {
                    "reply": reply[:MAX_SHOWN],
                    "arguments": arguments,
                    "holdfast": verdicts["strict"],
                    "harness": expected["strict"],
                    "reason": verdicts["reason"],
                }
            )
    examples.sort(key=lambda example: len(example["reply"]))
    return {
        "compared": len(replies),
        "followed": followed,
        "agreed": agreed,
        "disagreements": examples[:MAX_EXAMPLES],
    }


def count_unsure_languages(replies: Sequence[str], seeds: int = LANGUAGE_SEEDS) -> int:
    """How many replies langdetect assigns different languages with different seeds."""
    import langdetect

    def detected(reply: str, seed: int) -> str:
        langdetect.DetectorFactory.seed = seed
        try:
            return str(langdetect.detect(reply))
        except langdetect.LangDetectException:
            return "none"

    languages = [{detected(reply, seed) for seed in range(seeds)} for reply in replies]
    langdetect.DetectorFactory.seed = 0
    return sum(len(of_reply) > 1 for of_reply in languages)


def measure(replies: Sequence[str]) -> dict[str, Any]:
    """Compares the verdicts on all instructions."""
    checkers = harness_checkers()
    import langdetect

    langdetect.DetectorFactory.seed = 0
    return {
        "harness": version("lm_eval"),
        "replies": len(replies),
        "unsure_languages": count_unsure_languages(replies),
        "instructions": {id: compare(id, replies, checkers) for id in ARGUMENTS},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    replies = replies_of(REPLIES, FROM_MODEL, BY_HAND)
    model = holdfast.load("default")
    record = {"measured_on": measured_on(model), **SOURCES, **measure(replies)}
    for id, counts in record["instructions"].items():
        print(f"{id}: {counts['agreed']} of {counts['compared']}, {counts['followed']} followed")
    if out:
        out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
