"""Rules for replies in the prompt of a chat bot, where any part of a sentence may state one."""

import re

from holdfast.drafting.drafts import A_PREFERENCE, NEEDS_A_JUDGE, ON_OCCASION, Draft, Undrafted
from holdfast.drafting.grammar.forms import word_pattern
from holdfast.drafting.reply_rules.bot_prompts import clauses_of_bot
from holdfast.drafting.reply_rules.identity_rules import identity_rules
from holdfast.drafting.reply_rules.negation import keep_affirmed
from holdfast.drafting.reply_rules.reply_readers import REPLY_READERS
from holdfast.drafting.rules_file import Part, Statement

_CONDITIONAL_HEADING = word_pattern(
    *"if when whenever while during once examples? greeting tools? phase mode".split(),
    *("in case", "first message", r"step \d+"),
)
_CONDITIONAL_ITEM = re.compile(r"(?:if|when|whenever|once|while|for) [^.]*?[,:] ", re.I)
# a heading that may forbid what is below it, in words that cannot be told from others
_MAY_PROHIBIT = word_pattern(
    *"avoid not forbidden prohibited banned".split(),
    *("never(?! (?:stop|forget|fail)\\b)", "stop(?<!never stop)(?! words?\\b)"),
    *("don['’]ts?", "nevers", "disallowed", "refrain"),
)
# a heading of a list of mistakes; "always ... instead" in an item is not a mistake
_LIST_OF_MISTAKES = word_pattern(
    "mistakes?", "bad", "unacceptable", "wrong(?! numbers?\\b)", "anti-?patterns?"
)
_HOW_TO_DO_BETTER = re.compile(
    r"(?:always (?!\w+ing\b)|you (?:must|should) |(?:make|be) sure |ensure |remember to |please )"
    r".*\binstead\b(?! of\b)",
    re.I,
)
_MISTAKE = re.compile(r"(?:you |never \w+ing\b)", re.I)  # "you never use emojis"
_BOTH_WAYS = re.compile(r"\bdo['’]?s (?:and|&|/) don['’]?ts?\b", re.I)
# a rule for one field of a reply: "tip": one sentence
_FIELD_OF_REPLY = re.compile(
    r"^[\"“`'][\w -]{1,30}[\"”`']\W{0,2}(?::| [—–-] |$)|\b(?:rules for|field|key) [\"“`']", re.I
)


def bot_rules(statement: Statement) -> list[Draft] | Undrafted:
    """The rules that a sentence of a bot's prompt states for every reply; [] if it states none, and
    a reason if those that it states do not hold for every reply.
    """
    if statement.part is not Part.SENTENCE:
        return []
    if any(map(_FIELD_OF_REPLY.search, (statement.text, statement.label, *statement.under))):
        return []
    above = [_BOTH_WAYS.sub("", name) for name in (statement.label, *statement.under)]
    may_be_prohibited = any(map(_MAY_PROHIBIT.search, above))
    if any(map(_LIST_OF_MISTAKES.search, above)) and not _HOW_TO_DO_BETTER.match(statement.text):
        if _MISTAKE.match(statement.text):
            return NEEDS_A_JUDGE
        may_be_prohibited = True
    is_conditional = _is_conditional(statement)
    drafts: list[Draft] = []
    reason: Undrafted | None = None
    for clause in clauses_of_bot(statement):
        drafts += keep_affirmed(identity_rules, clause)
        rules = [rule for reader in REPLY_READERS for rule in keep_affirmed(reader, clause)]
        if may_be_prohibited:
            rules = [rule for rule in rules if rule.polarity == "prohibition"]
        limits = clause.limits or (A_PREFERENCE if clause.is_soft else None)
        if rules and (limits or is_conditional):
            reason = limits or ON_OCCASION
        else:
            drafts += [rule for rule in rules if rule not in drafts]
    return drafts or reason or []


def _is_conditional(statement: Statement) -> bool:
    """Whether the headings of a sentence, or the item that it is a part of, name an occasion."""
    if any(map(_CONDITIONAL_HEADING.search, statement.under)):
        return True
    return _CONDITIONAL_ITEM.match(statement.opening) is not None
