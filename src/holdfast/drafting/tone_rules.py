"""Rules of bots about the manner of writing: emojis, exclamation marks, questions, capitals."""

import re
from dataclasses import dataclass

from holdfast.drafting.bot_prompts import LEAD, REPLY, Clause
from holdfast.drafting.drafts import Draft
from holdfast.drift.rule_kinds import Polarity

_NO = (
    r"(?:\b(?:no|never(?: use| add| include| write)?|without(?: any| using)?|avoid(?: using)?"
    r"|(?:not|n't) (?:use|include|add|write|put)|do without|nada de|pas de|keine|niente|sin)"
    r"(?: (?:any|the))?)"
)
_ITEMS = r"(?:(?:[\w-]+(?: \w+)?|⟪\d+⟫),? (?:or |and |nor )?(?:no )?){0,3}"  # others of a list
_BOUNDARY = rf"(?= *(?:$|[,:.]| (?:in|at all|ever|or|and|nor|because|when|please|as)\b|in {REPLY}))"


@dataclass(frozen=True)
class _Tone:
    """The words that ask for a manner of writing, and the pattern of the replies that have it."""

    words: re.Pattern[str]
    polarity: Polarity
    regex: str


def _tone(words: str, polarity: Polarity, regex: str) -> _Tone:
    return _Tone(re.compile(words, re.I), polarity, regex)


_TONES = (
    _tone(
        rf"{_NO} (?:or )?emojis?{_BOUNDARY}",
        "prohibition",
        r"\A\P{Extended_Pictographic}*\Z",
    ),
    _tone(
        rf"(?:\b(?:at least )?(?:one|an|un) ?'?emojis? (?:in(?:to)?|per|in each of"
        rf"|to) (?:{REPLY}|ogni"
        r" \w+|chaque \w+|cada \w+)|\bno message without an emoji|\balmeno un'emoji in ogni"
        rf"|{LEAD}(?:include|use|add|put) (?:at least )?(?:one|an) emoji (?:in|into|to) {REPLY}"
        rf"|\bemoji in each of {REPLY})",
        "requirement",
        r"\p{Extended_Pictographic}",
    ),
    _tone(
        rf"{_NO} {_ITEMS}(?:exclamation (?:marks?|points?)|signos de exclamación"
        r"|points? d'exclamation|Ausrufezeichen)|\bthere is no exclamation mark in"
        r"|^exclamation marks?,.{0,80}\bleave them out",
        "prohibition",
        r"(?s)\A(?!.*[!！¡]).*\S",
    ),
    _tone(
        rf"\b{_NO} contractions\b|\bin place of contractions\b|\bdon't use contractions"
        r"|\bfull forms only\b|\b(?:you )?write in full\b|\bwrite ⟪\d+⟫(?: and ⟪\d+⟫)?, not ⟪",
        "prohibition",
        r"(?si)\A(?!.*\b(?:\w+n['’]t|\w+['’](?:re|ve|ll|m|d)|(?:it|that|what|there|here|he|she|who"
        r"|how|where|let)['’]s)\b).*\S",
    ),
    _tone(
        rf"{LEAD}(?:write|type|reply|respond|answer|speak|use)(?: (?:everything|only|always|all"
        r"|entirely|exclusively))*(?: in)?(?: all)?(?: only)? lower ?-?case(?: letters)?(?= only|$"
        r"|[,.:])"
        r"|\bthere are no capital letters in your (?:messages|replies)"
        r"|\bnever use (?:capital|upper-?case) letters|\blower ?case only\b",
        "requirement",
        r"(?s)\A(?!.*\p{Lu}).*\p{Ll}",
    ),
    _tone(
        rf"{LEAD}(?:write|type|reply|respond|answer|speak)(?: (?:everything|only|always|all"
        r"|entirely|exclusively))*(?: in)?(?: all)? (?:upper ?-?case|capitals|caps|capital letters)"
        r"(?: letters)?(?= only|$|[,.:])",
        "requirement",
        r"(?s)\A(?!.*\p{Ll}).*\p{Lu}",
    ),
    _tone(
        r"\b(?:never|not|n't) ask(?: the \w+)?(?: any)?(?: follow-up| further)? questions?"
        rf"(?= *(?:$|[,:.]|in {REPLY}|back|ever))|^no (?:follow-up )?questions$",
        "prohibition",
        r"(?s)\A(?!.*[?？]).*\S",
    ),
)
_QUESTION_LAST = re.compile(
    rf"\b(?:end|finish|close|conclude)s?(?: {REPLY})?(?: always)? with (?:(?:a|one|exactly|single"
    r"|short|relevant|open-ended|follow-?up|thought-provoking|clear|engaging|simple|friendly|brief"
    r"|,) ?)*question\b|\btermina siempre con una pregunta"
    rf"|\ba question[\w ]{{0,20}} is how it ends|\bterminez {REPLY}? ?par une question"
    rf"|\balways ask (?:a|one) (?:follow-?up )?question at the end of {REPLY}",
    re.I,
)


def tone_rules(clause: Clause) -> list[Draft]:
    """Emojis, exclamation marks, contractions, capitals and questions."""
    drafts = []
    for tone in _TONES:
        if tone.words.search(clause.text):
            spec = {"name": "regex", "regex": tone.regex}
            drafts.append(Draft("tone", tone.polarity, spec))
    last = _QUESTION_LAST.search(clause.text)
    if last and not re.search(r"\b(?:never|not|n't|avoid)\b", clause.text[: last.start()], re.I):
        drafts.append(Draft("closing", "requirement", {"name": "asks_back"}))
    return drafts
