"""Rules that commands have to be run, from an item and what stands above or beside it.

    "`make test`", below "Before committing:"      -> runs_before("make test", "git commit")
    "1. Change the code. 2. `make test` 3. Commit" -> runs_before("make test", "git commit")

`labelled_command_rule` and `checklist_rule` read an item and the label or heading above it,
`step_rule` an item and the other steps of its list, and `block_below_heading` a heading and its
code block.
"""

import re

from holdfast.drafting.agent_rules.folder_headings import folder_of_part
from holdfast.drafting.agent_rules.run_rules import (
    CONDITIONS,
    NOT_A_CHECK,
    REPORTS_OR_ENDS,
    STATES,
    listed_commands,
    of_part,
    offers_another,
    require,
    require_block,
)
from holdfast.drafting.drafts import Draft
from holdfast.drafting.grammar.acts import acts_of, gate_of
from holdfast.drafting.grammar.circumstances import Circumstance, circumstance_of
from holdfast.drafting.grammar.clauses import Clause
from holdfast.drafting.grammar.commands import is_command, is_tool, parts_of
from holdfast.drafting.grammar.forms import CODES, form, one_of, whole_match
from holdfast.drafting.grammar.instruction_words import CHECK, RUN, Relation
from holdfast.drafting.grammar.instructions import Instruction, Modality, instruction_of
from holdfast.drafting.grammar.named_files import files_of_language
from holdfast.drafting.grammar.occasions import (
    END_OF_WORK,
    AfterChange,
    BeforeEvent,
    Occasion,
    is_end_of_work,
    occasion_of,
    occasion_of_instruction,
)
from holdfast.drafting.rules_file import Statement

# --- A list or a code block below "Before committing:"


def labelled_command_rule(clause: Clause) -> list[Draft]:
    """Reads "before committing: `make test`", perhaps with the label as a sentence before it."""
    statement = clause.statement
    if clause.is_prohibited or offers_another(statement.text):
        return []
    label = statement.label or statement.opening.strip(" .:")
    text = clause.text
    if ": `" in text and not label:
        label, _, text = text.partition(": ")
    occasion = _occasion_of_heading(label) or _change_of_part(label, statement.document)
    instruction = instruction_of(text)
    if occasion is None or instruction is None:
        return []
    if not instruction.binds or instruction.circumstances or not instruction.does(RUN):
        return []
    commands = _AND_OTHER_TESTS.sub("", instruction.object)
    if not re.fullmatch(CODES, commands):
        return []
    return of_part(require(listed_commands(commands), occasion), statement)


_CHANGES_OF_PART = re.compile(r"(?P<part>[A-Z][\w-]*) (?:code )?changes")


def _change_of_part(label: str, document: str) -> Occasion | None:
    """The occasion of "Web changes", if the rules file has paths of a folder `web`."""
    match = _CHANGES_OF_PART.fullmatch(label)
    folder = folder_of_part(match["part"], document) if match else None
    return AfterChange((f"{folder}/*",)) if folder else None


_AND_OTHER_TESTS = re.compile(
    r" and (?:any|all|the)(?: (?:other|relevant|related|affected))* (?:tests|checks)$", re.I
)
_OPTIONAL = re.compile(
    r"\b(?:optional(?:ly)?|(?:if|when|as) (?:needed|necessary|required)|automatically"
    r"|(?<!never )(?<!not )(?<!n['’]t )skip|by (?:the |our )?(?:CI|bot|hook|pipeline|user))\b",
    re.I,
)
_ITEM = form(
    "Lint the code with `make lint` to find mistakes",
    r"(?P<head>[\w\s'/:-]{0,50}?)"
    rf"\(?(?P<codes>{CODES})\)?(?: "
    + one_of(*"to for and passes pass must should succeeds is are in from on with".split())
    + r"\b(?:(?! (?:if|when|unless|or|only)\b).)*)?",
)
_BEGINS_STEP = re.compile(
    r"(?:(?:always|please|must|ensure(?: that)?|make sure(?: that)?|then) )*(?:re-?)?"
    + one_of(
        *"run execute use format lint check test build validate verify regenerate update".split(),
        *"review inspect confirm".split(),
        *("rebuild", "type-?check", "formatting", "linting", "tests", "type checks?", "compile"),
        *("fix", "generate", r"\w+ing", ""),
    )
    + r"\b.*|",
    re.I,
)
_NO_STEP = re.compile(
    r"\b(?:no|not|never|if|optional\w*|instead|see|read|ask|tell|avoid|skip|stop|without|once)\b",
    re.I,
)


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
    return of_part(require(_commands_of_item(clause, occasion), occasion), statement)


