"""Sentences that state what a measure demands, in words that the rule's text need not share.

"40 words is the most that an answer may have" states `at_most_words: 40`, whatever the text of the
rule. `_STATED` has for each measure the patterns that one sentence has to match, from its
arguments, and whether it has to forbid something. docs/causes.md has the same in prose.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from holdfast.measures.breaking_orders import CHANGES, LANGUAGES, file_pattern, words_pattern
from holdfast.measures.clause_words import is_negated
from holdfast.measures.command_words import command_cues, runner_words
from holdfast.measures.measure_specs import Measure, build
from holdfast.measures.number_words import NUMBER_WORDS
from holdfast.measures.orders import Passage, Sentence, is_no_rule, passage_of, read_sentences

Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class Statement:
    """How a sentence states a measure.

    Args:
        patterns: it matches all of these.
        forbidden: patterns that one of its clauses matches which forbids something.
        asks: whether it may have no negation.
        named: a pattern that may be in the sentence before instead, as in "There is a shop called
            Velox. Never mention that name."
    """

    patterns: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    asks: bool = False
    named: str = ""


def stated_in(text: str, measure: Measure) -> Passage | None:
    """The last sentence of a text that states what a measure demands."""
    statements = _statements_of(measure)
    sentences = read_sentences(text) if statements else ()
    for number in range(len(sentences) - 1, -1, -1):
        sentence = sentences[number]
        before = sentences[number - 1].plain if number else ""
        is_stated = any(_states(sentence, before, statement) for statement in statements)
        if is_stated and not (is_no_rule(sentence.plain) or _HAPPENED.search(sentence.plain)):
            return passage_of(sentence)
    return None


@lru_cache(maxsize=256)
def _statements_of(measure: Measure) -> tuple[Statement, ...]:
    """How sentences state a measure, made once."""
    if measure.name not in _STATED:
        return ()
    return tuple(_STATED[measure.name](measure.arguments))


def _states(sentence: Sentence, before: str, statement: Statement) -> bool:
    plain = sentence.plain
    if not all(re.search(pattern, plain) for pattern in statement.patterns):
        return False
    if statement.asks and is_negated(plain):
        return False
    if statement.forbidden and not any(
        all(re.search(pattern, clause) for pattern in statement.forbidden)
        for clause in filter(_forbids, sentence.parts)
    ):
        return False
    if not statement.named or re.search(statement.named, plain):
        return True
    return bool(_REFERS.search(plain) and re.search(statement.named, before))


def _forbids(clause: str) -> bool:
    """Whether a clause forbids something, and does not only deny it."""
    return bool(_FORBIDS.search(clause)) and not _DENIES.search(clause)


_FORBIDS = re.compile(
    r"\b(?:never|not|no|nothing|none|neither|nor|avoid|forbidden|prohibited|banned|disallowed"
    r"|untouched|off[ -]limits|leave\b.*\balone)\b"
)
_DENIES = re.compile(
    r"^(?:i|it|they|he|she|there|this|that) (?:\w+ )?(?:do|does|is|are|can|will) not\b"
    r"|\bnot (?:have|work|exist|need|know|see|think|find|mind|matter)\b"
    r"|\bno (?:need|problem|idea|longer)\b"
)
# of a sentence that says what happened or failed, and orders nothing
_HAPPENED = re.compile(
    r"\b(?:did|was|were|could|had) not\b|\b(?:has|have) not (?!to\b)|\bnot (?:yet|found|installed"
    r"|available|working)\b|\bfailed\b|\balready\b"
)
_REFERS = re.compile(r"\b(?:it|them|that (?:name|word|shop|one)|this|these|those)\b")
_ORDERED = (
    r"\b(?:must|have to|has to|should|needs? to|always|every|each|any|anything|never|no|nothing|not"
    r"|first|only|requires?|required|run|runs)\b"
)
_MOST = (
    r"\b(?:most|maximum|max|limit(?:ed)?|enough|within|or (?:fewer|less)|keep|stay|short|long"
    r"|below|under|cap(?:ped)?|exceed|beyond|above|(?:more|longer) than)\b|[≤<]"
)
_REPLIES = r"\b(?:repl(?:y|ies)|answers?|respon(?:ds?|ses?)|messages?|output|return|write|speak)\b"
_SAYS = (
    r"\b(?:say|saying|said|mention\w*|name|use|using|used|call|called|talk|discuss|write|refer|tell"
    r"|reveal|disclose|give|word|words|phrase|include|contain)\b"
)


def _number(number: int) -> str:
    words = [word for word, value in NUMBER_WORDS.items() if value == number]
    return "|".join([str(number), *map(re.escape, words)])


def _most(arguments: Arguments, unit: str) -> list[Statement]:
    count = int(arguments.get("count", 1))
    counted = rf"\b(?:{_number(count)})[ -](?:\w+ )?{unit}s?\b"
    below = rf"\b(?:below|under|fewer than|less than|at most) (?:{_number(count + 1)}) {unit}s?\b"
    not_least = r"^(?!.*\b(?:at least|minimum|not at most)\b)"
    return [Statement((counted, _MOST, not_least)), Statement((below, not_least))]


def _forbidden_words(arguments: Arguments) -> list[Statement]:
    words = rf"(?<!\w)(?:{words_pattern(arguments['words'])})(?!\w)"
    return [Statement(forbidden=(_SAYS,), named=words)]


def _demanded_words(arguments: Arguments) -> list[Statement]:
    words = [words_pattern(word) for word in _listed(arguments["words"])]
    calls = r"\b(?:call|address|say|use|include|mention|name|refer|add|put|have)\b"
    return [Statement((*words, calls), asks=True)]


def _listed(words: Any) -> list[str]:
    return [words] if isinstance(words, str) else [*words]


def _ends(arguments: Arguments) -> list[Statement]:
    ends = r"\b(?:end\w*|clos\w+|finish\w*|last|final\w*|conclud\w*|sign\w*|bottom)\b"
    return [Statement((words_pattern(arguments["word"]), ends), asks=True)]


def _starts(arguments: Arguments) -> list[Statement]:
    starts = r"\b(?:start\w*|beg[iu]n\w*|open\w*|first|greet\w*|prefix\w*|preface\w*|lead)\b"
    return [Statement((words_pattern(arguments["word"]), starts), asks=True)]


def _language(arguments: Arguments) -> list[Statement]:
    names = LANGUAGES.get(str(arguments["code"])[:2], "(?!)")
    answers = rf"{_REPLIES}|\bonly\b|\balways\b|\blanguage\b|\btalk\b|\bstick\b"
    return [Statement((rf"\b(?:{names})\b", answers), asks=True)]


def _command(arguments: Arguments) -> list[Statement]:
    return [Statement(forbidden=patterns) for patterns in command_cues(arguments["command"])]


def _order_of_commands(arguments: Arguments) -> list[Statement]:
    first = runner_words(arguments["first"])
    if not first:
        return []
    links = r"\b(?:before|first|precedes?|pass(?:es|ed)?|green|then)\b"
    statements: list[Statement] = []
    for patterns in command_cues(arguments["then"]):
        lacking = rf"\b(?:without|before|until|unless)\b.*{first}"
        never = rf"\b(?:never|not|no|nothing)\b.*(?:{patterns[0]}).*{lacking}"
        statements.append(Statement((first, links, _ORDERED, *patterns), asks=True))
        statements.append(Statement((never, *patterns)))
    return statements


def _file(arguments: Arguments) -> list[Statement]:
    path = file_pattern(arguments["path"])
    touches = (
        rf"{CHANGES}|\b(?:avoid|touch\w*|edit\w*|chang\w+|alone|limits|hands|modif\w+|untouched)\b"
    )
    return [Statement(forbidden=(path, touches))] if path else []


def _asked(*patterns: str) -> Statement:
    return Statement(patterns, asks=True)


def _never(arguments: Arguments) -> list[Statement]:
    """The statement of another measure's rule, in a clause that forbids it."""
    asked = _statements_of(build(arguments["measure"]))
    return [Statement(item.patterns, forbidden=item.patterns[-1:]) for item in asked if item.asks]


