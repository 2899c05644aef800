"""Forms: the ways in which people write a rule, each a regular expression beside an example.

Rules of all kinds are made of the parts at the top. A test matches every form with its example.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


def one_of(*alternatives: str) -> str:
    """A part of a pattern: one of several words or patterns, the first that fits."""
    return f"(?:{'|'.join(alternatives)})"


def any_words(*alternatives: str) -> str:
    """A part of a pattern: any number of these words, each with a space behind it."""
    return f"(?:{one_of(*alternatives)} )*"


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
# what an act may end with that does not narrow it: "directly", "for any reason"
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
OBJECT = rf"(?:{CODE}|[\w./@:+-]+)"
OBJECTS = rf"{OBJECT}(?:(?:,? (?:or|and|nor)|,|/| /) ?{OBJECT})*"  # npm, `yarn` or pnpm


@dataclass(frozen=True)
class Form:
    """A way to write a rule.

    Args:
        example: a text that it matches.
    """

    example: str
    pattern: re.Pattern[str]


Forms = tuple[Form, ...]


def forms(ways: Mapping[str, str]) -> Forms:
    """Several ways to write one rule, in any case of letters: a pattern for each example."""
    return tuple(Form(example, re.compile(pattern, re.I)) for example, pattern in ways.items())


def whole_match(ways: Iterable[Form], text: str) -> re.Match[str] | None:
    """The match of the first form that is the whole text; None if there is none."""
    return next(filter(None, (way.pattern.fullmatch(text) for way in ways)), None)


def first_match(ways: Iterable[Form], text: str) -> re.Match[str] | None:
    """The match of the first form that occurs in a text; None if there is none."""
    return next(filter(None, (way.pattern.search(text) for way in ways)), None)


@dataclass(frozen=True)
class ForbiddenAct:
    """An act in the two ways in which it is forbidden: behind "never", and below "Do not:"."""

    behind_never: Forms
    below: Forms

    def match(self, clause: str, prohibits: bool) -> re.Match[str] | None:
        """The match of a clause that forbids the act.

        Args:
            prohibits: whether it stands below "Do not:".
        """
        return whole_match(self.behind_never + (self.below if prohibits else ()), clause)


def forbidden(
    acts: Mapping[str, str], never: str = f"{any_words('always', 'please')}{NEVER} "
) -> ForbiddenAct:
    """An act, by patterns of its wordings beside an example of each.

    Args:
        never: the pattern of what stands before it where it is forbidden.
    """
    behind = {f"never {example}": f"{never}{act}" for example, act in acts.items()}
    return ForbiddenAct(forms(behind), forms(acts))