def _commands_of_item(clause: Clause, occasion: Occasion) -> list[str]:
    """The commands of an item such as "Lint with `make lint`"; [] if it may be no step to run."""
    instruction = instruction_of(clause.text)
    tool = instruction.object if instruction and instruction.does(RUN) else ""
    if is_tool(tool) or tool == "pre-commit":
        return [tool]
    item = whole_match(_ITEM, clause.text)
    if item is None or re.match(r"(?:if|when|for)\b", clause.statement.label, re.I):
        return []
    if _NO_STEP.search(item["head"]) or not _BEGINS_STEP.fullmatch(item["head"].strip()):
        return []
    codes = listed_commands(item["codes"])
    is_event = isinstance(occasion, BeforeEvent)
    if is_event and not all(is_command(part) for code in codes for part in parts_of(code)):
        return []
    return codes


# headings of the usual way to work, and words for work that is only done at times
_WORKFLOW = re.compile(
    r"\b(?:workflow|process|development|contribut\w*|making changes|commit\w*|push\w*|PRs?"
    r"|pull requests?|checklist|procedure|steps|loop|cycle)\b",
    re.I,
)
_OTHER_WORK = re.compile(
    r"\b(?:add|creat|new|releas|deploy|publish|hotfix|bug|debug|migrat|set-?up|install|upgrad|first"
    r"|onboard|emergenc|rollback|review|issue|if\b|when|test|edit|writ)\w*",
    re.I,
)
_OF_MACHINES = re.compile(
    r"\bCI\b|\b(?:GitHub Actions?|pipelines?|runs on|automat\w*)\b|\.ya?ml\b", re.I
)
_COMMIT_STEP = re.compile(
    r"(?:(?:then|finally|and),? )*`?(?P<act>(?:git )?(?:commit|push)\b"
    r"|(?:open|create|submit|raise|make) (?:an? |the |your )?(?:PR|pull request|merge request)\b)",
    re.I,
)
_IS_CHECK = re.compile(
    r"test|lint|check|format|fmt|type|tsc|mypy|clippy|vet|verif|valid|build|compile|ruff|black"
    r"|prettier|eslint|spec\b|ktlint|tox|nox|pre-commit",
    re.I,
)
_CHANGE_STEP = re.compile(
    r"(?:make|implement|apply|edit|modify|change|write) (?P<what>[^.:;]+)", re.I
)


def step_rule(clause: Clause) -> list[Draft]:
    """Reads the step "Run `make test`" of a workflow, if a later step commits or an earlier one
    changes files.
    """
    statement = clause.statement
    heading = statement.under[-1] if statement.under else ""
    if clause.is_prohibited or statement.opening or not clause.begins_statement:
        return []
    if not statement.is_numbered:
        return []
    if not _WORKFLOW.search(heading) or _OTHER_WORK.search(heading):
        return []
    if any(map(_OF_MACHINES.search, statement.under)):
        return []
    occasion = _occasion_of_steps(statement)
    if occasion is None or _OPTIONAL.search(f"{statement.label} {statement.text}"):
        return []
    commands = _commands_of_item(clause, occasion)
    are_checks = all(map(_IS_CHECK.search, commands)) and not any(map(NOT_A_CHECK.search, commands))
    if not are_checks or offers_another(statement.text):
        return []
    return of_part(require(commands, occasion), statement)


def _occasion_of_steps(statement: Statement) -> Occasion | None:
    """The occasion of a step: before the first later step that commits, or after an earlier one
    that changes files; None if there is neither.
    """
    for step in statement.later_items:
        if commit := _COMMIT_STEP.match(step):
            return occasion_of(Circumstance(Relation.BEFORE, commit["act"]))
    for step in statement.earlier_items:
        if change := _CHANGE_STEP.match(step):
            occasion = occasion_of(Circumstance(Relation.AFTER, f"changing {change['what']}"))
            return occasion or occasion_of(Circumstance(Relation.AFTER, change["what"]))
    return None


