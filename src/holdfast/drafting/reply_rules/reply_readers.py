"""Asks the readers of all themes which rules for replies a statement states.

    Never use emojis, and end every reply with "Bye!".
    -> regex(no emoji), a prohibition; ends_with("Bye"), a requirement

`bot_rules` reads a sentence of a bot's prompt, where such rules are many and any part of a sentence
may state one. `agent_reply_rule` reads a clause of a coding agent's file, where they are few and
"answers" are mostly those of programs. Both ask each reader, and drop a rule whose opposite the
clause states (`_affirmed_rules`).
"""

import re
from collections.abc import Callable
from dataclasses import replace

from holdfast.drafting.drafts import (
    A_PREFERENCE,
    NEEDS_A_JUDGE,
    ON_OCCASION,
    Draft,
    Undrafted,
    measure,
)
from holdfast.drafting.grammar.clauses import Clause
from holdfast.drafting.grammar.forms import ADVERBS, NEVER, any_words, one_of, word_pattern
from holdfast.drafting.reply_rules.address_rules import address_rules
from holdfast.drafting.reply_rules.bot_prompts import BotClause, clauses_of_bot
from holdfast.drafting.reply_rules.edge_rules import edge_rules
from holdfast.drafting.reply_rules.format_rules import format_rules
from holdfast.drafting.reply_rules.identity_rules import identity_rules
from holdfast.drafting.reply_rules.language_rules import code_of_own_language, language_rules
from holdfast.drafting.reply_rules.length_rules import length_rules
from holdfast.drafting.reply_rules.reply_prohibitions import reply_prohibitions
from holdfast.drafting.reply_rules.tone_rules import tone_rules
from holdfast.drafting.reply_rules.wording_rules import wording_rules
from holdfast.drafting.rules_file import Element, Statement

# reads the rules of its theme in a clause; [] if the clause states none
_Reader = Callable[[BotClause], list[Draft]]
_READERS: tuple[_Reader, ...] = (
    language_rules,
    address_rules,
    length_rules,
    edge_rules,
    wording_rules,
    format_rules,
    tone_rules,
    reply_prohibitions,
)


def _rules_of(clause: BotClause) -> list[Draft]:
    """The rules of all themes that a clause states."""
    return [rule for reader in _READERS for rule in _affirmed_rules(reader, clause)]


# --- A sentence of a bot's prompt

_CONDITIONAL_HEADING = word_pattern(
    *"if when whenever while during once examples? greeting tools? phase mode".split(),
    *("in case", "first message", r"step \d+"),
)
_CONDITIONAL_ITEM = re.compile(r"(?:if|when|whenever|once|while|for) [^.]*?[,:] ", re.I)
# a heading that may forbid what is below it, in words that may also mean something else
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
    if statement.element is not Element.SENTENCE:
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
    untested: list[str] = []
    for clause in clauses_of_bot(statement):
        drafts += _affirmed_rules(identity_rules, clause)
        rules = _rules_of(clause)
        if may_be_prohibited:
            rules = [rule for rule in rules if rule.polarity == "prohibition"]
        limits = clause.limits or (A_PREFERENCE if clause.is_soft else None)
        if rules and (limits or is_conditional):
            reason = limits or ON_OCCASION
            untested.append(clause.as_written)
        else:
            drafts += [rule for rule in rules if rule not in drafts]
    return [replace(rule, untested=tuple(untested)) for rule in drafts] or reason or []


def _is_conditional(statement: Statement) -> bool:
    """Whether the headings of a sentence, or the item that it is a part of, name an occasion."""
    if any(map(_CONDITIONAL_HEADING.search, statement.under)):
        return True
    return _CONDITIONAL_ITEM.match(statement.opening) is not None


# --- A clause of a coding agent's file

