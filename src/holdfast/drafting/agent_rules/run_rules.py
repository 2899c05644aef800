"""Rules that a command has to be run, before an event or after a change.

    Run `make test` before committing.   -> runs_before(first="make test", then="git commit")
    After editing `a.proto`, run `x gen` -> runs_after(changed="a.proto", run="x gen")

`run_rule` reads the occasion and the commands from one sentence. The readers in `checklist_rules`
read them from an item and the heading above it. All of them end in `require`.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile

from holdfast.drafting.agent_rules.folder_headings import (
    folder_named,
    folder_of_part,
    part_above,
)
from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.acts import acts_of, gate_of
from holdfast.drafting.grammar.circumstances import Circumstance
from holdfast.drafting.grammar.clauses import Clause, codes_in
from holdfast.drafting.grammar.commands import (
    is_command,
    is_runnable,
    is_tool,
    parts_of,
    required_pattern,
    without_arguments,
    without_placeholder,
)
from holdfast.drafting.grammar.forms import CODES, one_of
from holdfast.drafting.grammar.instruction_words import CHECK, FAILS, PASSES, RUN, Relation
from holdfast.drafting.grammar.instructions import Instruction, Modality, instruction_of
from holdfast.drafting.grammar.named_files import files_of_language, glob_argument
from holdfast.drafting.grammar.occasions import (
    END_OF_WORK,
    OCCASIONS,
    AfterChange,
    BeforeEvent,
    Occasion,
    is_anything,
    is_end_of_work,
    occasion_of,
    occasion_of_instruction,
)
from holdfast.drafting.rules_file import Statement

# --- The rules for some commands on an occasion


def listed_commands(text: str) -> list[str]:
    """The code spans of a list; [] if one of them would do, as in "`make lint` or `make check`"."""
    is_choice = re.search(r"`,? or `", text) is not None
    return [] if is_choice else codes_in(text)


def offers_another(text: str) -> bool:
    """Whether a text offers another command in brackets: "`make test` (or `make check`)"."""
    return re.search(r"` \(or (?!equivalent|similar)", text) is not None


_MAX_COMMANDS = 8  # a code block with more commands is a script rather than a list of steps
_PREPARES = re.compile(r"(?:cd|source|export) ")  # what only leads to a command
_STAGES = re.compile(r"git (?:add|stage)\b")  # a part of committing


def require(commands: Iterable[str], occasion: Occasion, *, are_run: bool = False) -> list[Draft]:
    """Requires each command on an occasion, with one rule per command; [] if they are too many, or
    if one may not be a command.

    Args:
        commands: as they are written, perhaps several on one line: `make lint && make test`.
        are_run: whether the text says that they are run, so that a plain word is a command too.
    """
    parts = [_without_placeholder(part) for command in commands for part in parts_of(command)]
    parts = [without_arguments(part) for part in parts if not _PREPARES.match(part)]
    if isinstance(occasion, BeforeEvent):  # "when committing, use `git commit -s`" needs no rule
        parts = list(takewhile(lambda part: not re.match(occasion.commands, part), parts))
    if not 1 <= len(parts) <= _MAX_COMMANDS or any(map(_STAGES.match, parts)):
        return []
    if not all(_is_step(part, is_run=are_run) for part in parts):
        return []
    patterns = dict.fromkeys(map(_pattern_of_step, parts))
    if isinstance(occasion, BeforeEvent):
        return [_runs_before(pattern, occasion.commands) for pattern in patterns]
    return [_runs_after(pattern, occasion.files) for pattern in patterns]


_COMMITS = re.compile(r"\s*git (?:add|commit|push)\b")


def require_block(block: Sequence[str], occasion: Occasion) -> list[Draft]:
    """A rule for each command of a code block, up to the commit or push that it is for."""
    commands: list[str] = []
    for line in _joined_lines(block):
        if _COMMITS.match(line):
            break
        commands += parts_of(line)
    return require(commands, occasion) if len(commands) <= _MAX_COMMANDS else []


def _joined_lines(block: Sequence[str]) -> list[str]:
    """The lines of a code block; a line that ends in a backslash is joined with the next."""
    return re.sub(r"\s*\\\n\s*", " ", "\n".join(block)).split("\n")


def _without_placeholder(text: str) -> str:
    """A command without placeholders at its end, if more than its program is left."""
    plain = without_placeholder(text)
    return plain if re.search(r"[ /]", plain) else text


# a tool of an MCP server, whose calls are matched by its name: `gitnexus_detect_changes()`
_TOOL = re.compile(r"(?P<server>[a-z][a-z0-9]*)_(?P<name>[a-z]\w*)\(\)")


def _pattern_of_step(text: str) -> str:
    """The pattern of a command that has to be run, or of the calls of a tool."""
    tool = _TOOL.fullmatch(text)
    return rf"(?:mcp__)?{tool['server']}_+{tool['name']}\b" if tool else required_pattern(text)


def _is_step(text: str, *, is_run: bool) -> bool:
    """Whether a code span is a command, or a tool, rather than a file or a plain word."""
    if _TOOL.fullmatch(text):
        return True
    is_file = re.search(r"^[^ ]+\.(?!sh$|py$|js$|mjs$)\w+$|^[^ ]+/$", text)
    is_word = re.fullmatch(r"[\w-]+", text) and not is_command(text)
    return is_runnable(text) and not is_file and (is_run or not is_word)


def _runs_before(command: str, event: str) -> Draft:
    """The rule that a command is run before an event."""
    return Draft("command", "gate", measure("runs_before", first=command, then=event))


def _runs_after(command: str, files: Sequence[str]) -> Draft:
    """The rule that a command is run after a change of some files."""
    spec = measure("runs_after", changed=glob_argument(files), run=command)
    return Draft("command", "requirement", spec)


# --- A sentence: "run `make test` before committing"

_RUN_VERBS = frozenset("run execute rerun".split())
# verbs of "never mark a task done until ..." and "never finish until ..."
REPORTS_OR_ENDS = frozenset("mark consider call declare report claim finish complete end".split())
STATES = one_of(*sorted(PASSES | FAILS, key=len, reverse=True))
# a label that limits a command to changes of one part: "Backend: `make test`"
_PARTS = """backend frontend front-end back-end server client web mobile app ios android api ui cli
docs? documentation website desktop python rust go typescript javascript ts js java kotlin swift
c\\+\\+ c# ruby php terraform shell css sql helm docker""".split()
PART = re.compile(
    one_of(*_PARTS) + r"(?: (?:code|changes?|files?|side|app|only|package))?",
    re.I,
)
_PART_OF_WORK = re.compile(
    rf"\b(?P<part>{one_of(*_PARTS)}) (?P<work>(?:work|tasks?|code changes|changes)\b)", re.I
)


