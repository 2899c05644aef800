"""Rules about the words with which every reply begins or ends.

For example:

    Start every reply with "Ahoy!". -> starts_with(word="Ahoy")
    End every reply with "Bye!".    -> ends_with(word="Bye")
"""

import re
from typing import NamedTuple

from holdfast.drafting.drafts import Draft, MeasureSpec, measure
from holdfast.drafting.grammar.forms import Forms, first_match, forms, one_of
from holdfast.drafting.reply_rules.bot_prompts import (
    PLACEHOLDER,
    REPLY,
    SOLE_QUOTE,
    BotClause,
)

# Words of rules in English, and then in German, French, Spanish and Italian.

# "with the exact words: "
_KIND_OF_TEXT = one_of(
    *"the exactly these this exact following words? phrase sentence line greeting".split(),
    *("sign-?off", "text", "prefix", "tag", "les mots", "la frase", "den Worten", ":"),
)
_BY = one_of("with", "by saying", "by", "as", "mit", "par", "con", "por")
_WITH = f"{_BY}(?: {_KIND_OF_TEXT})*:? ?"
_END = one_of(
    *"end ends ending close closes finish finishes finishing conclude concludes".split(),
    *("sign off", "sign", "signs off", "say goodbye"),
    *("endet", "beende", "schließe"),
    *("terminez", "finis", "finissez"),
    *("termine", "termina", "terminas", "termina siempre"),
    "concludi",
)
_BEGIN = one_of(
    *"start starts starting begin begins beginning open opens opening".split(),
    *("beginnt", "beginne"),
    *("commencez", "commence"),
    *("empieza", "empiezas", "comienza"),
    "inizia",
)
# "each reply" in "end each reply with"
_WHOLE_REPLY = one_of(
    *(REPLY, "it", "everything"),
    *(r"jeden? \w+", "immer"),
    *(r"chaque \w+", "toujours"),
    *(r"cada \w+", "siempre"),
    r"ogni \w+",
)
_WHOLE = f"(?: {_WHOLE_REPLY})?"
_MUST = one_of("must", "should", "always", "will", "has to", "have to")
_FIRST = r"first (?:words?|sentence|line|thing)"
_LAST = r"last(?: (?:words?|sentence|line|thing))?"
_OPENINGS = forms(
    {
        "⟪0⟫ is always your first sentence": (
            rf"{SOLE_QUOTE},? (?:is|are) (?:always )?(?:your|the|every) {_FIRST}(?=$|,| of)"
        ),
        "start every reply with the exact words ⟪0⟫": (
            rf"\b{_BEGIN}{_WHOLE}(?: always)? {_WITH}{SOLE_QUOTE}"
        ),
        "the first word of every reply is ⟪0⟫": (
            rf"\bfirst (?:words?|sentence|line) of {REPLY}[^:⟪]{{0,30}}(?:is|are|:)"
            rf"(?: always)? ?{SOLE_QUOTE}"
        ),
        "put ⟪0⟫ in front of every reply": (
            rf"\b(?:put|write|add) {SOLE_QUOTE}"
            rf" (?:in front of|before|at the (?:start|beginning) of) {REPLY}"
        ),
        "every reply must begin with ⟪0⟫": rf"\b{REPLY} (?:{_MUST} )*{_BEGIN} {_WITH}{SOLE_QUOTE}",
        "⟪0⟫ opens every reply": rf"{SOLE_QUOTE} (?:opens|begins|starts) {REPLY}",
        "prefix each message with ⟪0⟫": rf"\bprefix {REPLY} with {SOLE_QUOTE}",
    }
)
_CLOSINGS = forms(
    {
        "⟪0⟫ is always your last word": (
            rf"{SOLE_QUOTE},? (?:is |are )?(?:always )?(?:your|the) {_LAST}(?=$|,| of)"
        ),
        "⟪0⟫ closes every reply": rf"{SOLE_QUOTE} (?:closes|ends|finishes|concludes) {REPLY}",
        "it ends with ⟪0⟫": rf"\bit ends with {SOLE_QUOTE}",
        "end each reply with ⟪0⟫": rf"\b{_END}{_WHOLE}(?: always)? {_WITH}{SOLE_QUOTE}",
        "the last thing you say is ⟪0⟫": (
            r"\blast (?:\w+ )?(?:words?|sentence|line|thing)"
            rf"(?: you say| that you say| of it| of {REPLY})?(?: is| are|:)(?: always)?"
            rf" ?{SOLE_QUOTE}"
        ),
        "it has ⟪0⟫ as the last line of the reply": (
            rf"\b(?:has|have) {SOLE_QUOTE} as (?:the|its|their) {_LAST} of {REPLY}"
        ),
        "every reply must end with ⟪0⟫": rf"\b{REPLY} (?:{_MUST} )*{_END} {_WITH}{SOLE_QUOTE}",
        "put ⟪0⟫ at the very end of every reply": (
            rf"\b(?:put|write|add|append) {SOLE_QUOTE} (?:at|to) the (?:very )?end of {REPLY}"
        ),
        "sign every message as ⟪0⟫": rf"\bsigns? (?:it|them|{REPLY}) (?:with|as) {SOLE_QUOTE}",
    }
)
# what happens once and is not a reply: "end the conversation with"
_OCCASION = one_of(
    *("conversation", "chat session", "session", "dialog(?:ue)?", "first", "interaction"),
    *("(?:the|each|every|a) calls?", "story", "email", "e-mail", r"intro\w*", "summary"),
    *("section", "poem", "article", "post"),
)
_ONCE = re.compile(rf"\b{_OCCASION}\b", re.I)
_REPLY_NAMED = re.compile(rf"\b{REPLY}\b|nachricht|réponse|respuesta", re.I)
# the rule is about parts of a reply: "every line of a reply starts with"
_NOT_OF_THE_REPLY = re.compile(
    r"\b(?:without|lines?|sentences?|paragraphs?|bullets?|items?|steps?)\b[^,]*$", re.I
)
# another subject than the agent or its replies: "the source must" in "the source must start with"
_OF_ANOTHER_SUBJECT = re.compile(
    r"\b(?:the|an?|each|every|all|any) (?!(?:\w+ )*(?:assistant|agent|bot|chatbot|model|AI)\b)"
    rf"(?:[\w'-]+ ){{1,4}}(?:{_MUST} )+$",
    re.I,
)
# "Hello, how can I help?"
_GREETING = re.compile(r"(?:hi|hello|hey|greetings|good (?:morning|day))\b|[^?]*\?\W*$", re.I)
# "[Support]" and "-- Ann", whose signs measures of words ignore
_SIGN_AT_EDGE = re.compile(r"^\W*[\[\]{}<>#*~|-]|[\[\]{}<>#*~|]\W*$")