_TO_A_PERSON = r"to (?:me|the user|users)"
_REPLIES = any_words(*"all your every each any the a an of".split()) + one_of(
    *("repl(?:y|ies)", "responses?", "answers?", f"messages? {_TO_A_PERSON}")
)
# programs have responses too, so a rule about the agent's says whose they are, or to whom they go
_REPLIES_OF_THE_AGENT = any_words(*"all every each any of the".split()) + one_of(
    r"your (?:chat )?(?:repl(?:y|ies)|responses?|answers?|messages?)",
    rf"(?:responses?|answers?|messages?) (?:{_TO_A_PERSON}|in (?:the )?chat)",
    rf"repl(?:y|ies)(?: {_TO_A_PERSON}| in (?:the )?chat)?",
)
_MUST_OR_END = r"(?= (?:must|should|shall|will|ha(?:s|ve) to|are|is|always|never|in)\b|:|$)"
_TO_REPLY = one_of(
    *("reply(?:ing)?", "respond(?:ing)?", "answer(?:ing)?", "communicat(?:e|ing)"),
    *("speak(?:ing)?", "talk(?:ing)?", "chat", "converse", "say(?:ing)?"),
)
# verbs whose object is the reply: "limit answers to", "end every response with"
_TO_WRITE = one_of(
    *"write use give provide keep limit restrict confine hold cap start begin open end".split(),
    *"finish close add include put avoid refrain".split(),
)
_WORDS_OR_EMOJIS = one_of(
    r"(?:use|write) (?:the )?(?:words?|phrases?) [\"“]",
    rf"(?:use|write) [\"“][^\"”]+[\"”] {_TO_A_PERSON}$",
    rf"(?:(?:use|add|include|write|no) )?(?:any )?emojis?(?: in (?:{_REPLIES}|(?:any )?"
    r"(?:output|chat|conversations?))| at all| ever| anywhere)*$",
)
# the subject has to be the agent: "the server must answer in 2 lines" is about a program
_AGENT_REPLIES = re.compile(
    rf"{ADVERBS}(?:{NEVER} )?(?:only )?"
    + one_of(
        rf"{_TO_REPLY}(?![\w-])(?! (?:\w+ ){{1,3}}must\b)",
        rf"{_REPLIES_OF_THE_AGENT}{_MUST_OR_END}",
        rf"{_TO_WRITE} .*\b{_REPLIES}\b",
        r"write in (?:at most|no more than|under|up to) ",
        _WORDS_OR_EMOJIS,
    ),
    re.I,
)
_OTHER_TEXTS = word_pattern(
    *"APIs? HTTP servers? endpoints? logs? errors? commits? PRs? reviews? issues?".split(),
    *"code comments? docstrings? docs? documentation READMEs? files? tests? UI strings?".split(),
    *"prompts? tools? titles? changelogs? branch(?:es)?".split(),
    *("pull requests?", "sub-?agents?", "DTOs?", "payloads?", "SSE", "class(?:es)?"),
    r"(?:reply-to|repl(?:y|ies)|responses?|answers?|messages?) (?:types?|objects?|bod(?:y|ies)"
    r"|headers?|models?|schemas?|codes?)",
    r"[\w-]+\.(?:json|ya?ml|toml|md|txt|html?|css|py|[jt]sx?|go|rs|java|rb|sql|xml|csv)",
)
_ESCAPED = re.compile(r"\\[nrt0]")  # "\n" ends what a program answers
# before a language alone: "Communication with the user: Chinese"
_LANGUAGE_LABEL = re.compile(
    r"(?:prose/)?(?:(?:chat|communication|conversation|response|reply)(?: language)?"
    r"|language of replies)"
    r"(?: with (?:the )?users?)?",
    re.I,
)
# "all communication with the user must be in German"
_COMMUNICATION = re.compile(
    r"all (?:communications?|conversations?|interactions?)(?: with (?:the |me\b)?(?:users?)?)?"
    r" (?:must|should|shall|is|are|has to)(?: always)?(?: be)?(?: conducted| held| written)?"
    r" in (?P<language>[A-Z]\w+)",
    re.I,
)
# "keep your final summaries short (max. 5 sentences)"
_SHORT_SUMMARIES = re.compile(
    r"(?:always )?keep (?:all |the )?your (?:final |closing )?(?:summar(?:y|ies)|final messages?)"
    r"(?: (?:short|brief|concise|terse))?(?: \(|: | [—–-] |, | to )"
    r"(?:max(?:imum)?\.?|at most|up to|no more than)"
    r" (?P<limit>\d+ (?:sentences|words|lines))\)?",
    re.I,
)