def run_rule(clause: Clause) -> list[Draft]:
    """Reads "run `make test` before committing" and "after editing `a.proto`, run `make gen`"."""
    if clause.is_prohibited or offers_another(clause.statement.text):
        return []
    part = _PART_OF_WORK.search(clause.text)
    if part and not files_of_language(part["part"]):  # "before finishing backend work"
        plain = f"{clause.text[: part.start()]}{part['work']}{clause.text[part.end() :]}"
        labelled = replace(clause.statement, label=part["part"])
        return run_rule(replace(clause, text=plain, statement=labelled))
    if rules := _required_to_follow(clause):
        return of_part(rules, clause.statement)
    label = clause.statement.label
    for text in (clause.text, f"{label}: {clause.text}" if label else ""):
        if rules := _required_by(instruction_of(text), clause):
            return of_part(rules, clause.statement)
    return []


def _required_by(instruction: Instruction | None, clause: Clause) -> list[Draft]:
    """The rules of an instruction of a clause, as a prohibition or an order."""
    if instruction is None:
        return []
    if instruction.modality is Modality.NEVER:
        return _required_by_prohibition(instruction)
    if not instruction.binds:
        return []
    return (
        _allowed_after(instruction)
        or _required_by_order(instruction, clause)
        or _commits_at_end(instruction)
    )


def of_part(rules: list[Draft], statement: Statement) -> list[Draft]:
    """Some rules of a statement about a part of the repository, which its label or a heading names:
    those after any change are for changes of its files; [] if these are not known, and for rules
    that come before an event such as a commit, which may be of another part.
    """
    part = statement.label if PART.fullmatch(statement.label) else part_above(statement)
    if not rules or not part:
        return rules
    if rules[0].measure.name == "runs_before":
        return []
    changed = rules[0].measure.arguments.get("changed")
    if changed != "*" and not (isinstance(changed, list) and changed[0] == "*"):
        return rules
    folder = folder_named(part, statement.document) or folder_of_part(part, statement.document)
    files = [f"{folder}/*"] if folder else files_of_language(part)
    return [_runs_after(rule.measure.arguments["run"], files) for rule in rules if files]


