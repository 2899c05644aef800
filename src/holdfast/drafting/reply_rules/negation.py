"""Keeps a rule of a bot's prompt from being drafted as its opposite.

The wordings of rules are searched for within clauses, so that "begin every reply with ⟪0⟫" is also
found in "you need not begin every reply with ⟪0⟫". A rule is kept if it depends on the negation, as
"never use emojis" does, and dropped if it is also found without the negation.
"""

import re
from collections.abc import Callable
from dataclasses import replace

from holdfast.drafting.drafts import Draft
from holdfast.drafting.grammar.forms import one_of
from holdfast.drafting.reply_rules.bot_prompts import BotClause

RulesOf = Callable[[BotClause], list[Draft]]

_AUXILIARY = one_of(
    *("do", "does", "did", "must", "should", "shall", "will", "would", "can", "could", "may"),
    *("might", "need", "are", "is", "were", "ought", "have"),
)
# what may not follow a negation, as it undoes it: "never forget to", "do not reply without"
_NOT_UNDONE = (
    r"(?!\W+(?:\w+\W+){0,6}?"
    + one_of(
        *("without", "forget", "fail", "neglect", "omit", "skip", "miss", "leave out"),
        "other than",
        r"more(?! than (?:once|twice|(?:\w+ )?times?))",
        *("except", "anything but", "anything else", "longer", "exceed", "over", "above"),
    )
    + r"\b)"
)
_NEGATION = re.compile(
    r"\b"
    + one_of(
        "never",
        rf"(?:{_AUXILIARY} not|{_AUXILIARY}n't|cannot|can't|won't)"
        r"(?: (?:have|need|always|ever)(?: to)?)?",
        r"(?:there is |there's )?no need(?: for you)? to",
        *("need not", "not necessary to", "not required to", "not allowed to", "not supposed to"),
        *("under no circumstances", "in no case", "on no account", "at no (?:time|point)"),
        *(r"refrain from(?: the habit (?:to|of))?", r"avoid(?:ing)?", "stop", "instead of"),
        *(r"(?:it is |it's )?(?:forbidden|prohibited|unnecessary|optional) to", "rather than"),
        r"(?:it is |it's )?(?:wrong|bad|rude|impolite|inappropriate|unacceptable|unwise|pointless"
        r"|a mistake) to",
        r"(?:there is |there's )?no (?:reason|point|use|sense)(?: for you)?(?: to| in)?",
        r"(?:nobody|no one) \w+",
        *("neither", r"hates?", r"dislikes?", "complain(?:s|ed)? about", "tired of", "hardly ever"),
        *("rarely", "seldom"),
        "not",
    )
    + r"\b"
    + _NOT_UNDONE,
    re.I,
)
# allows only what it names: "never end without ⟪0⟫"
_NEVER_WITHOUT = re.compile(
    r"(?:\bnever|\bnot|n't|\bcannot|\bno|\bnobody|\bavoid|\bnor)\b"
    r"(?:(?! and )[^,;:])*?\bwithout\b[^,;:]*",
    re.I,
)
_BOUNDARY = re.compile(r"([,;:]| but (?!also)| and (?!/))")


def keep_affirmed(rules_of: RulesOf, clause: BotClause) -> list[Draft]:
    """The rules that a reader finds in a clause, without those whose opposite the clause states."""
    rules = rules_of(clause)
    if rules and _NEVER_WITHOUT.search(clause.text):
        beside = _measures(rules_of, clause, _NEVER_WITHOUT.sub("", clause.text))
        rules = [rule for rule in rules if rule.polarity != "prohibition" or rule.measure in beside]
    if not rules or not _NEGATION.search(clause.text):
        return rules
    parts = _BOUNDARY.split(clause.text)
    positive_parts = "".join(part for part in parts if not _NEGATION.search(part))
    elsewhere = _measures(rules_of, clause, positive_parts)
    affirmative = " ".join(_NEGATION.sub("", clause.text).split())
    opposite = _measures(rules_of, clause, affirmative)
    return [rule for rule in rules if rule.measure in elsewhere or rule.measure not in opposite]


def _measures(rules_of: RulesOf, clause: BotClause, text: str) -> list[object]:
    """The measures of the rules that a reader finds in another text in place of the clause."""
    return [rule.measure for rule in rules_of(replace(clause, text=text.strip(" ,.")))]