class _Edge(NamedTuple):
    """The words that every reply begins or ends with, and whether the clause speaks of a reply."""

    quote: str
    names_reply: bool


def edge_rules(clause: BotClause) -> list[Draft]:
    """Reads "begin every reply with ⟪0⟫" and "end every reply with ⟪1⟫"."""
    opening = _quotation_at_edge(_OPENINGS, clause)
    closing = _quotation_at_edge(_CLOSINGS, clause)
    drafts = []
    # "Start with "Hello, how can I help?"" is about the first reply only
    if opening and (opening.names_reply or not _GREETING.match(opening.quote)):
        drafts.append(Draft("opening", "requirement", _edge_spec(opening.quote, opens=True)))
    if closing:
        drafts.append(Draft("closing", "requirement", _edge_spec(closing.quote, opens=False)))
    return drafts


def _quotation_at_edge(wordings: Forms, clause: BotClause) -> _Edge | None:
    """The quotation that every reply begins or ends with; None if the clause asks for none, or not
    for every reply.
    """
    match = first_match(wordings, clause.text)
    if match is None:
        return None
    before = clause.text[: match.start()]
    of_another = _OF_ANOTHER_SUBJECT.search(before) and not _REPLY_NAMED.search(before)
    if of_another or _NOT_OF_THE_REPLY.search(before):
        return None
    (quote,) = clause.quotations_in(match["quote"])
    is_tag = re.fullmatch(r"\[\w+\]", quote) is not None  # "[DRAFT]" is meant as it is written
    if PLACEHOLDER.search(quote) and not is_tag:
        return None
    # the "first" of "the first line of every reply" is no occasion
    if _ONCE.search(re.sub(rf"\b{_FIRST}", "", clause.text)):
        return None
    return _Edge(quote, _REPLY_NAMED.search(match[0]) is not None)


def _edge_spec(quote: str, *, opens: bool) -> MeasureSpec:
    """The measure of replies that begin, or end, with a quotation."""
    words = quote.strip().rstrip(".,:;!?").strip()
    if _SIGN_AT_EDGE.search(quote) or not re.search(r"\w", words):
        escaped = re.escape(quote.strip()).replace(r"\-", "-").replace(r"\ ", r"\s*")
        regex = rf"\A\W*?{escaped}" if opens else rf"{escaped}\W*\Z"
        return measure("regex", regex=regex, flags="i")
    return measure("starts_with" if opens else "ends_with", word=words)
