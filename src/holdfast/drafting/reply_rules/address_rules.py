"""Rules about the polite form of address: Sie in German, vous in French, usted in Spanish.

For example:

    Address guests with the formal Sie. -> never_contains(words=["du", "dich", ...])
"""

import re
from dataclasses import dataclass

from holdfast.drafting.drafts import Draft, MeasureSpec, measure
from holdfast.drafting.grammar.forms import forms, one_of
from holdfast.drafting.reply_rules.bot_prompts import QUOTE, BotClause


@dataclass(frozen=True)
class _Politeness:
    """A polite form of address.

    Args:
        regex: the pattern of its words.
        familiar: the words of the familiar form, which it excludes.
    """

    regex: str
    familiar: list[str]


_FORMS = {
    "sie": _Politeness(
        r"\b(?:Sie|Ihnen|Ihre?[mnrs]?)\b",
        "du dich dir dein deine deinen deinem deiner euch euer eure".split(),
    ),
    "vous": _Politeness(r"(?i)\b(?:vous|votre|vos)\b", "tu te toi ton ta tes".split()),
    "usted": _Politeness(
        r"(?i)\b(?:ustedes|usted|su|sus|le|les|dígame|tenga|traiga|puede|tome|escriba)\b",
        "tú tu tus te ti contigo puedes tienes quieres necesitas eres estás debes".split(),
    ),
}
_FORM = r"(?P<form>Sie|vous|usted)"
_ADDRESSES = one_of(
    *("say", "use", "address", "tratas?", "trata", r"spr\w+", r"anrede\w*", r"siez\w*"),
    *("answer", "speak", "you do so"),
)
_ASKED = forms(
    {
        "address guests with the formal Sie": (
            rf"\b{_ADDRESSES}\b[^:]{{0,60}}?"
            rf"(?:\b(?:formal|the|a|as|with|de|mit|form) )?\b{_FORM}\b"
        ),
        "in the Sie-form": rf"\b{_FORM}-form\b",
        "vouvoyez le client": r"\b(?P<form>vouvo(?:yez|ie))\b",
    }
)
_NEGATED = re.compile(r"\b(?:never|not|nicht|no|ne)\b[^,:]*$", re.I)
_IN_EVERY_REPLY = re.compile(
    r"\b(?:every|each|at least once|in jeder|chaque|par réponse|au moins|cada|tratas?|a todo"
    r"|always)\b",
    re.I,
)


def address_rules(clause: BotClause) -> list[Draft]:
    """Reads "address guests with Sie", unless the form is a part of a longer quotation."""

    def unmask_word(mark: re.Match[str]) -> str:
        """The quotation that a mark stands for if it is a single word; otherwise the mark."""
        (quote,) = clause.quotations_in(mark[0])
        return quote if " " not in quote else mark[0]

    text = re.sub(QUOTE, unmask_word, clause.text)
    for form in _ASKED:
        match = form.pattern.search(text)
        if match is None or _NEGATED.search(match[0]) or match["form"] == "sie":  # "she", "they"
            continue
        name = match["form"].lower()
        polite = _FORMS["vous" if name.startswith("vouvo") else name]
        return [Draft("address", "requirement", _spec_of(polite, text))]
    return []


def _spec_of(polite: _Politeness, text: str) -> MeasureSpec:
    """The measure of replies that lack the familiar form, and have the polite one if every reply
    has to.
    """
    never = measure("never_contains", words=polite.familiar)
    if not _IN_EVERY_REPLY.search(text):
        return never
    return measure("every", measures=[measure("regex", regex=polite.regex).entry, never.entry])