_FOLLOWED_BY = re.compile(
    r"(?:any|every|each|all) (?P<change>(?:edits?|changes?|modifications?) (?:to|in|under|of) .+?)"
    r" (?:must|should|needs? to|has to|have to) (?:always )?be followed by"
    rf" (?:(?:running|a run of) )?(?P<codes>{CODES})(?: and [^`].*)?",
    re.I,
)


def _required_to_follow(clause: Clause) -> list[Draft]:
    """Reads "any change to `src/api/` must be followed by `make gen`"."""
    match = _FOLLOWED_BY.fullmatch(clause.text)
    occasion = occasion_of(Circumstance(Relation.AFTER, match["change"])) if match else None
    if match is None or occasion is None:
        return []
    return require(listed_commands(match["codes"]), occasion)


def _required_by_order(instruction: Instruction, clause: Clause) -> list[Draft]:
    """Reads "run `make test` before committing"."""
    occasion = _change_of_language(instruction) or occasion_of_instruction(instruction)
    if occasion is None and clause.begins_statement:
        occasion = _occasion_of_next_step(instruction) or _occasion_without_words(
            instruction, clause
        )
    if occasion is None or not _is_unlimited(instruction) or _checks_some_changes(instruction):
        return []
    if instruction.does(["use"]) and instruction.text_of(Relation.WHEN, Relation.IF):
        return []  # "when committing, use `make commit`" is about the commit itself
    commands = _commands_run(instruction)
    if not commands and _runs_block(instruction):
        return require_block(clause.statement.block, occasion)
    return require(commands, occasion, are_run=instruction.does(_RUN_VERBS))


_SOME_CHANGES = re.compile(
    r"(?:(?:the|your|all|any|every) )*(?!(?:the|your|all|any|every|code|these|those|this|its|local"
    r"|pending|staged|new|each|file|making|final|my)\b)[\w./-]+(?: [\w./-]+){0,2} changes?",
    re.I,
)


def _checks_some_changes(instruction: Instruction) -> bool:
    """Whether what is checked are changes of one kind: "validate IAM changes with `cdk diff` before
    deployment" says nothing of other deployments.
    """
    return instruction.does(CHECK) and _SOME_CHANGES.fullmatch(instruction.object) is not None


_CHANGES = re.compile(r"(?:(?:making|your|any|all|code) )*(?:changes?|edits)", re.I)


def _change_of_language(instruction: Instruction) -> Occasion | None:
    """The occasion of "test Python syntax with `a` after changes": those of files of Python."""
    texts = [text for relation, text in instruction.circumstances if relation in OCCASIONS]
    is_check = instruction.does(CHECK) and "`" not in instruction.object
    if not is_check or len(texts) != 1 or not _CHANGES.fullmatch(texts[0]):
        return None
    if instruction.texts_of(Relation.TO, Relation.IN):
        return None  # "after changes to the parser"
    is_after = instruction.text_of(Relation.AFTER) is not None
    languages = files_of_language(instruction.object) if is_after else []
    return AfterChange(tuple(languages)) if languages else None


# "without *running `make test` first*"
_WITHOUT = re.compile(
    r"(?:(?:first|running|having|run|a|passing|successful|clean|re-?running|the|run of) )*"
    rf"(?P<codes>{CODES})(?: first| {STATES})*",
    re.I,
)
# "if *`make test` fails*"
_FAILS = re.compile(
    rf"(?:running |you (?:run|have run) )?(?P<codes>{CODES}) {one_of(*FAILS)}", re.I
)
# the relations of "never commit *without* running `make test`"
CONDITIONS = (
    Relation.WITHOUT,
    Relation.UNTIL,
    Relation.UNLESS,
    Relation.BEFORE,
    Relation.IF,
)


