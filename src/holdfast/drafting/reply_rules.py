"""Rules about the replies of a coding agent: their language, length and words."""

import re
from dataclasses import replace

from holdfast.drafting.bot_prompts import clauses_of_bot
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import (
    ADVERBS,
    NEVER,
    TAIL,
    any_words,
    forbidden,
    forms,
    one_of,
    whole_match,
)
from holdfast.drafting.language_rules import code_in_itself
from holdfast.drafting.length_rules import AMOUNT, LIMIT, at_most
from holdfast.drafting.reply_prohibitions import reply_prohibitions
from holdfast.drafting.rules_file import Statement
from holdfast.measures.arguments import NAMES

_REPLIES = (
    rf"(?:{any_words('all', 'your', 'every', 'each')}"
    r"(?:replies|responses|answers|reply|response|answer|messages to the user))"
)
_TO_REPLY = r"(?:reply|respond|answer|communicate|speak|talk|chat|converse)"
_TO_THE_USER = r"(?: (?:to|with) (?:me|the user|users|customers|us))?"

_CODE_OF = {name.lower(): code for code, name in NAMES.items()}
_LONGEST_FIRST = sorted(map(re.escape, NAMES.values()), key=len, reverse=True)
_LANGUAGE = (
    rf"(?:simplified |traditional |brazilian |modern )?(?P<name>{'|'.join(_LONGEST_FIRST)})"
    "(?:[- ]simplified)?"
)
_IN_A_LANGUAGE = forms(
    {
        "Always respond to the user in German": (
            rf"{ADVERBS}{_TO_REPLY}{_TO_THE_USER}(?: only)? (?:only )?in {_LANGUAGE}"
            rf"(?: only)?{TAIL}"
        ),
        "All replies must be written in German": (
            rf"{_REPLIES} (?:must|should) (?:always )?be (?:written )?in {_LANGUAGE}{TAIL}"
        ),
        "Use German for all replies": (
            rf"{ADVERBS}(?:use|write|speak) {_LANGUAGE} (?:for|in) {_REPLIES}"
        ),
        "Speak German with the user": rf"{ADVERBS}speak {_LANGUAGE}{_TO_THE_USER}(?: only)?",
        "Write replies in German": (
            rf"{ADVERBS}(?:write|give|provide|keep) {_REPLIES}{_TO_THE_USER} in {_LANGUAGE}"
        ),
        "Replies: always in German": rf"{_REPLIES}:? (?:always )?in {_LANGUAGE}",
    }
)


def reply_language(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Always answer in German."""
    if prohibits:
        return None
    match = whole_match(_IN_A_LANGUAGE, clause)
    code = _CODE_OF[match["name"].lower()] if match else code_in_itself(clause)
    if code is None:
        return None
    spec = {"name": "language", "code": code}
    return [Draft("language", "requirement", spec)]


_AT_MOST = one_of(
    r"(?P<below>under|below|less than|fewer than)",
    *("to(?: at most| a maximum of)?", "at", "within", "at most", "up to", "no more than"),
    *("a maximum of", "at or under"),
)
_LENGTH = rf"{_AT_MOST} {AMOUNT}(?: or less| or fewer)?"
_AT_MOST_SO_LONG = forms(
    {
        "Limit each reply to 50 words": rf"{ADVERBS}{LIMIT} {_REPLIES} {_LENGTH}",
        "Reply in at most one sentence": (
            rf"{ADVERBS}(?:{_TO_REPLY}|write)(?: {_REPLIES})? (?:in|with|using) {_LENGTH}"
        ),
        "Replies must have fewer than 100 words": (
            rf"{_REPLIES} (?:must|should) (?:be|have|contain|be limited|be restricted) {_LENGTH}"
        ),
    }
)


def reply_length(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Keep replies under 100 words; reply in at most one sentence."""
    match = whole_match(_AT_MOST_SO_LONG, clause)
    if match is None or prohibits:
        return None
    spec = at_most(match, is_below=bool(match["below"]))
    return [Draft("length", "requirement", spec)] if spec else None


_IN_REPLIES = rf"(?: in (?:{_REPLIES}|(?:any )?(?:output|chat|conversations?)))?"
_EMOJIS = forbidden(
    {
        "use any emojis in replies": (
            rf"(?:use|add|include|write) (?:any )?emojis?{_IN_REPLIES}{TAIL}"
        )
    },
    f"{ADVERBS}{NEVER} ",
)
_NO_EMOJIS = forms({"No emojis in chat": rf"no emojis?{_IN_REPLIES}"})


def reply_emojis(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Never use emojis."""
    if not (_EMOJIS.match(clause, prohibits) or whole_match(_NO_EMOJIS, clause)):
        return None
    spec = {"name": "regex", "regex": r"\A[^\p{Emoji_Presentation}\uFE0F\u20E3]*\Z"}
    return [Draft("tone", "prohibition", spec)]


_QUOTED = r"[\"“][^\"”“]{1,80}[\"”]"
_QUOTATIONS = rf"(?P<quotations>{_QUOTED}(?:(?:,| or|, or) {_QUOTED})*)"
_EDGES = forms(
    {
        'End every reply with "Ciao!"': (
            rf"{ADVERBS}(?:(?P<opens>start|begin|open)|end|finish|close) {_REPLIES} with"
            rf" (?P<quotation>{_QUOTED})"
        )
    }
)
# "write" and "use" are also for files, so that they need the words "word" or "in replies"
_SAYING = forbidden(
    {
        'use the words "simply" or "just"': (
            rf"(?:say|use|write) (?:the )?(?:words? |phrases? ){_QUOTATIONS}{TAIL}"
        ),
        'write "simply" in replies': (
            rf"(?:say|use|write) {_QUOTATIONS} (?:in {_REPLIES}|to (?:me|(?:the )?users?))"
        ),
        'reply with "as an AI"': (
            r"(?:say|reply with|respond with|answer with) (?:things like )?"
            rf"{_QUOTATIONS}{TAIL}"
        ),
    },
    f"{ADVERBS}{NEVER} ",
)


def reply_words(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """End every reply with "Ciao!"; never say "obviously"."""
    edge = whole_match(_EDGES, clause)
    if edge and not prohibits:
        word = _words_of(edge["quotation"])[0].rstrip(".,")
        if edge["opens"]:
            return [Draft("opening", "requirement", {"name": "starts_with", "word": word})]
        return [Draft("closing", "requirement", {"name": "ends_with", "word": word})]
    said = _SAYING.match(clause, prohibits)
    if said is None:
        return None
    words = [word.rstrip(".,!") for word in _words_of(said["quotations"])]
    return [Draft("forbidden", "prohibition", {"name": "never_contains", "words": words})]


def _words_of(quotations: str) -> list[str]:
    return re.findall(r"[\"“]([^\"”“]+)[\"”]", quotations)


_NAMES_REPLIES = re.compile(
    r"\b(?:repl(?:y|ies|ying)|respon(?:d|ding|se|ses)|answer(?:s|ing)?|communicat(?:e|ing)"
    r"|speak(?:ing)?|talk(?:ing)?|convers(?:e|ing))\b",
    re.I,
)


def reply_never(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Never reply in French; never start a reply with "Certainly"."""
    text = f"never {clause[:1].lower()}{clause[1:]}" if prohibits else clause
    if not _NAMES_REPLIES.search(text):
        return None
    said = list(clauses_of_bot(replace(statement, label="", text=text)))
    if len(said) != 1 or said[0].limits or said[0].is_soft:
        return None
    return reply_prohibitions(said[0]) or None
