"""Rules for replies in the rules file of a coding agent, where they are few."""

import re
from dataclasses import replace

from holdfast.drafting.drafts import Draft
from holdfast.drafting.grammar.clauses import Clause
from holdfast.drafting.grammar.forms import ADVERBS, NEVER, any_words, one_of, word_pattern
from holdfast.drafting.reply_rules.bot_prompts import clauses_of_bot
from holdfast.drafting.reply_rules.language_rules import code_of_own_language
from holdfast.drafting.reply_rules.negation import keep_affirmed
from holdfast.drafting.reply_rules.reply_readers import REPLY_READERS

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
    return [rule for reader in REPLY_READERS for rule in keep_affirmed(reader, clauses[0])]
