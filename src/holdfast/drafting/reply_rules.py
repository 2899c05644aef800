"""Rules about the replies of a coding agent: their language, length and words."""

import re

from holdfast.drafting.clauses import ADVERBS, NEVER, TAIL
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import forms, whole_match
from holdfast.drafting.length_rules import NUMBER, number_value
from holdfast.drafting.rules_file import Statement
from holdfast.measures.arguments import NAMES

_REPLIES = (
    r"(?:(?:all |your |every |each )*"
    r"(?:replies|responses|answers|reply|response|answer|messages to the user))"
)
_TO_REPLY = r"(?:reply|respond|answer|communicate|speak|talk|chat|converse)"
_TO_THE_USER = r"(?: (?:to|with) (?:me|the user|users|customers|us))?"

_CODE_OF = {name.lower(): code for code, name in NAMES.items()}
_LANGUAGE_NAMES = "|".join(sorted(map(re.escape, NAMES.values()), key=len, reverse=True))
_LANGUAGE = (
    rf"(?:simplified |traditional |brazilian |modern )?(?P<name>{_LANGUAGE_NAMES})"
    "(?:[- ]simplified)?"
)
_IN_A_LANGUAGE = forms(
    rf"{ADVERBS}{_TO_REPLY}{_TO_THE_USER}(?: only)? (?:only )?in {_LANGUAGE}(?: only)?{TAIL}",
    rf"{_REPLIES} (?:must|should) (?:always )?be (?:written )?in {_LANGUAGE}{TAIL}",
    rf"{ADVERBS}(?:use|write|speak) {_LANGUAGE} (?:for|in) {_REPLIES}",
    rf"{ADVERBS}speak {_LANGUAGE}{_TO_THE_USER}(?: only)?",
    rf"{ADVERBS}(?:write|give|provide|keep) {_REPLIES}{_TO_THE_USER} in {_LANGUAGE}",
    rf"{_REPLIES}:? (?:always )?in {_LANGUAGE}",
)


def reply_language(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Always answer in German."""
    match = whole_match(_IN_A_LANGUAGE, clause)
    if match is None or prohibits:
        return None
    spec = {"name": "language", "code": _CODE_OF[match["name"].lower()]}
    return [Draft("language", "requirement", spec)]


_BELOW = r"(?P<below>under|below|less than|fewer than)"
_AT_MOST = (
    rf"(?:{_BELOW}|to(?: at most)?|within|at most|up to|no more than|a maximum of|at or under)"
)
_AMOUNT = rf"(?P<count>{NUMBER}) (?P<unit>word|sentence)s?(?: or less| or fewer)?"
_AT_MOST_SO_LONG = forms(
    rf"{ADVERBS}(?:keep|limit) {_REPLIES} {_AT_MOST} {_AMOUNT}",
    rf"{ADVERBS}(?:{_TO_REPLY}|write)(?: {_REPLIES})? (?:in|with|using) {_AT_MOST} {_AMOUNT}",
    rf"{_REPLIES} (?:must|should) (?:be|have|contain) {_AT_MOST} {_AMOUNT}",
)


def reply_length(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Keep replies under 100 words; reply in at most one sentence."""
    match = whole_match(_AT_MOST_SO_LONG, clause)
    if match is None or prohibits:
        return None
    most = number_value(match["count"]) - (1 if match["below"] else 0)
    if most < 1:
        return None
    spec = {"name": f"at_most_{match['unit'].lower()}s", "count": most}
    return [Draft("length", "requirement", spec)]


_IN_REPLIES = rf"(?: in (?:{_REPLIES}|(?:any )?(?:output|chat|conversations?)))?"
_NO_EMOJIS = forms(
    rf"{ADVERBS}{NEVER} (?:use|add|include|write) (?:any )?emojis?{_IN_REPLIES}{TAIL}",
    rf"no emojis?{_IN_REPLIES}",
)
# below "Do not"
_EMOJIS = forms(rf"(?:use|add|include|write) (?:any )?emojis?{_IN_REPLIES}{TAIL}")


def reply_emojis(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Never use emojis."""
    if not whole_match(_NO_EMOJIS + (_EMOJIS if prohibits else ()), clause):
        return None
    spec = {"name": "regex", "regex": r"\A\P{Extended_Pictographic}*\Z"}
    return [Draft("tone", "prohibition", spec)]


_QUOTED = r"[\"“][^\"”“]{1,80}[\"”]"
_QUOTATIONS = rf"(?P<quotations>{_QUOTED}(?:(?:,| or|, or) {_QUOTED})*)"
_EDGES = forms(
    rf"{ADVERBS}(?:(?P<opens>start|begin|open)|end|finish|close) {_REPLIES} with"
    rf" (?P<quotation>{_QUOTED})"
)
# "write" and "use" are also for files, so that they need the words "word" or "in replies"
_WORDS = rf"(?:the )?(?:words? |phrases? ){_QUOTATIONS}{TAIL}"
_FORBIDDEN = (
    rf"(?:say|use|write) {_WORDS}",
    rf"(?:say|use|write) {_QUOTATIONS} (?:in {_REPLIES}|to (?:me|(?:the )?users?))",
    rf"(?:say|reply with|respond with|answer with) (?:things like )?{_QUOTATIONS}{TAIL}",
)
_NEVER_SAID = forms(*(f"{ADVERBS}{NEVER} {words}" for words in _FORBIDDEN))
_SAID = forms(*_FORBIDDEN)  # below "Do not"


def reply_words(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """End every reply with "Ciao!"; never say "obviously"."""
    edge = whole_match(_EDGES, clause)
    if edge and not prohibits:
        word = _words_of(edge["quotation"])[0].rstrip(".,")
        if edge["opens"]:
            return [Draft("opening", "requirement", {"name": "starts_with", "word": word})]
        return [Draft("closing", "requirement", {"name": "ends_with", "word": word})]
    said = whole_match(_NEVER_SAID + (_SAID if prohibits else ()), clause)
    if said is None:
        return None
    words = [word.rstrip(".,!") for word in _words_of(said["quotations"])]
    return [Draft("forbidden", "prohibition", {"name": "never_contains", "words": words})]


def _words_of(quotations: str) -> list[str]:
    return re.findall(r"[\"“]([^\"”“]+)[\"”]", quotations)
