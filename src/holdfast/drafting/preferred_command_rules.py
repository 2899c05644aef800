"""Rules about commands that are used in place of others: "use pnpm, not npm"."""

import re
from collections.abc import Sequence

from holdfast.drafting.clauses import Clause
from holdfast.drafting.command_rules import commands_in, forbid_commands
from holdfast.drafting.commands import any_of, command_pattern, managers_beside, other_installs
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import (
    ADVERBS,
    CODE,
    CODES,
    OBJECTS,
    TAIL,
    forms,
    one_of,
    whole_match,
)
from holdfast.drafting.instruction_words import CHECK
from holdfast.drafting.instructions import Instruction, Modality, instruction_of

# --- One command instead of another

# what a package manager is for, so that it limits nothing
_PURPOSE = re.compile(
    r"(?:all |any )?(?:package|dependency|dependencies|installing|everything|installs)[\w\s]*", re.I
)
_USES = ("use", "run", "call", "edit", "add", "update")
_DONE_WITH = CHECK | {"install", "manage", "run", "do", "add", "commit"}
_AGAINST = ("instead of", "in place of", "rather than", "not", "never")
_PURPOSE_WORDS = ("for", "in", "with", "via")
_PAIRS = re.compile(rf"{CODE} (?:instead of|rather than|over|not) ({CODE})")
_WANTED_COMMAND = forms({"`rg` only": rf"(?:{CODE}|[\w.-]+)(?: \w+)?"})
_BEFORE_COMMANDS = re.compile(r"^(?:(?:just|plain|raw|bare|the|use|using|running|run) )+")
_UNWANTED_COMMANDS = forms(
    {"npm or `yarn` directly": rf"(?P<commands>{OBJECTS})(?: commands?| directly| CLI)?{TAIL}"}
)
_ANY_VERB_NOT = forms(
    {"Stage files by name, not `git add -A`": rf"[^`]+, not (?P<commands>{CODES})"}
)

# --- One command rather than another

_OVER = ("over", "to", "instead of", "rather than")
_COMMAND_LIST = forms({"`rg` commands": rf"(?P<commands>{OBJECTS})(?: commands?| directly)?"})
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

_PACKAGES = r"(?:Python |Node |JavaScript |JS )?" + one_of(
    r"(?:package|dependency)"
    r"(?: and (?:package|dependency|environment|project|virtual environment))? manage(?:r|ment)",
    *("package operations", "package installs?", "package installation", "dependencies"),
    *("packages", "installing (?:packages|dependencies)", "managing dependencies"),
    "dependency installs?",
)
_MANAGER = r"`?(?P<name>\w+)`?"
_KNOWN_MANAGER = r"`?(?P<name>pnpm|npm|yarn|bun|uv|poetry)`?"
_MANAGER_FOR_PACKAGES = forms(
    {
        "Use pnpm for all package management": (
            rf"{ADVERBS}(?:use|(?:(?:this|the) (?:project|repo|repository|codebase) )?"
            rf"uses(?= `?\w+`? (?:exclusively|only))) {_MANAGER}(?: (?:exclusively|only))?"
            rf" (?:as|for) (?:the |your |our |its |all )*{_PACKAGES}{TAIL}"
        )
    }
)
_ONLY_MANAGER = forms(
    {
        "always use uv": rf"(?:always |only )use {_MANAGER}{TAIL}",
        "use bun only": rf"(?:always )?use {_MANAGER} (?:only|exclusively)",
        "package manager is pnpm only": (
            rf"(?:package manager (?:is|must be) )?{_KNOWN_MANAGER} only"
        ),
        "only yarn": rf"only {_KNOWN_MANAGER}",
        "use pnpm": rf"use {_KNOWN_MANAGER}",
    }
)
_MANAGER_LABEL = forms({"Package manager": r"package manager"})
_LABELLED_MANAGER = forms({"use pnpm only": rf"(?:always )?(?:use )?{_MANAGER}(?: only)?"})
_MUST = re.compile(r"\b(?:always|use|only|required|must|exclusively)\b", re.I)
_MANAGER_HEADING = re.compile(r"\bpackage manager", re.I)
# a heading about a part of the repository, which may have a package manager of its own
_OF_A_PART = re.compile(
    r"\b(?:in|for|under|inside) `|^\W*`?[\w.-]+/|\b(?:docs|documentation|examples?|demos?)"
    r" ?(?:site|app|$)|\b(?:web)?site\b",
    re.I,
)
_MANAGER_BELOW = forms({"use pnpm": rf"(?:always |only )?use {_MANAGER}{TAIL}"})


