"""The types of the tables of words: how people word a rule, and how they order against it.

A row of a table has the words for one measure, such as `at_most_words`:

    words.wordings({"count": 40})        ->  wordings that "Keep it under 41 words." has
    words.orders_against({"count": 40})  ->  cues that "Explain it in detail." has

All patterns are searched in sentences as `plain_text.plain_sentence` writes them: in lower case,
without contractions and fixed phrases.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

Arguments = Mapping[str, Any]
Patterns = tuple[str, ...]  # a text has to match all of them


@dataclass(frozen=True)
class Wording:
    """A way to word the rule that a measure decides.

    Args:
        patterns: the sentence matches these.
        forbidden: a clause of the sentence that forbids something matches these.
        asks: whether the sentence asks for something, and so may have no negation.
        named: a pattern that the sentence matches, or else refers to with a word such as "that":
            "There is a shop called Velox. Never mention that name." "" for none.
    """

    patterns: Patterns = ()
    forbidden: Patterns = ()
    asks: bool = False
    named: str = ""


@dataclass(frozen=True)
class OrderAboutIt:
    """An order about a thing that is named only before it: "The changelog is wrong. Fix it."

    Args:
        order: a pattern of the order: "fix it".
        thing: a pattern of the thing, which the order's sentence or the one before names.
    """

    order: str
    thing: str


@dataclass(frozen=True)
class Cues:
    """The words of orders against a measure.

    Args:
        forbidden: the patterns of each way to ask for a thing that the measure forbids; such a
            request negates nothing besides.
        forbidden_it: orders for such a thing that call it "it".
        forbidden_lasts: whether a request for a forbidden thing holds beyond the next turn.
        demanded: a pattern of the thing that the measure demands, as a request to leave it out
            breaks the rule too; "" for none.
        demanded_lasts: whether a request to leave out a demanded thing holds beyond the next turn.
    """

    forbidden: tuple[Patterns, ...] = ()
    forbidden_it: tuple[OrderAboutIt, ...] = ()
    forbidden_lasts: bool = False
    demanded: str = ""
    demanded_lasts: bool = True


WordingsOf = Callable[[Arguments], Sequence[Wording]]
CuesOf = Callable[[Arguments], Cues]
T = TypeVar("T")


def always(value: T) -> Callable[[Arguments], T]:
    """Returns a function for words that do not depend on the measure's arguments."""
    return lambda arguments: value


_NO_WORDINGS: WordingsOf = always(())
_NO_CUES: CuesOf = always(Cues())


@dataclass(frozen=True)
class MeasureWords:
    """The words for the rule of a measure; each function takes the measure's arguments.

    Args:
        wordings: returns the wordings of the rule.
        orders_against: returns the cues of orders to break it.
        orders_for: returns the cues of orders for what the measure looks for; these break the rule
            of `never` with this measure.
    """

    wordings: WordingsOf = _NO_WORDINGS
    orders_against: CuesOf = _NO_CUES
    orders_for: CuesOf = _NO_CUES


def asking_for(*patterns: str) -> tuple[Wording]:
    """Returns the wording of a rule that asks for something, and forbids nothing."""
    return (Wording(patterns, asks=True),)


# says that a rule is about replies: "*reply* in German", "every *message* ends with ..."
IN_REPLIES = (
    r"\b(?:repl(?:y|ies)|answers?|respon(?:ds?|ses?)|messages?|output|return|write|speak)\b"
)
# makes a sentence a rule: "tests *must* pass", "*every* reply has an emoji"
OBLIGATION = (
    r"\b(?:must|have to|has to|should|needs? to|always|every|each|any|anything|never|no|nothing|not"
    r"|first|only|requires?|required|run|runs)\b"
)