_CLOSES = r"\b(?:end|ends|close|closes|finish|finishes|last|conclude|ask back|always ask|every)\b"

_STATED: Mapping[str, Callable[[Arguments], list[Statement]]] = {
    "at_most_words": lambda arguments: _most(arguments, "word"),
    "at_most_sentences": lambda arguments: _most(arguments, "sentence"),
    "one_sentence": lambda _: [_asked(r"\b(?:1|a single) sentence\b", rf"{_REPLIES}|\bonly\b")],
    "never_contains": _forbidden_words,
    "never": _never,
    "contains": _demanded_words,
    "ends_with": _ends,
    "starts_with": _starts,
    "asks_back": lambda _: [_asked(r"\bquestions?\b", _CLOSES)],
    "json_object": lambda _: [_asked(r"\bjson\b", rf"{_REPLIES}|\bobject\b|\bexpects?\b")],
    "language": _language,
    "emoji": lambda _: [_asked(r"\bemojis?\b", rf"{_ORDERED}|\buse\b|\badd\b|\bput\b")],
    "lower_case": lambda _: [_asked(r"\b(?:lower ?case|small letters)\b")],
    "upper_case": lambda _: [_asked(r"\b(?:upper ?case|capital letters|all caps)\b")],
    "command_not_run": _command,
    "runs_before": _order_of_commands,
    "file_not_touched": _file,
}
