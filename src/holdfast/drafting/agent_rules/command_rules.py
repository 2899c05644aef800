"""Rules about commands that are never run: "never run `git push --force`"."""

import re
from collections.abc import Sequence

from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.clauses import Clause, all_known, names_in
from holdfast.drafting.grammar.commands import (
    any_of,
    command_pattern,
    installs_of,
    is_command,
    is_runnable,
    is_tool,
)
from holdfast.drafting.grammar.forms import (
    CODES,
    OBJECTS,
    TAIL,
    forms,
    whole_match,
)
from holdfast.drafting.grammar.instruction_words import RUN, Relation
from holdfast.drafting.grammar.instructions import Instruction, Modality, instruction_of

_IN_THIS_PROJECT = re.compile(r"(?:this|the) (?:project|repo|repository)", re.I)
_VERBS = (RUN | {"introduce", "test", "build"}) - {"pass", "succeed"}
_COMMANDS_BUT_THESE = re.compile(
    rf"(?:any )?other [\w -]+ \((?:e\.g\.,? |such as |like )?(?P<commands>{CODES})(?:,? etc\.?)?\)",
    re.I,
)
_THINGS_RUN = re.compile("|it|this|them|these|tests|commands?|code|project", re.I)
_FORBIDDEN_COMMANDS = forms(
    {
        "bare `npm install`, yarn or any other npm commands directly": (
            r"(?:(?:bare|plain|raw|global|system) )?(?:commands? )?"
            rf"(?P<commands>{OBJECTS})"
            r"(?:,? or any(?: other)? [\w-]+(?: [\w-]+)?)?(?: commands?)?"
            rf"{TAIL}"
        )
    }
)

_INSTALLATION = re.compile(
    r"(?:(?:install(?:ing)?|add(?:ing)?|manag(?:e|ing)|all) )?(?:(?:new|any|the|npm|node|python) )*"
    r"(?:packages?|dependenc(?:y|ies)|libraries|modules|installs?|installation"
    r"|(?:package|dependency) (?:management|installation|installs))",
    re.I,
)


def forbidden_command_rule(clause: Clause) -> list[Draft]:
    """Reads "never run `git push --force`"."""
    instruction = instruction_of(clause.text, clause.is_prohibited)
    if (
        instruction is None
        or instruction.modality is not Modality.NEVER
        or not instruction.does(_VERBS)
        or not instruction.has_only(Relation.FOR, Relation.TO, Relation.WITH)
    ):
        return []
    if managers := _forbid_installs(instruction):
        return managers
    purpose = instruction.text_of(Relation.FOR) or "this project"
    is_always = _IN_THIS_PROJECT.fullmatch(purpose) is not None
    if not is_always or not instruction.has_only(Relation.FOR, Relation.WITH):
        return []
    if tool := instruction.text_of(Relation.WITH):  # "do not run the tests with `cargo test`"
        is_tests = _THINGS_RUN.fullmatch(instruction.object) is not None
        is_list = re.fullmatch(CODES, tool) is not None
        return forbid_commands(commands_in(tool)) if is_tests and is_list else []
    return _forbid_object(instruction)


def _forbid_object(instruction: Instruction) -> list[Draft]:
    """The rule that the object of an instruction is not run; [] if it may be no command."""
    if others := _COMMANDS_BUT_THESE.fullmatch(instruction.object):
        return forbid_commands(commands_in(others["commands"]))
    match = whole_match(_FORBIDDEN_COMMANDS, instruction.object)
    if match is None:
        return []
    is_run = instruction.does(("run", "execute"))
    return forbid_commands(commands_in(match["commands"], is_run=is_run))


def _forbid_installs(instruction: Instruction) -> list[Draft]:
    """Reads "never use npm or yarn to install packages"; whatever else they do is allowed."""
    if not (instruction.has_only(Relation.FOR) or instruction.has_only(Relation.TO)):
        return []
    purpose = instruction.text_of(Relation.FOR) or instruction.text_of(Relation.TO) or ""
    match = whole_match(_FORBIDDEN_COMMANDS, instruction.object)
    if match is None or not _INSTALLATION.fullmatch(purpose):
        return []
    installs = all_known([installs_of(name) for name, _ in names_in(match["commands"])])
    return forbid_matches(any_of(installs)) if installs else []


def commands_in(objects: str, *, is_run: bool = False) -> list[str]:
    """The commands of a list; [] if the list may have something else than commands.

    Args:
        is_run: whether the text says that they are run, so that any program may be meant.
    """
    names = names_in(objects)
    for name, is_code in names:
        if is_code and not (is_command(name) or (is_run and _may_be_run(name))):
            return []
        if not is_code and not is_tool(name):
            return []
    return [name for name, _ in names]


def _may_be_run(code: str) -> bool:
    """Whether code that is said to be run has arguments or a path, and so is a command."""
    is_script = re.search(r"/[\w-]+(?:\.(?:sh|py|m?js|ts|rb|ps1))?$", code)
    return (" " in code or is_script is not None) and is_runnable(code)


def forbid_commands(commands: Sequence[str]) -> list[Draft]:
    """Forbids some commands; [] if there are none."""
    return forbid_matches(any_of(map(command_pattern, commands))) if commands else []


def forbid_matches(pattern: str) -> list[Draft]:
    """Forbids the commands that a pattern matches."""
    return [Draft("command", "prohibition", measure("command_not_run", command=pattern))]
