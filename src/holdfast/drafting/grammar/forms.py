"""Forms: the wordings of a rule, each a regular expression beside an example of it.

The parts at the top are common to rules of all kinds. A test matches every form with its example.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


def one_of(*alternatives: str) -> str:
    """A part of a pattern: one of these words or patterns, the first that fits."""
    return f"(?:{'|'.join(alternatives)})"


def any_words(*alternatives: str) -> str:
    """A part of a pattern: any number of these words, each with a space after it."""
    return f"(?:{one_of(*alternatives)} )*"


def literal(text: str) -> str:
    """A part of a pattern: a text as it is written, without the backslashes that `re.escape` puts
    before spaces and hyphens, so that a suite shows the pattern as plainly as it can.
    """
    return re.escape(text).replace(r"\-", "-").replace(r"\ ", " ")


def word_pattern(*alternatives: str) -> re.Pattern[str]:
    """A pattern that finds one of these words or patterns as a whole word, in any case."""
    return re.compile(rf"\b{one_of(*alternatives)}\b", re.I)


# "never", "you must not"
NEVER = rf"(?:{one_of(*'you we agents? claude assistants? it'.split())} )?" + one_of(
    "never(?: ever)?",
    one_of(
        *("do not", "don['’]t", "must not", "mustn['’]t", "must never", "should not"),
        *("shouldn['’]t", "should never", "may not", "cannot", "can['’]t"),
    )
    + "(?: ever)?",
)
# "always", "make sure to"
ADVERBS = any_words(
    *"always please also only then instead and".split(),
    *("you must", "must", "make sure to", "be sure to"),
)
# the end of an act, where it does not limit the act: "directly", "for any reason"
REASON = "|".join(
    (
        *("directly", "locally", "manually", "by hand", "here", "anywhere", "at all", "ever"),
        *("yourself", "under any circumstances?", "for any reason", "in the repo"),
        "in this (?:repo|repository|project|codebase|workspace|monorepo)",
    )
)
TAIL = rf"(?: (?:{REASON}))*"
CODE = r"`[^`]+`"
CODES = rf"{CODE}(?:(?:,? (?:then|and then|and|or|&&|&|\+|→|->)|,) ?{CODE})*"  # `a`, `b` and `c`
# Every emoji has one of these signs. ©, ™ and arrows have them only where they are shown as emojis.
EMOJI_SIGNS = r"\p{Emoji_Presentation}\uFE0F\u20E3"  # for the `regex` package
OBJECT = rf"(?:{CODE}|[\w./@:+-]+)"
OBJECTS = rf"{OBJECT}(?:(?:,? (?:or|and|nor)|,|/| /) ?{OBJECT})*"  # npm, `yarn` or pnpm


@dataclass(frozen=True)
class Form:
    """A wording of a rule.

    Args:
        example: a text that the pattern matches.
    """

    example: str
    pattern: re.Pattern[str]


Forms = tuple[Form, ...]


def form(example: str, pattern: str) -> Forms:
    """The form of a rule that has only one; as in `forms`, the case of letters does not matter."""
    return forms({example: pattern})


def forms(ways: Mapping[str, str]) -> Forms:
    """The forms of a rule, from a pattern for each example; the case of letters does not matter."""
    return tuple(Form(example, re.compile(pattern, re.I)) for example, pattern in ways.items())


def whole_match(ways: Iterable[Form], text: str) -> re.Match[str] | None:
    """The match of the first form that matches the whole text; None if no form does."""
    return next(filter(None, (way.pattern.fullmatch(text) for way in ways)), None)


def first_match(ways: Iterable[Form], text: str) -> re.Match[str] | None:
    """The match of the first form that occurs in the text; None if no form does."""
    return next(filter(None, (way.pattern.search(text) for way in ways)), None)
