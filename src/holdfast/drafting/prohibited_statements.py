"""Statements that forbid something in other words than "never": by a heading or their last words.

For example:

    "Push to main", below "Do not:"  -> state_in_full -> "Never push to main"
    "`vendor/` is off limits"        -> turn_into_prohibition -> "Never edit `vendor/`"
"""

import re
from dataclasses import replace

from holdfast.drafting.grammar.commands import is_command
from holdfast.drafting.grammar.forms import NEVER, forms, whole_match
from holdfast.drafting.grammar.instruction_words import VERBS
from holdfast.drafting.grammar.named_files import path_glob
from holdfast.drafting.rules_file import Element, Statement

# headings and introductions of lists that forbid their items
_PROHIBITS = forms(
    {
        "Things you must not do:": (
            r"(?:things|what) (?:you )?(?:(?:must|should) )?(?:not|never)(?: to)?(?: do)?[\s:!.—-]*"
        ),
        "Do not:": r"(?:do not|don['’]?ts?|must not)[\s:!.—-]*",
        "Never do:": r"never(?: do(?: this)?)?[\s:!.—-]*",
        "Strictly forbidden actions:": (
            r"(?:(?:absolutely|strictly) )?(?:forbidden|prohibited|banned|not allowed)"
            r"(?: (?!unless|except|without|if|when|in|for)\w+){0,3}[\s:!.—-]*"
        ),
        "You must never:": r"you (?:must|should) (?:not|never)[\s:!.—-]*",
        "Never emit either of the following, in any commit message:": (
            rf"{NEVER} (?:use|do|add|include|emit|write|introduce) (?:(?:any|either|one) of )?"
            r"(?:the following|these)\b[^.]*"
        ),
        "Hard nevers": r"(?:hard )?(?:nevers|don['’]ts)[\s:!.—-]*",
        "What to avoid:": (
            r"(?:(?:things|what|words|phrases|behaviou?rs?|always|strictly) )*(?:to )?avoid"
            r"(?: (?:this|these|the following|at all costs))*[\s:!.—-]*"
        ),
    }
)


_NUMBER = re.compile(r"^[^\w`]*(?:\d+[.):]*\s+)?")


def prohibits(heading: str) -> bool:
    """Whether a heading forbids the items listed below it."""
    return whole_match(_PROHIBITS, _NUMBER.sub("", heading)) is not None


NEVER_FIRST = re.compile(rf"{NEVER}\b", re.I)


# below "Forbidden commands", words that introduce the list of them: "These destroy others' work:"
_INTRODUCES = re.compile(
    r"(?!.*\b(?:instead|allowed|permitted|fine|ok|okay|safe|exceptions?|unless|except|only)\b)"
    r"(?:(?:(?:all|each|any) (?:of )?)?(?:these|the following|such)\b.*"
    r"|the \w+ (?:creates|writes|generates|produces|keeps|stores) these (?:files|folders)\b.*:)",
    re.I,
)


def without_introduction(statement: Statement) -> Statement:
    """A statement without the words between it and a heading that forbids it, if these only
    introduce the list: "These commands destroy the work of others:".
    """
    if len(statement.under) < 2:
        return statement
    heading, nearest = statement.under[-2:]
    is_below = prohibits(heading) or whole_match(_NEVER_DONE, heading)
    if not is_below or prohibits(nearest) or not _INTRODUCES.fullmatch(nearest):
        return statement
    return replace(statement, under=statement.under[:-1])


def is_prohibited(statement: Statement) -> bool:
    """Whether a statement is forbidden by its label or the heading above it: "Do not:"."""
    if NEVER_FIRST.match(statement.text) or may_be_advice(statement):
        return False
    return any(map(prohibits, (statement.label, *statement.under[-1:])))


_ORDER = re.compile(rf"(?:{NEVER}|always)\b(?: [^ ]+){{2,}}", re.I)


