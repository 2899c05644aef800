"""Finds the phrases that a system prompt and its rules ask a speaker to say.

    phrases_in_prompt('Sign as "Tony".')  ->  ["Tony"]

The phrases of a prompt are the texts in quotation marks, after a colon, or after a word such as
"answer" or "with". The phrases of a rule are the texts that its measure asks for, or finds with a
regular expression. If such a phrase is half of a sentence or more, the whole sentence is a phrase.
"""

import re
from collections.abc import Iterator, Sequence

from holdfast.measures.measure_specs import Measure, build, inner_specs
from holdfast.measures.patterns import find
from holdfast.measures.repeated_turns import units_of
from holdfast.measures.text import fold, sentences_of

# texts in the quotation marks of several languages: "Tony", „Tony“, «Tony»
_QUOTED = re.compile(
    r"""
    "([^"\n]+)" | “([^”\n]+)” | „([^“”\n]+)[“”] | «([^»\n]+)» | 「([^」\n]+)」 | 『([^』\n]+)』
    | `([^`\n]+)` | ‘([^’\n]+)’ | (?<!\w)'([^\n]+?)'(?!\w)
    """,
    re.VERBOSE,
)
_AFTER_COLON = re.compile(r":\s+([^\n]+)")  # "End with: Ride safe!"
# "say Ride safe!"
_AFTER_WORD = re.compile(
    r"\b(?:say|saying|answer|reply|respond|write|sign|add|with|words|phrase)"
    r"\s+([^\n.!?。！？]+[.!?。！？]?)",
    re.IGNORECASE,
)
# arguments of measures whose values are phrases that a reply must have
_PHRASE_ARGUMENTS = (
    "phrase",
    "word",
    "words",
    "open",
    "close",
    "keys",
    "keyword",
    "keywords",
    "end_phrase",
    "prompt_to_repeat",
    "postscript_marker",
)
# measures whose phrases a reply must not have
_FORBIDDING = (
    "never",
    "never_contains",
    "released_never_contains",
    "ifeval_keywords_forbidden_words",
)


def phrases_in_prompt(prompt: str) -> list[str]:
    """Returns the phrases that a system prompt tells its speaker to say."""
    phrases = []
    for pattern in (_QUOTED, _AFTER_COLON, _AFTER_WORD):
        for match in pattern.finditer(prompt):
            phrases.append(next(group for group in match.groups() if group is not None))
    return phrases


def phrases_of_measure(measure: Measure, text: str) -> list[str]:
    """Returns the phrases in a text that a measure asks for."""
    phrases = list(dict.fromkeys(_required_phrases(measure, text)))
    return [*phrases, *_sentences_around(phrases, text)]


def _required_phrases(measure: Measure, text: str) -> Iterator[str]:
    """Yields the phrases that a measure asks for: its texts, or what its expression finds."""
    if measure.name in _FORBIDDING:
        return
    for spec in inner_specs(measure.arguments):
        yield from _required_phrases(build(spec), text)
    if measure.name == "regex":
        if match := find(measure.arguments["regex"], text, measure.arguments["flags"]):
            yield match[0]
        return
    for name in _PHRASE_ARGUMENTS:
        value = measure.arguments.get(name)
        # a string under `words` is the name of a shipped list
        values = [value] if isinstance(value, str) and name != "words" else value
        if isinstance(values, list | tuple):
            yield from (item for item in values if isinstance(item, str))


def _sentences_around(phrases: Sequence[str], text: str) -> Iterator[str]:
    """Yields the sentences of which a phrase makes up half or more."""
    for sentence in sentences_of(text):
        length = len(units_of(sentence))
        for phrase in phrases:
            if fold(phrase) in fold(sentence) and 2 * len(units_of(phrase)) >= length:
                yield sentence
                break