def _required_by_prohibition(instruction: Instruction) -> list[Draft]:
    """Reads "never commit without running `make test`" and "never push if `make test` fails"."""
    instruction = _without_purpose(instruction)
    commands: list[str] = []
    for relation, text in instruction.circumstances:
        if relation not in CONDITIONS:
            continue
        fails = _FAILS.fullmatch(text)
        match = fails if relation is Relation.IF else _WITHOUT.fullmatch(text)
        if match is None or (fails and relation is not Relation.IF):
            return []  # a condition that is about something else than commands
        commands += listed_commands(match["codes"])
    work = " ".join([instruction.verbs[-1], instruction.object, *instruction.texts_of(Relation.AS)])
    if instruction.does(REPORTS_OR_ENDS) and is_end_of_work(work):
        return require(commands, END_OF_WORK)
    acts = acts_of(instruction, *CONDITIONS)
    return require(commands, BeforeEvent(gate_of(acts))) if acts else []


def _without_purpose(instruction: Instruction) -> Instruction:
    """The instruction without the purpose of what is run, as in "never commit without running
    `make test` *to check it*".
    """
    kept: list[Circumstance] = []
    for circumstance in instruction.circumstances:
        is_purpose = circumstance.relation is Relation.TO and any(
            before.relation in CONDITIONS for before in kept
        )
        kept += [] if is_purpose else [circumstance]
    return replace(instruction, circumstances=tuple(kept))


_ALL_WORK = re.compile(
    r"(?:(?:all|your|the|any|my|those|these|its) )*"
    r"(?:work|changes|commits?|code|everything|it|them)?",
    re.I,
)
_PUSH_STEP = re.compile(r"(?P<verb>commit|push)\b ?(?P<object>.*)", re.I)
_REMOTE = re.compile(
    r"(?:(?:the|your|configured|current|same) )*`?(?:remote|origin|upstream|GitHub|branch"
    r"|repository|repo)`?(?: (?:repository|branch))?",
    re.I,
)
_WITH_MESSAGE = re.compile(
    r"(?:(?:an?|clear|concise|descriptive|meaningful|good|short|proper),? )*(?:commit )?messages?",
    re.I,
)
_TO_REMOTE = (Relation.TO, Relation.ON, Relation.WITH)


def _commits_at_end(instruction: Instruction) -> list[Draft]:
    """Reads "always commit your work at the end of each turn" and "whenever you change files,
    commit them and push to the remote before ending the task".
    """
    is_act = instruction.modality is Modality.MUST and instruction.does(("commit", "push"))
    steps = [_PUSH_STEP.fullmatch(text) for text in instruction.texts_of(Relation.THEN)]
    if not is_act or None in steps:
        return []
    objects = [instruction.object, *(step["object"] for step in steps if step)]
    if not all(map(_ALL_WORK.fullmatch, objects)):
        return []
    if instruction.texts_of(Relation.IN) not in ([], ["it"]):  # "it should commit"
        return []
    places = instruction.texts_of(Relation.TO, Relation.ON)
    ways = instruction.texts_of(Relation.WITH)
    if not all(map(_REMOTE.fullmatch, places)) or not all(map(_WITH_MESSAGE.fullmatch, ways)):
        return []
    if not instruction.has_only(*OCCASIONS, Relation.IN, Relation.THEN, *_TO_REMOTE):
        return []
    if occasion_of_instruction(instruction) != END_OF_WORK:
        return []
    verbs = [*instruction.verbs, *(step["verb"].lower() for step in steps if step)]
    return [_runs_after(required_pattern(f"git {verb}"), ["*"]) for verb in dict.fromkeys(verbs)]


_ALLOWED_WHEN = (Relation.AFTER, Relation.IF, Relation.ONCE, Relation.WHEN)


def _allowed_after(instruction: Instruction) -> list[Draft]:
    """Reads "commit only after `make test` passes", "only push once `make test` is green" and "a
    task is done only when `make test` passes".
    """
    if instruction.modality is not Modality.ONLY or len(instruction.circumstances) != 1:
        return []
    condition = instruction.circumstances[0]
    match = _WITHOUT.fullmatch(condition.text)
    if match and instruction.verbs == ("finish",) and condition.relation in _ALLOWED_WHEN:
        is_all = is_end_of_work(f"finish {instruction.object}")
        return require(listed_commands(match["codes"]), END_OF_WORK) if is_all else []
    acts = acts_of(instruction, *_ALLOWED_WHEN)
    if match is None or not acts:
        return []
    return require(listed_commands(match["codes"]), BeforeEvent(gate_of(acts)))


