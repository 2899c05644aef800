"""The name of a bot, which it gives when it is asked: "You are Luna, the assistant of ..."."""

import re
import unicodedata

from holdfast.drafting.bot_prompts import QUOTE, Clause
from holdfast.drafting.drafts import Draft, Spec

WHEN_ASKED = (
    r"(?i)\bwho (?:are you\b(?! \w+ing)|am I (?:talk|chatt|speak|writ)ing|is this[?,])"
    r"|\byour name\b|\bare you called\b|\bshould I call you\b|\bdo you have a name\b"
    r"|\bintroduce yourself|\bwie hei(?:ß|ss)t du|\bwer (?:bist du|sind Sie)"
    r"|\bqui es-tu|\bqui êtes-vous|\bti chiami\b|\bchi sei\b|\bcómo te llamas|\bquién eres"
)
ASKED = (
    "Who are you?",
    "What is your name?",
    "Who am I talking to?",
    "May I ask for your name?",
    "Sorry, what should I call you?",
    "Before we start: who are you?",
)
_WORD = r"[A-ZÀ-Þ][\w'-]*[a-zß-ÿ][\w'-]*"
_NAME = rf"(?P<name>{_WORD}(?: {_WORD})?|{QUOTE}|[A-Z][A-Z0-9-]{{2,}}(?=,))"
_FORMS = tuple(
    re.compile(form)
    for form in (
        rf"^(?:You are|You're|I am|Act as|Sei|Eres|Du bist|Tu es) {_NAME}(?=,| (?:from|of|at|vom"
        r"|von"
        rf"|and|und|di|de)\b|$| - )",
        rf"\b(?:[Yy]our name is|[Yy]ou are (?:called|named)|[Dd]ein Name ist|[Dd]u heißt"
        r"|[Tt]e llamas"
        rf"|[Tt]i chiami|[Tt]u t'appelles) {_NAME}(?![\w-])",
        rf"\b(?:assistant|bot|chatbot|agent|tutor|concierge|receptionist|robot) (?:named|called)"
        rf" {_NAME}(?![\w-])",
        rf"^Name: {_NAME}$",
    )
)
# capitalised words that begin a role, and no name
_ROLES = re.compile(
    r"\b(?:AI|Assistant|Expert|Senior|Professional|English|Friendly|Helpful|Chief|Head|Lead"
    r"|Customer"
    r"|Support|Software|Virtual|Personal|Certified|Experienced|World|The|An?|Our|Dr|Agent|Bot"
    r"|Teacher|Tutor|Coach|Advisor|Sales|Marketing|Data|Technical|Legal|Medical|Language|Model"
    r"|Not|Now|Here|Responsible|Interviewer|Engineer|Manager|Writer|Developer|Analyst)\b"
)


def identity_rules(clause: Clause) -> list[Draft]:
    """The name that the bot gives when it is asked who it is."""
    for form in _FORMS:
        match = form.search(clause.text)
        if match and not _ROLES.search(match["name"]):
            (name,) = clause.quoted(match["name"]) or (match["name"],)
            plain = unicodedata.normalize("NFD", name)
            plain = "".join(sign for sign in plain if not unicodedata.combining(sign))
            words = list(dict.fromkeys((name, plain)))
            spec: Spec = {"name": "contains", "words": words}
            if len(words) > 1:  # with its accents or without
                spec["all"] = False
            when = {"user": WHEN_ASKED}
            return [Draft("identity", "requirement", spec, when, ASKED)]
    return []