def as_order(heading: Statement) -> Statement:
    """A heading as the sentence that it is, if it is an order such as "Never run `make all`"; other
    headings are returned as they are.
    """
    text = _NUMBER.sub("", heading.text)
    if text.endswith(":") or prohibits(text) or not _ORDER.fullmatch(text):
        return heading
    return replace(heading, text=text, element=Element.SENTENCE)


_INSTEAD = re.compile(r"\binstead\b(?! of\b)", re.I)


def may_be_advice(statement: Statement) -> bool:
    """Whether a statement below "Do not:" may say what to do instead: "- Use npm. Use pnpm."."""
    if NEVER_FIRST.match(statement.text):
        return False
    below = any(map(prohibits, statement.under[-1:]))
    if below and statement.opening:
        return True
    return (below or prohibits(statement.label)) and bool(_INSTEAD.search(statement.text))


# "Never starting with ...", "Never emojis", "Never long answers": "avoid" would be English
_IS_NO_VERB = re.compile(
    r"Never (?:(?!bring\b|sing\b)[\w-]*(?:ing|(?<![su])s)|an?|any|the|too|overly|very|long|short"
    r"|excessive|unnecessary)\b",
    re.I,
)


def state_in_full(statement: Statement) -> Statement:
    """A statement with the "never" or "avoid" that its label or the heading above it implies, as a
    reader of the statement alone has to see it.
    """
    statement = without_introduction(statement)
    if statement.under and whole_match(_NEVER_DONE, statement.under[-1]):
        return turn_into_prohibition(statement)
    prohibition = add_never(statement)
    if prohibition == statement:
        return statement
    text = prohibition.text
    under = prohibition.under
    if _IS_NO_VERB.match(text):
        text = text.replace("Never", "Avoid", 1)
    if any(map(prohibits, under[-1:])):
        under = under[:-1]
    return replace(prohibition, text=text, under=under)


_NO_FIRST = re.compile(
    r"(?:no|not|never|avoid|stop|without|nothing|refrain|do not|don['’]t)\b", re.I
)


def add_never(statement: Statement) -> Statement:
    """A statement with the "never" that its label or the heading above it implies."""
    text = statement.text
    label = statement.label
    if label and not prohibits(label):
        text = f"{label}: {text}"
    if not is_prohibited(statement) or _NO_FIRST.match(text):
        return statement
    if text[1:2].islower():  # and not an abbreviation
        text = f"{text[0].lower()}{text[1:]}"
    return replace(statement, label="", text=f"Never {text}")


# labels, and headings of lists of things, whose items have no verb
_VERB_OF_LIST = r"(?P<verb>use|run|execute|call|edit|modify|touch|change|commit)"
_NEVER_DONE = forms(
    {
        "NEVER RUN these commands:": (
            rf"{NEVER} {_VERB_OF_LIST}"
            r"(?: (?:any of )?(?:these|the following)(?: (?:commands?|files?|folders?|directories"
            r"|paths?|functions?|apis?|libraries|packages?))?"
            r"| commands?| files?)?[\s:!.—-]*"
        ),
        "Runtime files (never commit)": (
            r"[\w /-]{1,40}(?:files?|folders|paths|artifacts|artefacts|outputs?|data)"
            rf" \({NEVER} {_VERB_OF_LIST}(?: (?:these|them))?\)[\s:!.—-]*"
        ),
    }
)
# "Do not (without explicit permission):"
_NEVER_UNASKED = re.compile(
    rf"\W*{NEVER}(?: do)?(?: (?:these|the following|any of these))?,? \(?(?:without|unless)"
    r" (?:(?:explicit(?:ly)?|prior|user|my|the user['’]s) )*"
    r"(?:permission|approval|confirmation|asked|instructed|told|requested)\)?[\s:.!]*",
    re.I,
)
_OFF_LIMITS = re.compile(
    r"(?P<thing>[^`]*`(?P<code>[^`]+)`\)?(?: (?:folder|directory|files?))?) (?:is|are)"
    r"(?: (?:strictly|completely|absolutely))? off[- ]limits\b",
    re.I,
)


