"""Lists and code blocks of commands that are run before a commit or another event: items below
"Before committing:", and a block below "Before pushing, run:".
"""

import re
from collections.abc import Sequence

from holdfast.drafting.clauses import Clause, codes_in
from holdfast.drafting.commands import is_command, is_tool, parts_of
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import CODES, forms, one_of, whole_match
from holdfast.drafting.gated_events import (
    EVENT,
    MAX_STEP_COMMANDS,
    OPTIONAL,
    PLEASE,
    PLEASE_RUN,
    WHENEVER_CODE_CHANGES,
    command_of,
    offers_choice,
    require_all_before,
    require_before,
)
from holdfast.drafting.rules_file import Statement

# --- Labels and lists

_LABEL_BEFORE = forms({"Checks before committing": rf"(?:[^`]*\b)?before {EVENT}"})
_COMMANDS_ALONE = forms({"run `make lint` and `make test`": rf"(?:{PLEASE_RUN} )?{CODES}"})
_CHECKLISTS = forms(
    {
        "PR checklist:": (
            r"\W*(?P<event>PR|pull request)s? (?:checklist|requirements?|checks?)[\s:*.]*"
        ),
        "Pre-commit checklist (required):": (
            r"[\W\d]*(?:required |mandatory )?"
            r"pre-?(?P<event>commit|push|PR|pull request|submission)s?(?: "
            + one_of(
                *("checklist", "checks?", "requirements?", "steps", "validation", "verification"),
                *("commands", "quality checks", "gates?"),
            )
            + r")+(?: \((?:required|mandatory|must pass)\))?[\s:*.]*"
        ),
    }
)
_HEADINGS = _CHECKLISTS + forms(
    {
        "Before committing, always:": (
            rf"\W*(?:required |mandatory )?{WHENEVER_CODE_CHANGES}before {EVENT}\b[^`]*"
        ),
        "Commands to run before a commit:": (
            rf"\W*{WHENEVER_CODE_CHANGES}[^`]*\b(?:run|execute)\b[^`]* before {EVENT}[:.]*"
        ),
    }
)
_ITEM = forms(
    {
        "Lint the code with `make lint` to find mistakes": (
            r"(?P<head>(?:(?:always |please |must |ensure (?:that )?|make sure (?:that )?)*"
            r"(?:(?:re-?)?"
            + one_of(
                *"run execute use format lint check test build validate verify".split(),
                *("type-?check", "formatting", "linting", "tests", "type checks?", "compile"),
                "fix",
            )
            + r"\b)?(?:[\w\s'/-]{0,40}?(?: with| using| via| by running|:))? ?)??)"
            rf"\(?(?P<codes>{CODES})\)?(?: "
            + one_of(*"to for and passes pass must should succeeds is are in from on with".split())
            + r"\b(?:(?! (?:if|when|unless|or|only)\b).)*)?"
        )
    }
)
_TOOL_ITEM = forms({"Run pytest": r"(?:always |please )?(?:run|execute) (?P<tool>[a-z-]+)"})
_NO_STEP = re.compile(r"\b(?:no|not|never|if|optional\w*|instead|see|read)\b", re.I)

# --- Code blocks

_HEADING_OF_BLOCK = re.compile(rf"#*\s*\**before {EVENT}[\s:*]*", re.I)
_RUN_THESE = rf"{PLEASE}(?:run|execute)(?: (?:these|the following|all)(?: \w+){{1,3}}?)?"
_INTRODUCTIONS = forms(
    {
        "Before pushing, run these commands": rf"before {EVENT},? {_RUN_THESE}",
        "Run all the checks before committing": rf"(?:.*,? then )?{_RUN_THESE},? before {EVENT}",
        "Test the change, then before pushing run": (
            rf"(?:.*,? then )before {EVENT},? {_RUN_THESE}"
        ),
        "Lint your code before committing with": (
            rf"(?:scan|check|lint|format|validate|verify|test)[\w ]{{1,30}} before {EVENT}"
            r"(?: (?:with|using|by running))?"
        ),
    }
)


def listed_gates(clause: Clause) -> list[Draft]:
    """Reads commands behind a label, in a list or in a code block that says before what they are
    run.
    """
    return _labelled_before(clause) or _below_before(clause) or _block_before(clause)


def _labelled_before(clause: Clause) -> list[Draft]:
    """Reads "before committing: `make test`"."""
    name = clause.statement.label or clause.statement.opening.strip(" .:")
    label = whole_match(_LABEL_BEFORE + _CHECKLISTS, name)
    if label is None or not whole_match(_COMMANDS_ALONE, clause.text):
        return []
    return require_all_before(clause.text, command_of(label["event"]))


def _below_before(clause: Clause) -> list[Draft]:
    """Reads an item such as "`make test`" below "Before committing:"."""
    statement = clause.statement
    heading = whole_match(_HEADINGS, statement.under[-1]) if statement.under else None
    if heading is None or not clause.begins_statement:
        return []
    then = command_of(heading["event"])
    tool = whole_match(_TOOL_ITEM, clause.text)
    if tool and (is_tool(tool["tool"]) or tool["tool"] == "pre-commit"):
        return require_before([tool["tool"]], then)
    item = whole_match(_ITEM, clause.text)
    if item is None or re.match(r"(?:if|when|for)\b", statement.label, re.I):
        return []
    if OPTIONAL.search(f"{statement.label} {statement.text}"):
        return []
    if _NO_STEP.search(item["head"]) or offers_choice(item["codes"]):
        return []
    codes = codes_in(item["codes"])
    if not all(is_command(part) for code in codes for part in parts_of(code)):
        return []
    return require_before(codes, then)


def _block_before(clause: Clause) -> list[Draft]:
    """Reads "before committing, run:" and the code block behind it."""
    introduction = whole_match(_INTRODUCTIONS, clause.text)
    return _steps(clause.statement.block, introduction["event"]) if introduction else []


def block_below_heading(statement: Statement) -> list[Draft]:
    """Reads a code block right below the heading "Before committing"."""
    heading = _HEADING_OF_BLOCK.fullmatch(statement.text)
    return _steps(statement.block, heading["event"]) if heading else []


def _steps(block: Sequence[str], event: str) -> list[Draft]:
    """A rule for each command of a code block, up to the commit or push that it is for."""
    commands: list[str] = []
    for line in _joined_lines(block):
        if re.match(r"\s*git (?:add|commit|push)\b", line):
            break
        commands += parts_of(line)
    if not 1 <= len(commands) <= MAX_STEP_COMMANDS:
        return []
    return require_before(commands, command_of(event))


def _joined_lines(block: Sequence[str]) -> list[str]:
    """The lines of a code block; a line that ends in a backslash is joined with the next."""
    return re.sub(r"\s*\\\n\s*", " ", "\n".join(block)).split("\n")
