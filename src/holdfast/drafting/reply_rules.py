"""Rules about replies: their language, length and words."""

import re

from holdfast.drafting.clauses import ADVERBS, TAIL, after_never
from holdfast.drafting.drafts import Draft
from holdfast.drafting.rules_file import Statement
from holdfast.measures.arguments import NAMES

_REPLIES = (
    r"(?:(?:all |your |every |each )*(?:replies|responses|answers|reply|response|answer"
    r"|messages to the user))"
)


_REPLY = r"(?:reply|respond|answer|communicate|speak|talk|chat|converse)"


_LANGUAGE = "|".join(sorted((re.escape(n) for n in NAMES.values()), key=len, reverse=True))
_LANGUAGE = (
    rf"(?:simplified |traditional |brazilian |modern )?(?P<name>{_LANGUAGE})(?:[- ]simplified)?"
)


_CODE_OF = {name.lower(): code for code, name in NAMES.items()}


def reply_language(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Always answer in German."""
    to = r"(?: (?:to|with) (?:me|the user|users|customers|us))?"
    forms = (
        rf"{ADVERBS}{_REPLY}{to}(?: only)? (?:only )?in {_LANGUAGE}(?: only)?{TAIL}",
        rf"{_REPLIES} (?:must|should) (?:always )?be (?:written )?in {_LANGUAGE}{TAIL}",
        rf"{ADVERBS}(?:use|write|speak) {_LANGUAGE} (?:for|in) {_REPLIES}",
        rf"{ADVERBS}speak {_LANGUAGE}{to}(?: only)?",
        rf"{ADVERBS}(?:write|give|provide|keep) {_REPLIES}{to} in {_LANGUAGE}",
        rf"{_REPLIES}:? (?:always )?in {_LANGUAGE}",
    )
    match = next(filter(None, (re.fullmatch(form, clause, re.I) for form in forms)), None)
    if match is None or prohibits:
        return None
    spec = {"name": "language", "code": _CODE_OF[match["name"].lower()]}
    return [Draft("language", "requirement", spec)]


_NUMBERS = dict(zip("one two three four five six seven eight nine ten".split(), range(1, 11),
                    strict=True))  # fmt: skip


_NUMBER = rf"(?P<count>\d+|{'|'.join(_NUMBERS)})"


def reply_length(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Keep replies under 100 words."""
    how = (
        r"(?P<how>under|below|less than|fewer than|to|to at most|within|at most|up to|no"
        r" more than|a maximum of|at or under)"
    )
    forms = (
        rf"{ADVERBS}(?:keep|limit) {_REPLIES} {how} {_NUMBER} (?P<unit>words"
        r"|sentences)(?: or less| or fewer)?",
        rf"{ADVERBS}(?:{_REPLY}|write)(?: {_REPLIES})? (?:in|with|using) {how}"
        rf" {_NUMBER} (?P<unit>words|sentences)",
        rf"{_REPLIES} (?:must|should) (?:be|have|contain) {how} {_NUMBER}"
        r" (?P<unit>words|sentences)",
    )
    match = next(filter(None, (re.fullmatch(form, clause, re.I) for form in forms)), None)
    if match is None or prohibits:
        return None
    count = _NUMBERS.get(match["count"].lower()) or int(match["count"])
    count -= match["how"].lower() in ("under", "below", "less than", "fewer than")
    measure = {"words": "at_most_words", "sentences": "at_most_sentences"}[match["unit"].lower()]
    return [Draft("length", "requirement", {"name": measure, "count": count})] if count else None


def reply_emojis(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Never use emojis."""
    where = rf"(?: in (?:{_REPLIES}|(?:any )?(?:output|chat|conversations?)))?"
    rest = after_never(clause, "use|add|include|write", prohibits)
    fits = rest is not None and re.fullmatch(rf"(?:any )?emojis?{where}{TAIL}", rest, re.I)
    if not fits and not re.fullmatch(rf"no emojis?{where}", clause, re.I):
        return None
    spec = {"name": "regex", "regex": r"\A\P{Extended_Pictographic}*\Z"}
    return [Draft("tone", "prohibition", spec)]


_QUOTED = r"[\"“]([^\"”“]{1,80})[\"”]"


def reply_words(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """End every reply with "Ciao!"; never say "obviously"."""
    begins = re.fullmatch(
        rf"{ADVERBS}(?:start|begin|open|end|finish|close) {_REPLIES} with {_QUOTED}", clause, re.I
    )
    if begins and not prohibits:
        opens = re.match(rf"{ADVERBS}(?:start|begin|open)", clause, re.I)
        spec = {"name": "starts_with" if opens else "ends_with", "word": begins[1].rstrip(".,")}
        return [Draft("opening" if opens else "closing", "requirement", spec)]
    rest = after_never(clause, "say|use|write", prohibits)
    match = (
        re.fullmatch(
            rf"(?:the )?(?:words? |phrases? )({_QUOTED}(?:(?:,| or|, or) {_QUOTED})*){TAIL}"
            rf"|({_QUOTED}(?:(?:,| or|, or) {_QUOTED})*) (?:in {_REPLIES}|to (?:the )?users?)",
            rest,
            re.I,
        )
        if rest
        else None
    )
    if match is None:
        return None
    words = re.findall(_QUOTED, match[0])
    return [Draft("forbidden", "prohibition", {"name": "never_contains", "words": words})]