# "avoid" beside the order what to use instead is a prohibition, and alone a preference
_SHORT_OBJECT = r"(?:(?!\b(?:unless|when|where|if|except|unnecessary|excessive|possible)\b)[^;,.])"
_ORDER_BESIDE = r"(?:always )?use (?:(?!\b(?:unless|except|possible)\b)[^;.])+"
_AVOIDED_FIRST = re.compile(
    rf"avoid (?P<avoided>{_SHORT_OBJECT}{{1,60}})(?P<order>(?:;|,| [—–-])"
    rf" {_ORDER_BESIDE})[.]?",
    re.I,
)
_AVOIDED_LAST = re.compile(
    rf"(?P<order>{_ORDER_BESIDE}?)(?:;|,| [—–-]|,? and) avoid"
    rf" (?P<avoided>{_SHORT_OBJECT}{{1,60}}?)[.]?",
    re.I,
)


_ASK_FIRST = re.compile(
    r"(?P<act>[A-Za-z-]+ [^()]*?)(?: \(|(?: [—–-]{1,2}|:|,) )(?:always )?"
    r"(?:ask|confirm)(?: me| the user)? first\)?[.!]?",
    re.I,
)
# "`load()` is deprecated; do not use it in new code"
_NOT_USED = re.compile(
    r"(?:the )?(?P<thing>`[^`]+`)"
    r"(?: (?:function|method|helper|hook|class|module|package|component))?"
    r" (?:is|was|exists) [^`]*?(?:[;,—–-]|[.]) ?(?:so )?"
    rf"(?P<order>{NEVER} (?:use|call|import))(?: it)?(?: (?:in|for) new code|"
    r" (?:any ?more|anywhere|directly))?[.!]?",
    re.I,
)


def turn_into_prohibition(statement: Statement) -> Statement:
    """A statement with "never" at its front, if it forbids something in other words: "`vendor/` is
    off limits", "avoid enums; use maps", or an item below "Never use".
    """
    text = statement.text
    asked = _ASK_FIRST.fullmatch(text)
    if asked and asked["act"].split(" ")[0].lower() in VERBS | {"force"}:
        act = asked["act"][0].lower() + asked["act"][1:]
        return replace(statement, text=f"Never {act} without asking")
    if unused := _NOT_USED.fullmatch(text):
        return replace(statement, text=f"{unused['order']} {unused['thing']}")
    if match := _AVOIDED_FIRST.fullmatch(text):
        return replace(statement, text=f"Do not use {match['avoided']}{match['order']}")
    if match := _AVOIDED_LAST.fullmatch(text):
        return replace(statement, text=f"{match['order']}; do not use {match['avoided']}")
    if any(map(_NEVER_UNASKED.fullmatch, statement.under[-1:])) and not _NO_FIRST.match(text):
        order = f"Never {text[0].lower()}{text[1:]}".rstrip(" .")
        return replace(
            statement, text=f"{order} without explicit permission", under=statement.under[:-1]
        )
    if match := whole_match(_NEVER_DONE, statement.label):
        return replace(statement, text=f"Never {match['verb'].lower()} {text}", label="")
    if statement.under and (match := whole_match(_NEVER_DONE, statement.under[-1])):
        order = text if NEVER_FIRST.match(text) else f"Never {match['verb'].lower()} {text}"
        return replace(statement, text=order, under=statement.under[:-1])
    if match := _OFF_LIMITS.match(text):
        thing = match["thing"][0].lower() + match["thing"][1:]
        order = f"Never {_verb_for(match['code'])} {thing}{text[match.end() :]}"
        return replace(statement, text=order)
    return statement


def _verb_for(code: str) -> str:
    """The act that is forbidden if code is off limits: to run a command, to edit a file, or to use
    anything else.
    """
    if is_command(code):
        return "run"
    return "edit" if path_glob(code) else "use"
