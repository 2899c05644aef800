"""The patterns by which a reply to a multiple-choice question names one of the options' letters.

For example, for the letters "ABCD":

    "The answer is B."       has the pattern `stated`
    "B would be my pick."    has `verdict`
    "a fire (C)"             has `marked`
    "not A, rather B"        has `negated`
"""

import re
from dataclasses import dataclass
from functools import cache

# marks around a letter: "(", "**", ")", ".**"
_OPENING_MARKS = r"[\"'“‘(*]{0,3}"
_PLAIN_OPENING_MARKS = r"[\"'(*]{0,3}"
_CLOSING_MARKS = r"[)\"'”’*.]{0,3}"
# the end of a clause: ")." or the end of a line
_CLAUSE_END = r"(?=[)\"'”’*\]]{0,3}\s{0,2}(?:[.,;:!?\n]|$))"
_CLAUSE_START = r"(?:^|[.!?,;:\n])\s*"
# words before a letter that stands alone: "easily B", "ok B"
_WORDS_BEFORE = "|".join(
    r"is was it's its that's be say ok okay sure yes hmm \w{2,14}ly".split()  # and any adverb
)
# words after a letter that stands alone: "B is", "B because"
_WORDS_AFTER = "|".join(
    "is because since as for it would please obviously definitely though without".split()
)


@dataclass(frozen=True)
class ChoicePatterns:
    """The patterns for one set of letters; each that names an option has the group "letter".

    Opening and marked letters may be lower case.

    Args:
        negated: "not A", "rather than B".
        refused: "A) is wrong", "A and B) are incorrect", "B cannot be the answer".
        answer: "A:" after a "Q:", which is not the option.
        clause: an option, and the words that are said about it.
        opening: a letter that opens a line: "B) a boat".
        stated: "the answer is B", "I would go with (b)".
        verdict: "A is the answer", "B would be my pick".
        marked: "fire (C)", "**B**".
        first: a letter that opens the reply.
        several: "A, B or C".
        alone: a capital at the start of a clause, or after a word such as "definitely".
    """

    negated: re.Pattern[str]
    refused: re.Pattern[str]
    answer: re.Pattern[str]
    clause: re.Pattern[str]
    opening: re.Pattern[str]
    stated: re.Pattern[str]
    verdict: re.Pattern[str]
    marked: re.Pattern[str]
    first: re.Pattern[str]
    several: re.Pattern[str]
    alone: re.Pattern[str]


@cache
def patterns_for(among: str) -> ChoicePatterns:
    """Builds the patterns for the letters of the options, given as capitals."""
    upper = f"[{among}]"
    lower = f"[{among.lower()}]"
    either = f"[{among}{among.lower()}]"
    return ChoicePatterns(
        negated=re.compile(
            r"\b(?:not|never|neither|nor|so is|instead of|rather than|than|isn['’]t)\s+"
            rf"(?:option\s+|answer\s+)?{_PLAIN_OPENING_MARKS}(?:{upper})\b[)\"'*]{{0,3}}",
            re.IGNORECASE,
        ),
        refused=re.compile(
            # one option or several
            rf"(?<!\w){either}{_CLOSING_MARKS}"
            rf"(?:(?:,|,? and|,? or)\s+{_PLAIN_OPENING_MARKS}{either}[)\"'”’*]{{0,3}})*\s+"
            r"(?:"
            # "is clearly wrong"
            r"(?:is|are|was|were|seems?|looks?)\s+(?:\w+ly\s+)?(?:wrong|incorrect|false|untrue)"
            # "cannot be"
            r"|(?:can(?:not|['’]t)|could(?: not|n['’]t))\s+be"
            # "is not the right"
            r"|(?:is|are|was|were)(?:\s+not|n['’]t)\s+(?:(?:the|a|an|my)\s+)?"
            r"(?:right|correct|true|answer|choice|option|it)"
            r")\b[^.,;:!?\n]*",
            re.IGNORECASE,
        ),
        answer=re.compile(rf"\AA:\s+(?=(?:[AI]|Yes|No)\b|[\"'(*]*{upper}\))"),
        clause=re.compile(
            rf"(?:^|[.!?;\n]\s*){_PLAIN_OPENING_MARKS}(?P<letter>{either})\)(?P<words>[^.!?;\n]*)"
        ),
        opening=re.compile(rf"^{_OPENING_MARKS}(?P<letter>{either})[):]", re.MULTILINE),
        stated=re.compile(
            r"(?i:\b(?:answer|choice|option|choose|chose|pick|select|go with|going with|say|reply"
            r"|respond)\b)"
            r"(?i:\s+(?:is|was|would be|will be|with|option|letter|the|to|that))*\s*[:=]?\s*"
            # a capital that is no part of a word, or a small letter at the end of the clause
            rf"{_OPENING_MARKS}(?P<letter>{upper}(?![\w'’]|-\w)|{lower}{_CLAUSE_END})"
        ),
        verdict=re.compile(
            rf"{_CLAUSE_START}{_OPENING_MARKS}(?P<letter>{upper}){_CLOSING_MARKS}\s+"
            r"(?i:is|was|would be|seems|looks)\s+"
            r"(?i:(?:the|my|our|clearly|definitely|most|only|best|right|correct)\s+){0,4}"
            r"(?i:answer|choice|option|pick|one|correct|right|best)\b"
        ),
        marked=re.compile(rf"(?<!\w)(?P<letter>{either})(?=\)|\*\*|[\"'”’](?!\w))"),
        first=re.compile(
            rf"[\W_]{{0,20}}(?P<letter>{either})"
            r"(?:\s*[).:\]!?*\"”]|,|\s*[–—]|\s*-(?!\w)|\s*$|\n)"  # and what ends it
        ),
        several=re.compile(
            rf"[\W_]{{0,20}}(?:{upper})[).]?"
            rf"(?: ?(?:,|/|\bor\b|\band\b|&| ) ?(?:or |and )?(?:{upper})\b[).]?)+"
        ),
        alone=re.compile(
            rf"(?:^|[.!?,;:\n(]\s*|(?i:\b(?:{_WORDS_BEFORE})\s+)){_OPENING_MARKS}"
            rf"(?P<letter>{upper})(?:{_CLAUSE_END}|(?=\s+(?:{_WORDS_AFTER})\b))"
        ),
    )
