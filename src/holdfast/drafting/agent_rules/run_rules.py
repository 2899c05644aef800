"""Instructions to run commands before an event or after a change: "run `make test` before
committing", "after editing `api.proto`, run `make gen`".
"""

import re

from holdfast.drafting.agent_rules.required_commands import (
    listed_commands,
    offers_another,
    require,
    require_block,
)
from holdfast.drafting.drafts import Draft
from holdfast.drafting.grammar.acts import acts_of, gate_of
from holdfast.drafting.grammar.clauses import Clause, codes_in
from holdfast.drafting.grammar.commands import is_command, is_tool
from holdfast.drafting.grammar.forms import CODES, one_of
from holdfast.drafting.grammar.instruction_words import CHECK, FAILS, PASSES, RUN, Relation
from holdfast.drafting.grammar.instructions import (
    Circumstance,
    Instruction,
    Modality,
    instruction_of,
)
from holdfast.drafting.grammar.occasions import (
    END_OF_WORK,
    OCCASIONS,
    BeforeEvent,
    Occasion,
    is_end_of_work,
    occasion_of,
    occasion_of_instruction,
)

_RUN_VERBS = frozenset("run execute rerun".split())
# verbs of "never mark a task done until ..." and "never finish until ..."
_REPORTS_OR_ENDS = frozenset("mark consider call declare report claim finish complete end".split())
_STATES = one_of(*sorted(PASSES | FAILS, key=len, reverse=True))
_WITHOUT = re.compile(
    r"(?:(?:first|running|having|run|a|passing|successful|clean|re-?running|the|run of) )*"
    rf"(?P<codes>{CODES})(?: first| {_STATES})*",
    re.I,
)
_FAILS = re.compile(
    rf"(?:running |you (?:run|have run) )?(?P<codes>{CODES}) {one_of(*FAILS)}", re.I
)
# the relations of "never commit *without* running `make test`"
_CONDITIONS = (*(Relation.WITHOUT, Relation.UNTIL, Relation.UNLESS, Relation.BEFORE, Relation.IF),)
_PLACES = (Relation.IN, Relation.FROM, Relation.AT)
_FURTHER = (
    *(Relation.WITH, Relation.THEN, Relation.TO, Relation.ON, Relation.AS),
    Relation.EXPLANATION,
)
_ROOT = re.compile(
    r"(?:(?:the|this) )?(?:repo|repository|project|monorepo|codebase|workspace|root)\b.*|`[^`]+`.*",
    re.I,
)
_MANNER = re.compile(r"(?:(?:this|the|that|exact|given) )*(?:sequence|order|turn|full)", re.I)
# behind a command: "`make lint` - *run all linters* before committing"
_DESCRIPTION = re.compile(
    r"(?!.*\b(?:if|when|unless|only|optional)\b)(?:runs?|checks?) [^`]*", re.I
)
_PRE_COMMIT = re.compile(r"(?:the |all |full )*pre-commit(?: hooks| suite| checks)?", re.I)
_THESE = re.compile(
    r"|(?:all |both |each )?(?:of )?(?:these|the following|following|checks|all)(?: \w+){0,3}"
    r"|full validation|validation",
    re.I,
)
_RUNS = re.compile(r"(?:then )?(?:re-?run|run|execute)\b", re.I)
_BESIDE = ("", "first", "command", "commands")  # words beside a command that is named alone
_NEXT_STEP = re.compile(r"(?:and |then |only )*(?P<act>(?:git )?(?:commit|push|merge)\b.*)", re.I)


def run_rule(clause: Clause) -> list[Draft]:
    """Reads "run `make test` before committing" and "after editing `a.proto`, run `make gen`"."""
    if clause.is_prohibited or offers_another(clause.statement.text):
        return []
    label = clause.statement.label
    for text in (clause.text, f"{label}: {clause.text}" if label else ""):
        instruction = instruction_of(text)
        if instruction and instruction.modality is Modality.NEVER:
            rules = _required_by_prohibition(instruction)
        elif instruction and instruction.binds:
            rules = _required_by_order(instruction, clause)
        else:
            rules = []
        if rules:
            return rules
    return []


def _required_by_order(instruction: Instruction, clause: Clause) -> list[Draft]:
    """Reads "run `make test` before committing"."""
    occasion = occasion_of_instruction(instruction)
    if occasion is None and clause.begins_statement:
        occasion = _occasion_of_next_step(instruction)
    if occasion is None or not _is_unlimited(instruction):
        return []
    if instruction.does(["use"]) and instruction.text_of(Relation.WHEN, Relation.IF):
        return []  # "when committing, use `make commit`" is about the commit itself
    commands = _commands_run(instruction)
    if not commands and _runs_block(instruction):
        return require_block(clause.statement.block, occasion)
    return require(commands, occasion, are_run=instruction.does(_RUN_VERBS))


def _required_by_prohibition(instruction: Instruction) -> list[Draft]:
    """Reads "never commit without running `make test`" and "never push if `make test` fails"."""
    commands: list[str] = []
    for relation, text in instruction.circumstances:
        if relation not in _CONDITIONS:
            continue
        fails = _FAILS.fullmatch(text)
        match = fails if relation is Relation.IF else _WITHOUT.fullmatch(text)
        if match is None or (fails and relation is not Relation.IF):
            return []  # a condition that is none of a command
        commands += listed_commands(match["codes"])
    work = " ".join([instruction.verbs[-1], instruction.object, *instruction.texts_of(Relation.AS)])
    if instruction.does(_REPORTS_OR_ENDS) and is_end_of_work(work):
        return require(commands, END_OF_WORK)
    acts = acts_of(instruction, *_CONDITIONS)
    return require(commands, BeforeEvent(gate_of(acts))) if acts else []


def _occasion_of_next_step(instruction: Instruction) -> Occasion | None:
    """The occasion of "run `make test`, then commit"."""
    steps = instruction.texts_of(Relation.THEN)
    step = _NEXT_STEP.fullmatch(steps[-1]) if steps else None
    relations = {circumstance.relation for circumstance in instruction.circumstances}
    if step is None or not relations <= {Relation.THEN, Relation.WITH}:
        return None
    return occasion_of(Circumstance(Relation.BEFORE, step["act"]))


def _is_unlimited(instruction: Instruction) -> bool:
    """Whether nothing but its occasions limits an instruction."""
    goes_on = False  # the place of a change, or a part of a purpose
    for relation, text in instruction.circumstances:
        goes_on = goes_on or relation in (Relation.TO, Relation.ON, *OCCASIONS)
        is_place = relation in _PLACES and not _MANNER.fullmatch(text)
        if is_place and not goes_on and not _ROOT.fullmatch(text):
            return False
        if relation is Relation.EXPLANATION and not _DESCRIPTION.fullmatch(text):
            return False
        if relation is Relation.ON and not re.match("every|each|any", text):
            return False
    is_limited_otherwise = not instruction.has_only(*OCCASIONS, *_PLACES, *_FURTHER)
    return not is_limited_otherwise and len(instruction.texts_of(Relation.BEFORE)) <= 1


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


def _is_named_command(instruction: Instruction) -> bool:
    """Whether the only word behind "run" is a command that people write in backticks elsewhere."""
    return " " not in instruction.object and is_command(instruction.object)


def _runs_block(instruction: Instruction) -> bool:
    """Whether the code block below an instruction is what it runs: "before pushing, run these"."""
    if not instruction.does(RUN | CHECK) or "`" in instruction.object:
        return False
    return not instruction.does(RUN) or _THESE.fullmatch(instruction.object) is not None