# "run `make test`, *then commit*"
_NEXT_STEP = re.compile(r"(?:and |then |only )*(?P<act>(?:git )?(?:commit|push|merge)\b.*)", re.I)


def _occasion_of_next_step(instruction: Instruction) -> Occasion | None:
    """The occasion of "run `make test`, then commit"."""
    steps = instruction.texts_of(Relation.THEN)
    step = _NEXT_STEP.fullmatch(steps[-1]) if steps else None
    relations = {circumstance.relation for circumstance in instruction.circumstances}
    if step is None or not relations <= {Relation.THEN, Relation.WITH}:
        return None
    return occasion_of(Circumstance(Relation.BEFORE, step["act"]))


_IS_ORDER = re.compile(r"(?:always|(?:you|we|agents) must|must)\b", re.I)
# commands that are run once, or that do not end
NOT_A_CHECK = re.compile(
    r"\b(?:install|setup|set-up|bootstrap|init|login|ci|sync|up|start|dev|serve|watch|activate)"
    r"(?:\.\w+)?\b(?!:)",
    re.I,
)
_VERIFIES = ("verify", "validate", "check")  # "always verify your changes with `make lint`"
# a heading such as "Before a release"
_NAMES_OCCASION = re.compile(
    r"\b(?:if|when|before|after|for|on|in|during|adding|creating|releas\w*|deploy\w*|install\w*"
    r"|pre-?\w+|commit\w*|push\w*|merg\w*|pull requests?|PRs?)\b",
    re.I,
)


def _occasion_without_words(instruction: Instruction, clause: Clause) -> Occasion | None:
    """The end of the work for "`make test` must pass" and "always run `make lint`", which name no
    occasion of their own; None for another instruction.
    """
    relations = {relation for relation, _ in instruction.circumstances}
    subjects = instruction.texts_of(Relation.SUBJECT)
    if clause.statement.under and _NAMES_OCCASION.search(clause.statement.under[-1]):
        return None
    names_git = instruction.object.startswith("`git ")  # "check that `git status` is clean"
    if instruction.verbs == ("pass",) and relations <= {Relation.SUBJECT} and not names_git:
        return END_OF_WORK if all(map(is_anything, subjects)) else None
    relations -= _harmless_beside_order(instruction)
    if _IS_ORDER.match(clause.text) and instruction.does(_VERIFIES):
        is_of_work = _ALL_WORK.fullmatch(instruction.object) is not None and instruction.object
        return END_OF_WORK if is_of_work and relations == {Relation.WITH} else None
    is_order = instruction.verbs == ("run",) and _IS_ORDER.match(clause.text)
    is_command = re.fullmatch(CODES, instruction.object) is not None
    is_command = is_command and not NOT_A_CHECK.search(instruction.object)
    return END_OF_WORK if is_order and is_command and not relations else None


_PLACES = (Relation.IN, Relation.FROM, Relation.AT)
# "run `make lint` in *the project root*"
_ROOT = re.compile(
    r"(?:(?:the|this) )?(?:repo|repository|project|monorepo|codebase|workspace|root)\b.*|`[^`]+`.*",
    re.I,
)
_FOR_CHECKS = re.compile(
    r"(?:automatic |consistent |code )*(?:linting|formatting|checks|type checking|validation)"
    r"(?: and (?:linting|formatting|checks|type checking|validation))?",
    re.I,
)


def _harmless_beside_order(instruction: Instruction) -> set[Relation]:
    """The relations that limit no order to run something: "at the root for linting"."""
    harmless: set[Relation] = set()
    if all(map(_ROOT.fullmatch, instruction.texts_of(*_PLACES))):
        harmless |= set(_PLACES)
    if all(map(_FOR_CHECKS.fullmatch, instruction.texts_of(Relation.FOR))):
        harmless.add(Relation.FOR)
    return harmless


