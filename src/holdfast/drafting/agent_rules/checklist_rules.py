"""Commands in lists, labels and code blocks below a heading that says when they are run: an item
"`make test`" below "Before committing:".
"""

import re

from holdfast.drafting.agent_rules.required_commands import (
    listed_commands,
    offers_another,
    require,
    require_block,
)
from holdfast.drafting.drafts import Draft
from holdfast.drafting.grammar.clauses import Clause
from holdfast.drafting.grammar.commands import is_command, is_tool, parts_of
from holdfast.drafting.grammar.forms import CODES, forms, one_of, whole_match
from holdfast.drafting.grammar.instruction_words import CHECK, RUN, Relation
from holdfast.drafting.grammar.instructions import Circumstance, circumstance_of, instruction_of
from holdfast.drafting.grammar.occasions import (
    AfterChange,
    BeforeEvent,
    Occasion,
    occasion_of,
    occasion_of_instruction,
)
from holdfast.drafting.rules_file import Statement

_OPTIONAL = re.compile(
    r"\b(?:optional(?:ly)?|(?:if|when|as) (?:needed|necessary|required))\b", re.I
)
_CHECKLIST = re.compile(
    r"[\W\d]*(?:required |mandatory )?(?:pre-?(?P<event>commit|push|PR|pull request|submission)s?"
    r"|(?P<request>PR|pull request)s?)(?: "
    + one_of(
        *("checklist", "checks?", "requirements?", "steps", "validation", "verification"),
        *("commands", "quality checks", "gates?"),
    )
    + r")+(?: \((?:required|mandatory|must pass)\))?[\s:*.]*",
    re.I,
)
_MARKS = re.compile(r"^[\W\d]*(?:(?:required|mandatory):? )?|\s*\([^()]*\)|[\s:*.]+$", re.I)
_ITEM = forms(
    {
        "Lint the code with `make lint` to find mistakes": (
            r"(?P<head>[\w\s'/:-]{0,50}?)"
            rf"\(?(?P<codes>{CODES})\)?(?: "
            + one_of(*"to for and passes pass must should succeeds is are in from on with".split())
            + r"\b(?:(?! (?:if|when|unless|or|only)\b).)*)?"
        )
    }
)
_RUN_THESE = re.compile(
    r"(?:always |please )?(?:run|execute) (?:all )?(?:of )?(?:these|the following)(?: \w+)?[\s:.]*",
    re.I,
)
_BEGINS_STEP = re.compile(
    r"(?:(?:always|please|must|ensure(?: that)?|make sure(?: that)?|then) )*(?:re-?)?"
    + one_of(
        *"run execute use format lint check test build validate verify regenerate update".split(),
        *("rebuild", "type-?check", "formatting", "linting", "tests", "type checks?", "compile"),
        *("fix", "generate", r"\w+ing", ""),
    )
    + r"\b.*|",
    re.I,
)
_NO_STEP = re.compile(r"\b(?:no|not|never|if|optional\w*|instead|see|read)\b", re.I)


def labelled_command_rule(clause: Clause) -> list[Draft]:
    """Reads "before committing: `make test`", perhaps with the label as a sentence before it."""
    statement = clause.statement
    if clause.is_prohibited or offers_another(statement.text):
        return []
    label = statement.label or statement.opening.strip(" .:")
    text = clause.text
    if ": `" in text and not label:
        label, _, text = text.partition(": ")
    occasion = _occasion_of_heading(label)
    instruction = instruction_of(text)
    if occasion is None or instruction is None:
        return []
    if not instruction.binds or instruction.circumstances or not instruction.does(RUN):
        return []
    if not re.fullmatch(CODES, instruction.object):
        return []
    return require(listed_commands(instruction.object), occasion)


def checklist_rule(clause: Clause) -> list[Draft]:
    """Reads an item such as "`make test`" below "Before committing:"."""
    statement = clause.statement
    if clause.is_prohibited or offers_another(statement.text) or not clause.begins_statement:
        return []
    occasion = _occasion_above(statement)
    if occasion is None:
        return []
    if _OPTIONAL.search(f"{statement.label} {statement.text}"):
        return []
    instruction = instruction_of(clause.text)
    tool = instruction.object if instruction and instruction.does(RUN) else ""
    if is_tool(tool) or tool == "pre-commit":
        return require([tool], occasion)
    item = whole_match(_ITEM, clause.text)
    if item is None or re.match(r"(?:if|when|for)\b", statement.label, re.I):
        return []
    if _NO_STEP.search(item["head"]) or not _BEGINS_STEP.fullmatch(item["head"].strip()):
        return []
    codes = listed_commands(item["codes"])
    is_event = isinstance(occasion, BeforeEvent)
    if is_event and not all(is_command(part) for code in codes for part in parts_of(code)):
        return []
    return require(codes, occasion)


def block_below_heading(statement: Statement) -> list[Draft]:
    """Reads a code block right below the heading "Before committing"."""
    alone = circumstance_of(re.sub(r"^[#\s*]+|[\s:*]+$", "", statement.text))
    if alone is None or alone.relation is not Relation.BEFORE:
        return []
    occasion = occasion_of(alone)
    return require_block(statement.block, occasion) if isinstance(occasion, BeforeEvent) else []


def heads_commands(heading: str) -> bool:
    """Whether a heading names a change after which the commands below it have to be run."""
    return isinstance(_occasion_of_heading(heading), AfterChange)


def _occasion_above(statement: Statement) -> Occasion | None:
    """The occasion of the heading above a statement, or of the one above "Run these commands:"."""
    *others, nearest = ("", *statement.under)
    occasion = _occasion_of_heading(nearest)
    if occasion is None and others and _RUN_THESE.fullmatch(nearest):
        return _occasion_of_heading(others[-1])
    return occasion


def _occasion_of_heading(heading: str) -> Occasion | None:
    """The occasion that a heading or an introduction names for the commands below it."""
    if checklist := _CHECKLIST.fullmatch(heading):
        event = checklist["event"] or checklist["request"]
        return occasion_of(Circumstance(Relation.BEFORE, event))
    plain = _MARKS.sub("", heading)
    if instruction := instruction_of(plain):
        is_run = instruction.does(RUN | CHECK | {"perform"}) and "`" not in instruction.object
        is_limited = instruction.text_of(Relation.IN, Relation.UNLESS) is not None
        return occasion_of_instruction(instruction) if is_run and not is_limited else None
    parts = (plain, plain.split(",")[0], *re.findall(r"\bbefore [^`]+$", plain, re.I))
    for circumstance in filter(None, map(circumstance_of, parts)):
        if occasion := occasion_of(circumstance):
            return occasion
    return None
