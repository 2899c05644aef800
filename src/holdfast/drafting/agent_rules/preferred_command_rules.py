"""Rules about commands that are used in place of others: "use pnpm, not npm"."""

import re
from collections.abc import Sequence

from holdfast.drafting.agent_rules.command_rules import commands_in, forbid_commands
from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.clauses import Clause
from holdfast.drafting.grammar.commands import (
    any_of,
    command_pattern,
    managers_beside,
    other_installs,
)
from holdfast.drafting.grammar.forms import (
    ADVERBS,
    CODE,
    CODES,
    OBJECTS,
    TAIL,
    forms,
    whole_match,
)
from holdfast.drafting.grammar.instruction_words import CHECK, Relation
from holdfast.drafting.grammar.instructions import Instruction, Modality, instruction_of

# --- One command instead of another

# what a package manager is for, so that it limits nothing
_PURPOSE = re.compile(
    r"(?:all |any )?(?:package|dependency|dependencies|installing|everything|installs)[\w\s]*", re.I
)
_USES = ("use", "run", "call", "edit", "add", "update")
_DONE_WITH = CHECK | {"install", "manage", "run", "do", "add", "commit"}
_AGAINST = (Relation.INSTEAD_OF, Relation.NOT)
_PURPOSES = (Relation.FOR, Relation.IN, Relation.WITH)
_WANTED_COMMAND = forms({"`rg` only": rf"(?:{CODE}|[\w.-]+)(?: \w+)?"})
_WORDS_BEFORE_COMMANDS = re.compile(r"^(?:(?:just|plain|raw|bare|the|use|using|running|run) )+")
_UNWANTED_COMMANDS = forms(
    {"npm or `yarn` directly": rf"(?P<commands>{OBJECTS})(?: commands?| directly| CLI)?{TAIL}"}
)
_ANY_VERB_NOT = forms(
    {"Stage files by name, not `git add -A`": rf"[^`]+, not (?P<commands>{CODES})"}
)

# --- One command rather than another

_OVER = (Relation.OVER, Relation.TO, Relation.INSTEAD_OF)
_LISTED_COMMANDS = forms({"`rg` commands": rf"(?P<commands>{OBJECTS})(?: commands?| directly)?"})
_PREFERRED_MANAGER = forms(
    {
        "Use `bun` as the preferred package manager": (
            r"use `?(?P<name>\w+)`? as (?:the|our|your) preferred package manager"
            r"(?: and [\w -]+)?(?: for [^`]+)?"
        )
    }
)
_PREFERRED_OVER = re.compile(  # "bun (preferred over npm)"
    rf"(?:use )?`?(?P<name>\w+)`? \(preferred (?:over|to) {OBJECTS}\)", re.I
)

# --- The package manager

_MANAGER = r"`?(?P<name>pnpm|npm|yarn|bun|uv|poetry)`?"
_PACKAGES = r"(?:\w+ )?(?:package|dependency) (?:manager|management|installs?)"
_ONLY_MANAGER = forms(
    {
        "Always use pnpm for all package management": (
            rf"{ADVERBS}use {_MANAGER}(?: (?:exclusively|only))?"
            rf" (?:as|for) (?:the |your |our |its |all )*{_PACKAGES}{TAIL}"
        ),
        "Always use uv": rf"(?:always |only )?use {_MANAGER}(?: (?:only|exclusively))?{TAIL}",
        "only yarn": rf"only {_MANAGER}",
    }
)
# a heading about a part of the repository, which may have a package manager of its own
_PART_OF_REPOSITORY = re.compile(
    r"\b(?:in|for|under|inside) `|^\W*`?[\w.-]+/|\b(?:docs|documentation|examples?|demos?)"
    r" ?(?:site|app|$)|\b(?:web)?site\b",
    re.I,
)