def block_below_heading(statement: Statement) -> list[Draft]:
    """Reads a code block right below the heading "Before committing" or "After each change"."""
    alone = circumstance_of(re.sub(r"^[#\s*]+|[\s:*]+$", "", statement.text))
    occasion = occasion_of(alone) if alone else None
    if occasion is None or any(map(NOT_A_CHECK.search, statement.block)):
        return []
    return require_block(statement.block, occasion)


def block_below_sentence(clause: Clause) -> list[Draft]:
    """Reads a code block below the sentence "Before committing:", or below "Run from the root:"
    under such a heading.
    """
    statement = clause.statement
    stands_alone = statement.text.endswith(":") and not statement.label and not statement.opening
    if not stands_alone or not statement.block:
        return []
    if rules := block_below_heading(statement):
        return of_part(rules, statement)
    occasion = _occasion_above(statement) if _RUN_BLOCK.fullmatch(statement.text) else None
    if occasion is None or any(map(NOT_A_CHECK.search, statement.block)):
        return []
    return of_part(require_block(statement.block, occasion), statement)


_RUN_BLOCK = re.compile(
    r"(?:always |please )?(?:run|execute)(?: all)?(?: of)?(?: (?:these|the following|them))?"
    r"(?: (?:commands|checks|steps))?(?: (?:from|at|in) (?:the )?(?:(?:repo|repository|project"
    r"|workspace|monorepo) )?root)?(?: in (?:this )?order)?:",
    re.I,
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
_RUN_THESE = re.compile(
    r"(?:always |please )?(?:run|execute) (?:all )?(?:of )?(?:these|the following)(?: \w+)?[\s:.]*",
    re.I,
)


def heads_commands(heading: str, document: str = "") -> bool:
    """Whether a heading names a change after which the commands below it have to be run.

    Args:
        document: the rules file, whose paths tell the folder of a part such as "Web".
    """
    occasion = _occasion_of_heading(heading) or _change_of_part(heading, document)
    return isinstance(occasion, AfterChange)


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
    plain = _MARKS.sub("", heading).replace(" / ", "/")  # "before PR / push"
    if _WHEN_DONE.fullmatch(plain):
        return END_OF_WORK
    if instruction := instruction_of(plain):
        if instruction.modality is Modality.NEVER:
            return _occasion_until(instruction)
        is_run = instruction.does(RUN | CHECK | {"perform"}) and "`" not in instruction.object
        is_limited = instruction.text_of(Relation.IN, Relation.UNLESS) is not None
        return occasion_of_instruction(instruction) if is_run and not is_limited else None
    if _CHANGES.fullmatch(plain) and files_of_language(plain):  # "Rust changes"
        return occasion_of(Circumstance(Relation.AFTER, plain))
    parts = (plain, plain.split(",")[0], *re.findall(r"\bbefore [^`]+$", plain, re.I))
    for circumstance in filter(None, map(circumstance_of, parts)):
        if occasion := occasion_of(circumstance):
            return occasion
    return None


_WHEN_DONE = re.compile(
    r"(?:the )?(?:definition of done|done (?:criteria|when|means)"
    r"|completion (?:criteria|checklist))",
    re.I,
)
_CHANGES = re.compile(r"(?:(?:any|all) )?[A-Z][\w#+]* (?:code )?(?:changes|edits)")
_THESE_PASS = re.compile(
    r"(?:(?:running|you run|you have run) )?(?:all |every one |each )?(?:of )?"
    r"(?:these|the following|following|the below)?(?: \w+){0,2}?"
    rf"(?: {STATES})?",
    re.I,
)


def _occasion_until(instruction: Instruction) -> Occasion | None:
    """The occasion of "a task is not done until all of these pass" and "never push without"."""
    conditions = [n for n in instruction.circumstances if n.relation in CONDITIONS]
    if len(conditions) != 1 or not _THESE_PASS.fullmatch(conditions[0].text):
        return None
    work = " ".join([instruction.verbs[-1], instruction.object, *instruction.texts_of(Relation.AS)])
    if instruction.verbs == ("finish",) or (
        instruction.does(REPORTS_OR_ENDS) and is_end_of_work(work)
    ):
        return END_OF_WORK
    acts = acts_of(instruction, *CONDITIONS)
    return BeforeEvent(gate_of(acts)) if acts else None