def replacement_rule(clause: Clause) -> list[Draft]:
    """Reads "use pnpm, not npm or yarn"."""
    if clause.is_prohibited:
        return []
    pairs = _PAIRS.findall(clause.text)
    if len(pairs) > 1:  # "`fd` instead of `find` and `rg` instead of `grep`"
        commands = commands_in(", ".join(pairs))
        return forbid_commands(commands) if commands else []
    if match := whole_match(_ANY_VERB_NOT, clause.text):  # "stage files by name, not `git add -A`"
        commands = commands_in(match["commands"])
        if commands and all(" " in command for command in commands):
            return forbid_commands(commands)
    text = re.sub(r"^uses ", "use ", clause.text, flags=re.I)
    text = re.sub(r"(?<=[`\w]) (?:only|exclusively)(?=[, ])", "", text)
    instruction = instruction_of(text)
    commands = _replaced_commands(instruction) if instruction else None
    return forbid_commands(commands) if commands else []


def _replaced_commands(instruction: Instruction) -> list[str] | None:
    """The commands in whose place another is used; None if the instruction is about something
    else, or if more than a usual purpose limits it.
    """
    rejected = instruction.behind(*_AGAINST)
    wanted = instruction.object
    if not instruction.does(_USES):  # "install packages with `uv`, not `pip`"
        wanted = (instruction.behind("with") or "") if instruction.does(_DONE_WITH) else ""
    if (
        rejected is None
        or not wanted
        or not instruction.binds
        or not instruction.has_only(*_AGAINST, "as", "for", "via", "with", "in")
        or not (whole_match(_WANTED_COMMAND, wanted) or "`" in rejected)
    ):
        return None
    circumstances = instruction.circumstances
    first = next(n for n, (word, _) in enumerate(circumstances) if word in _AGAINST)
    purposes = [text for word, text in circumstances[first:] if word in _PURPOSE_WORDS]
    unwanted = whole_match(_UNWANTED_COMMANDS, _BEFORE_COMMANDS.sub("", rejected))
    commands = commands_in(unwanted["commands"]) if unwanted else None
    if not commands or not all(map(_PURPOSE.fullmatch, purposes)):
        return None
    preferred = wanted.strip("`")
    if any(preferred.startswith(f"{name} ") or preferred == name for name in commands):
        return None  # in "`npm run test`, not `npm`", the preferred command begins as the other
    return commands


def preference_rule(clause: Clause) -> list[Draft]:
    """Reads "prefer `rg` over `grep`"."""
    if clause.is_prohibited:
        return []
    match = whole_match(_PREFERRED_MANAGER, clause.text)
    match = match or _PREFERRED_OVER.match(clause.statement.text)
    if match and (others := managers_beside(match["name"].lower())):
        return _prefer([match["name"].lower()], others)
    instruction = instruction_of(clause.text)
    if instruction is None or instruction.modality is not Modality.PREFER:
        return []
    rejected = instruction.behind(*_OVER)
    if rejected is None or not instruction.has_only(*_OVER):
        return []
    use = _commands_of_list(instruction.object)
    rather_than = _commands_of_list(
        re.sub(r"^(?:using|running|plain|raw|bare|the|direct) ", "", rejected)
    )
    if not use or not rather_than or set(use) & set(rather_than):
        return []
    return _prefer(use, rather_than)


def _commands_of_list(text: str) -> list[str] | None:
    """The commands of "`rg` or `fd` commands"; None if the text may be about something else."""
    match = whole_match(_COMMAND_LIST, text)
    return commands_in(match["commands"]) if match else None


def _prefer(use: Sequence[str], rather_than: Sequence[str]) -> list[Draft]:
    """Requires some commands rather than others."""
    spec = {
        "name": "prefers",
        "use": any_of(map(command_pattern, use)),
        "rather_than": any_of(map(command_pattern, rather_than)),
    }
    return [Draft("command", "requirement", spec)]


def package_manager_rule(clause: Clause) -> list[Draft]:
    """Reads "use pnpm as the package manager"."""
    statement = clause.statement
    if clause.is_prohibited or any(map(_OF_A_PART.search, statement.under)):
        return []
    ways = _MANAGER_FOR_PACKAGES + _ONLY_MANAGER
    if whole_match(_MANAGER_LABEL, statement.label) and _MUST.search(statement.text):
        ways += _LABELLED_MANAGER
    if statement.under and _MANAGER_HEADING.search(statement.under[-1]):
        ways += _MANAGER_BELOW
    match = whole_match(ways, clause.text)
    installs = other_installs(match["name"].lower()) if match else None
    if installs is None:
        return []
    return [Draft("command", "requirement", {"name": "command_not_run", "command": installs})]