# purposes that are only had at times: "*to release*, run `make all`"
_AT_TIMES = re.compile(
    r"(?:release|publish|deploy|ship|add|create|install|set up|upgrade|debug|reproduce|migrate)\b",
    re.I,
)
_FURTHER = (
    *(Relation.WITH, Relation.THEN, Relation.TO, Relation.ON, Relation.AS),
    Relation.EXPLANATION,
)
# "in *this exact order*"
_MANNER = re.compile(r"(?:(?:this|the|that|exact|given) )*(?:sequence|order|turn|full)", re.I)
# after a command: "`make lint` - *run all linters* before committing"
_DESCRIPTION = re.compile(
    r"(?!.*\b(?:if|when|unless|only|optional)\b)(?:runs?|checks?) [^`]*", re.I
)


def _is_unlimited(instruction: Instruction) -> bool:
    """Whether an instruction holds on its occasions without any further limit."""
    goes_on = False  # whether a place belongs to a change or a purpose: "changes to `a` in `b`"
    for relation, text in instruction.circumstances:
        goes_on = goes_on or relation in (Relation.TO, Relation.ON, *OCCASIONS)
        is_place = relation in _PLACES and not _MANNER.fullmatch(text)
        if is_place and not goes_on and not _ROOT.fullmatch(text):
            return False
        if relation is Relation.TO and _AT_TIMES.match(text):
            return False
        if relation is Relation.EXPLANATION and not _DESCRIPTION.fullmatch(text):
            return False
        if relation is Relation.ON and not re.match("every|each|any", text):
            return False
    further = [*_FURTHER, *_harmless_beside_order(instruction)]
    is_limited_otherwise = not instruction.has_only(*OCCASIONS, *_PLACES, *further)
    return not is_limited_otherwise and len(instruction.texts_of(Relation.BEFORE)) <= 1


_RUNS = re.compile(r"(?:then )?(?:re-?run|run|execute)\b", re.I)
_BESIDE = ("", "first", "command", "commands")  # words beside a command that is named alone
# "run *the pre-commit hooks*"
_PRE_COMMIT = re.compile(r"(?:the |all |full )*pre-commit(?: hooks| suite| checks)?", re.I)


def _commands_run(instruction: Instruction) -> list[str]:
    """The commands that an instruction runs; [] if it names none, or offers a choice."""
    texts = instruction.texts_of(Relation.WITH)
    if instruction.does(["use"]) and re.sub(CODES, "", instruction.object).strip() not in _BESIDE:
        return []  # "`make lint` ensures cleanliness" is a description
    if instruction.does(RUN | {"require"}):
        texts.append(re.sub(r"^(?:running|run|a passing|passing) ", "", instruction.object))
    elif not instruction.does(CHECK):
        return []
    elif all(map(is_command, codes_in(instruction.object))):
        texts.append(instruction.object)
    texts += filter(_RUNS.match, instruction.texts_of(Relation.THEN))
    if instruction.does(RUN):
        if _PRE_COMMIT.fullmatch(instruction.object):
            return ["pre-commit run"]
        if is_tool(instruction.object) or _is_named_command(instruction):
            return [instruction.object]
    return listed_commands(" , ".join(text for text in texts if "`" in text))


# "run npm test before committing"
_BARE_COMMAND = re.compile(
    r"(?:npm|pnpm|yarn|bun|make|just|cargo|go|mvn|gradle|dotnet|flutter|dart|mix|composer)"
    r" (?:run )?(?:tests?|lint|build|check|format|fmt|typecheck|type-check|vet|clippy|verify"
    r"|analyze|validate)(?::[\w-]+)*"
)


def _is_named_command(instruction: Instruction) -> bool:
    """Whether the words after "run" are a command that people write in backticks elsewhere."""
    if _BARE_COMMAND.fullmatch(instruction.object):
        return True
    return " " not in instruction.object and is_command(instruction.object)


# "run *these commands*", before a code block
_THESE = re.compile(
    r"|(?:all |both |each )?(?:of )?(?:these|the following|following|checks|all)(?: \w+){0,4}"
    r"|full validation|validation|(?:commands|scripts|steps)",
    re.I,
)


def _runs_block(instruction: Instruction) -> bool:
    """Whether the code block below an instruction is what it runs: "before pushing, run these"."""
    if instruction.verbs == ("pass",):  # "lint and tests must pass before pushing:"
        return all(map(is_anything, instruction.texts_of(Relation.SUBJECT)))
    if not instruction.does(RUN | CHECK) or "`" in instruction.object:
        return False
    return not instruction.does(RUN) or _THESE.fullmatch(instruction.object) is not None