def replacement_rule(clause: Clause) -> list[Draft]:
    """Reads "use pnpm, not npm or yarn"."""
    if clause.is_prohibited:
        return []
    if match := whole_match(_ANY_VERB_NOT, clause.text):  # "stage files by name, not `git add -A`"
        commands = commands_in(match["commands"])
        if commands and all(" " in command for command in commands):
            return forbid_commands(commands)
    text = re.sub(r"^uses ", "use ", clause.text, flags=re.I)
    text = re.sub(r"(?<=[`\w]) (?:only|exclusively)(?=[, ])", "", text)
    instruction = instruction_of(text)
    return forbid_commands(_replaced_commands(instruction)) if instruction else []


def _replaced_commands(instruction: Instruction) -> list[str]:
    """The commands in whose place another is used; [] if the instruction is about something else,
    or if more than a usual purpose limits it.
    """
    rejected = instruction.text_of(*_AGAINST)
    wanted = instruction.object
    if not instruction.does(_USES):  # "install packages with `uv`, not `pip`"
        wanted = (instruction.text_of(Relation.WITH) or "") if instruction.does(_DONE_WITH) else ""
    if rejected is None or not wanted or not instruction.binds:
        return []
    if not instruction.has_only(*_AGAINST, *_PURPOSES, Relation.AS):
        return []
    if not (whole_match(_WANTED_COMMAND, wanted) or "`" in rejected):
        return []
    circumstances = instruction.circumstances
    first = next(n for n, (relation, _) in enumerate(circumstances) if relation in _AGAINST)
    purposes = [text for relation, text in circumstances[first:] if relation in _PURPOSES]
    unwanted = whole_match(_UNWANTED_COMMANDS, _WORDS_BEFORE_COMMANDS.sub("", rejected))
    if unwanted is None or not all(map(_PURPOSE.fullmatch, purposes)):
        return []
    commands = commands_in(unwanted["commands"])
    preferred = wanted.strip("`")
    if any(preferred.startswith(f"{name} ") or preferred == name for name in commands):
        return []  # in "`npm run test`, not `npm`", the preferred command begins as the other
    return commands


def preference_rule(clause: Clause) -> list[Draft]:
    """Reads "prefer `rg` over `grep`"."""
    if clause.is_prohibited:
        return []
    match = whole_match(_PREFERRED_MANAGER, clause.text)
    match = match or _PREFERRED_OVER.match(clause.statement.text)
    if match and (others := managers_beside(match["name"].lower())):
        return _require_rather([match["name"].lower()], others)
    instruction = instruction_of(clause.text)
    if instruction is None or instruction.modality is not Modality.PREFER:
        return []
    rejected = instruction.text_of(*_OVER)
    if rejected is None or not instruction.has_only(*_OVER):
        return []
    use = _commands_of_list(instruction.object)
    rather_than = _commands_of_list(
        re.sub(r"^(?:using|running|plain|raw|bare|the|direct) ", "", rejected)
    )
    if not use or not rather_than or set(use) & set(rather_than):
        return []
    return _require_rather(use, rather_than)


def _commands_of_list(text: str) -> list[str]:
    """The commands of "`rg` or `fd` commands"; [] if the text may be about something else."""
    match = whole_match(_LISTED_COMMANDS, text)
    return commands_in(match["commands"]) if match else []


def _require_rather(use: Sequence[str], rather_than: Sequence[str]) -> list[Draft]:
    """Requires some commands rather than others."""
    spec = measure(
        "prefers",
        use=any_of(map(command_pattern, use)),
        rather_than=any_of(map(command_pattern, rather_than)),
    )
    return [Draft("command", "requirement", spec)]


def package_manager_rule(clause: Clause) -> list[Draft]:
    """Reads "use pnpm as the package manager"."""
    if clause.is_prohibited or any(map(_PART_OF_REPOSITORY.search, clause.statement.under)):
        return []
    match = whole_match(_ONLY_MANAGER, clause.text)
    installs = other_installs(match["name"].lower()) if match else None
    if installs is None:
        return []
    return [Draft("command", "requirement", measure("command_not_run", command=installs))]
