"""Rules about the name of a bot, which it gives when it is asked.

For example:

    You are Luna, our assistant. -> contains(words=["Luna"]), when the user asks "Who are you?"
"""

import re

from holdfast.drafting.drafts import Draft, MeasureSpec, measure
from holdfast.drafting.grammar.forms import Form, one_of
from holdfast.drafting.reply_rules.bot_prompts import QUOTE, BotClause
from holdfast.measures.text import without_accents

# finds the questions for a bot's name, in five languages
_ASKS_FOR_NAME = "(?i)" + "|".join(
    (
        r"\bwho (?:are you\b(?! \w+ing)|am I (?:talk|chatt|speak|writ)ing|is this[?,])",
        *(r"\byour name\b", r"\bare you called\b", r"\bshould I call you\b"),
        *(r"\bdo you have a name\b", r"\bintroduce yourself"),
        *(r"\bwie hei(?:ß|ss)t du", r"\bwer (?:bist du|sind Sie)"),
        *(r"\bqui es-tu", r"\bqui êtes-vous"),
        *(r"\bti chiami\b", r"\bchi sei\b", r"\bcómo te llamas", r"\bquién eres"),
    )
)
_QUESTIONS = (
    "Who are you?",
    "What is your name?",
    "Who am I talking to?",
    "May I ask for your name?",
    "Sorry, what should I call you?",
    "Before we start: who are you?",
)
# "Luna", "Luna AI", "⟪0⟫", "R2-D2"
_WORD = r"[A-ZÀ-Þ][\w'-]*[a-zß-ÿ][\w'-]*"
_NAME = rf"(?P<name>{_WORD}(?: (?:{_WORD}|[A-Z]{{2,}}\b))?|{QUOTE}|[A-Z][A-Z0-9-]+(?=,|$))"
# the case of letters matters here, as it tells a name from other words
_FORMS = tuple(
    Form(example, re.compile(pattern))
    for example, pattern in {
        "You are Luna, our assistant": (
            rf"^(?:You are|You're|I am|Act as|Sei|Eres|Du bist|Tu es) {_NAME}"
            r"(?=,| (?:from|of|at|vom|von|and|und|di|de)\b|$| - |(?<=⟫) an?\b)"
        ),
        "Your name is Luna": (
            r"\b"
            + one_of(
                *("[Yy]our name is", "[Yy]ou are (?:called|named)", "[Dd]ein Name ist"),
                *("[Dd]u heißt", "[Tt]e llamas", "[Tt]i chiami", "[Tt]u t'appelles"),
            )
            + rf" {_NAME}(?![\w-])"
        ),
        "Call yourself Luna": (
            r"\b"
            + one_of(
                *("[Cc]alls? yourself", "[Rr]efer to yourself as", "[Ii]ntroduce yourself as"),
                *("[Yy]ou go by(?: the name(?: of)?)?", "[Gg]o by the name(?: of)?"),
                *("[Yy]ou are known as", "[Ii]dentify(?: yourself)? as", "[Pp]resent yourself as"),
                "[Yy]ou answer to the name(?: of)?",
            )
            + rf" (?:always )?{_NAME}(?![\w-])"
        ),
        "the receptionist called Luna": (
            r"\b"
            + one_of(*"assistant bot chatbot agent tutor concierge receptionist robot".split())
            + rf" (?:named|called) {_NAME}(?![\w-])"
        ),
        "an assistant named luna.": (
            r"\b(?:assistant|bot|chatbot|agent|tutor) named (?!after\b)"
            r"(?P<name>[a-z]{3,})(?=[.,]|$)"
        ),
        "Name: Luna": rf"^Name: {_NAME}$",
    }.items()
)
# words with a capital that begin a role rather than a name: "You are Senior Developer"
_ROLES = re.compile(
    r"\b"
    + one_of(
        *"AI Assistant Expert Senior Professional English Friendly Helpful Chief Head Lead".split(),
        *"Customer Support Software Virtual Personal Certified Experienced World The An?".split(),
        *"Our Dr Agent Bot Teacher Tutor Coach Advisor Sales Marketing Data Technical".split(),
        *"Legal Medical Language Model Not Now Here Responsible Interviewer Engineer".split(),
        *"Manager Writer Developer Analyst".split(),
    )
    + r"\b"
)
# the name is not for every occasion: "you answer to the name Luna only in private"
_AT_TIMES = re.compile(
    r",? (?:(?:only|just) (?:in|when|if|with|to|for|among|on|at|after|during|while|once)|unless"
    r"|except|in private|among|(?:when|while|if) (?:talking|speaking|chatting|writing))\b"
)
_SUFFIX = re.compile(r"(?<=\w) (?:AI|GPT|Bot)$")  # "Orchid AI"


def identity_rules(clause: BotClause) -> list[Draft]:
    """Reads "you are Luna": the bot gives this name when it is asked who it is."""
    for form in _FORMS:
        match = form.pattern.search(clause.text)
        if match is None or _AT_TIMES.match(clause.text[match.end() :]):
            continue
        if not _ROLES.search(_SUFFIX.sub("", match["name"])):
            (name,) = clause.quotations_in(match["name"]) or (match["name"],)
            spec = _says_name(name.strip(" ,."))
            return [Draft("identity", "requirement", spec, {"user": _ASKS_FOR_NAME}, _QUESTIONS)]
    return []


def _says_name(name: str) -> MeasureSpec:
    """The measure of a reply that says a name, with or without its accents; "Luna" is enough for
    "Luna AI".
    """
    name = _SUFFIX.sub("", name)
    plain = without_accents(name)
    if plain == name:
        return measure("contains", words=[name])
    return measure("contains", words=[name, plain], all=False)
