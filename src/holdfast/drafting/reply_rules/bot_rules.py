"""Rules about replies: in the prompt of a chat bot, where any part of a sentence may state one, and
in the rules file of a coding agent, where they are few.
"""

import re
from collections.abc import Callable
from dataclasses import replace

from holdfast.drafting.drafts import A_PREFERENCE, NEEDS_A_JUDGE, ON_OCCASION, Draft, Undrafted
from holdfast.drafting.grammar.clauses import Clause
from holdfast.drafting.grammar.forms import ADVERBS, NEVER, any_words, one_of, word_pattern
from holdfast.drafting.reply_rules.bot_prompts import BotClause, clauses_of_bot
from holdfast.drafting.reply_rules.format_rules import format_rules
from holdfast.drafting.reply_rules.identity_rules import identity_rules
from holdfast.drafting.reply_rules.language_rules import code_of_own_language, language_rules
from holdfast.drafting.reply_rules.length_rules import length_rules
from holdfast.drafting.reply_rules.negation import keep_affirmed
from holdfast.drafting.reply_rules.reply_prohibitions import reply_prohibitions
from holdfast.drafting.reply_rules.tone_rules import tone_rules
from holdfast.drafting.reply_rules.wording_rules import wording_rules
from holdfast.drafting.rules_file import Part, Statement

_THEMES: tuple[Callable[[BotClause], list[Draft]], ...] = (
    language_rules,
    length_rules,
    wording_rules,
    format_rules,
    tone_rules,
    reply_prohibitions,
)
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

# --- The replies of a coding agent

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
        rules = [rule for theme in _THEMES for rule in keep_affirmed(theme, clause)]
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


def agent_reply_rule(clause: Clause) -> list[Draft]:
    """Reads 'always answer in German', 'never use emojis' and 'end each reply with "Ciao!"'."""
    text = clause.text
    if clause.is_prohibited:
        text = f"never {text[:1].lower()}{text[1:]}"
    if not (_AGENT_REPLIES.match(text) or code_of_own_language(text)):
        return []
    if _ESCAPED.search(text):
        return []
    statement = clause.statement
    if any(map(_OTHER_TEXTS.search, (text, statement.label, *statement.under[-1:]))):
        return []
    clauses = list(clauses_of_bot(replace(statement, label="", text=text)))
    if len(clauses) != 1 or clauses[0].limits or clauses[0].is_soft:
        return []
    return [rule for theme in _THEMES for rule in keep_affirmed(theme, clauses[0])]