def agent_reply_rule(clause: Clause) -> list[Draft]:
    """Reads 'always answer in German', 'never use emojis' and 'end each reply with "Ciao!"'."""
    text = clause.text
    if clause.is_prohibited:
        text = f"never {text[:1].lower()}{text[1:]}"
    if _LANGUAGE_LABEL.fullmatch(clause.statement.label) and not clause.is_prohibited:
        text = f"Response language: {text}"
    elif communication := _COMMUNICATION.fullmatch(text):
        text = f"Response language: {communication['language']}"
    elif summaries := _SHORT_SUMMARIES.fullmatch(clause.statement.text.strip(" .")):
        text = f"Keep your replies to at most {summaries['limit']}"
    elif not (_AGENT_REPLIES.match(text) or code_of_own_language(text)):
        return []
    if _ESCAPED.search(text):
        return []
    statement = clause.statement
    if any(map(_OTHER_TEXTS.search, (text, statement.label, *statement.under[-1:]))):
        return []
    clauses = list(clauses_of_bot(replace(statement, label="", text=text)))
    if len(clauses) != 1 or clauses[0].limits or clauses[0].is_soft:
        return []
    return [_without_code(rule) for rule in _rules_of(clauses[0])]


def _without_code(rule: Draft) -> Draft:
    """A rule in which the code that a coding agent shows does not count as words."""
    if rule.measure.name != "at_most_words":
        return rule
    return replace(rule, measure=measure("at_most_words", **rule.measure.arguments, prose=True))


# --- Permissions and negations

# "you may also begin a reply with ⟪0⟫", but not "you may only reply in German"
_PERMISSION = re.compile(
    r"\b(?:you|repl(?:y|ies)|responses?|answers?|messages?)"
    r" (?:may|can|could|might|are (?:allowed|free|welcome) to)\b"
    r"(?! (?:only|not|never)\b)",
    re.I,
)
# rules of these kinds ask for something; those about lengths are limits, also if "you may use up
# to ten words"
_MAY_BE_PERMITTED = ("opening", "closing", "language", "address", "format")

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
        r"no longer (?:have|has|need|needs|required|necessary|obliged)(?: to)?",
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


def _affirmed_rules(reader: _Reader, clause: BotClause) -> list[Draft]:
    """The rules that a reader finds in a clause, without those whose opposite the clause states.

    Wordings are searched for anywhere in a clause, so "begin every reply with ⟪0⟫" is also found in
    "you need not begin every reply with ⟪0⟫". So the reader reads the clause again without its
    negation. A rule that is then gone, such as that of "never use emojis", depends on the negation
    and is kept; a rule that is still found is the opposite of the clause.
    """
    rules = _without_permitted(reader(clause), reader, clause)
    if rules and _NEVER_WITHOUT.search(clause.text):
        beside = _measures_in(reader, clause, _NEVER_WITHOUT.sub("", clause.text))
        rules = [rule for rule in rules if rule.polarity != "prohibition" or rule.measure in beside]
    if not rules or not _NEGATION.search(clause.text):
        return rules
    parts = _BOUNDARY.split(clause.text)
    positive_parts = "".join(part for part in parts if not _NEGATION.search(part))
    elsewhere = _measures_in(reader, clause, positive_parts)
    affirmative = " ".join(_NEGATION.sub("", clause.text).split())
    opposite = _measures_in(reader, clause, affirmative)
    return [rule for rule in rules if rule.measure in elsewhere or rule.measure not in opposite]


def _without_permitted(rules: list[Draft], reader: _Reader, clause: BotClause) -> list[Draft]:
    """The rules without those that the clause only permits, as "you may reply in German" does."""
    if not rules or not _PERMISSION.search(clause.text):
        return rules
    parts = _BOUNDARY.split(clause.text)
    ordered = "".join(part for part in parts if not _PERMISSION.search(part))
    beside = _measures_in(reader, clause, ordered)
    return [
        rule
        for rule in rules
        if rule.polarity == "prohibition"
        or rule.kind not in _MAY_BE_PERMITTED
        or rule.measure.name.startswith("at_most")
        or rule.measure in beside
    ]


def _measures_in(reader: _Reader, clause: BotClause, text: str) -> list[object]:
    """The measures of the rules that a reader finds in another text in place of the clause."""
    return [rule.measure for rule in reader(replace(clause, text=text.strip(" ,.")))]
