"""Rules about commands: never run one, use one instead of another, prefer one to another."""

import re
from collections.abc import Sequence

from holdfast.drafting.clauses import all_known, names_in
from holdfast.drafting.commands import (
    any_of,
    command_pattern,
    installs_of,
    is_command,
    is_runnable,
    is_tool,
    managers_beside,
    other_installs,
    pattern_without_option,
)
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import (
    ADVERBS,
    CODE,
    CODES,
    NEVER,
    OBJECTS,
    TAIL,
    any_words,
    forbidden,
    forms,
    one_of,
    whole_match,
)
from holdfast.drafting.instructions import RUN, Instruction, Modality, instruction_of
from holdfast.drafting.rules_file import Statement


def commands_in(objects: str, is_run: bool = False) -> list[str] | None:
    """The commands of a list; None if something in it may be none.

    Args:
        is_run: whether the text says that they are run, so that any program may be meant.
    """
    names = names_in(objects)
    for name, is_code in names:
        if is_code and not (is_command(name) or (is_run and _may_be_run(name))):
            return None
        if not is_code and not is_tool(name):
            return None
    return [name for name, _ in names] or None


def _may_be_run(code: str) -> bool:
    """Whether code that is said to be run is a command: one with arguments, or with a path."""
    is_script = re.search(r"/[\w-]+(?:\.(?:sh|py|m?js|ts|rb|ps1))?$", code)
    return (" " in code or is_script is not None) and is_runnable(code)


def not_run(commands: Sequence[str]) -> list[Draft]:
    """A rule that none of some commands is run."""
    return not_matched(any_of(map(command_pattern, commands)))


def not_matched(pattern: str) -> list[Draft]:
    """A rule that no command is run that a pattern matches."""
    return [Draft("command", "prohibition", {"name": "command_not_run", "command": pattern})]


_IN_THIS_PROJECT = re.compile(r"(?:this|the) (?:project|repo|repository)", re.I)
_ALWAYS_NEVER = f"{any_words('always', 'please')}{NEVER}"
_NEVER_RUN = forms(
    {
        "never bare `python`": rf"never (?:bare|plain|raw) (?P<commands>{OBJECTS})",
        "Do not use other servers (e.g. `python -m http.server`, etc.)": (
            rf"{_ALWAYS_NEVER} (?:run|use) (?:any )?other [\w -]+"
            rf" \((?:e\.g\.,? |such as |like )?(?P<commands>{CODES})(?:,? etc\.?)?\)"
        ),
        "Do not run the tests directly with `cargo test`": (
            rf"{_ALWAYS_NEVER} (?:run|execute|start|test|build)"
            r" (?:it|this|them|these|the tests|tests)(?: directly)?"
            rf" (?:with|using|via|through|by running) (?P<commands>{CODES})"
        ),
    }
)
_SCRIPT = re.compile(r"`([a-z][\w-]*(?::[\w-]+)+)`")  # of package.json, such as `test:all`
_COMMANDS = forms(
    {
        "bare `npm install`, yarn or any other npm commands directly": (
            r"(?:(?:bare|plain|raw|global|system) )?(?:commands? )?"
            rf"(?P<commands>{OBJECTS})"
            r"(?:,? or any(?: other)? [\w-]+(?: [\w-]+)?)?(?: commands?)?"
            rf"{TAIL}"
        )
    }
)
_ALL_OF_GIT = forms({"git commands": rf"git(?: (?:commands?|operations?))+{TAIL}"})
_BARE_COMMAND = forms(
    {
        "git stash directly": (
            r"(?P<command>(?:git|npm|pnpm|yarn|cargo|docker|make|go|pip) [a-z][\w:-]*"
            rf"(?: --?[\w-]+)?){TAIL}"
        )
    }
)
_THINGS_OF_TOOLS = re.compile(r" (?:hooks?|commands?|operations?|packages?|history|state|files?)\b")

_STARTING_SERVERS = forbidden(
    {
        "start the dev server": (
            rf"(?:start|run|launch) (?:the |a |any )?(?:local )?dev(?:elopment)? servers?{TAIL}"
        )
    }
)
_SERVERS = (
    r"(?:(?:npm|pnpm|yarn|bun)(?: run)? (?:dev|start|serve)|(?:(?:npx|bunx|pnpm|yarn) )?(?:next dev"
    r"|vite(?: dev)?|ng serve|astro dev|nuxt dev)|flask run|rails s(?:erver)?"
    r"|python3? manage\.py runserver)(?!\S)"
)
_OF_INSTALLS = re.compile(
    r"(?:(?:install(?:ing)?|add(?:ing)?|manag(?:e|ing)|all) )?(?:(?:new|any|the|npm|node|python) )*"
    r"(?:packages?|dependenc(?:y|ies)|libraries|modules|installs?|installation"
    r"|(?:package|dependency) (?:management|installation|installs))",
    re.I,
)


def forbidden_command_rule(
    clause: str, statement: Statement, prohibits: bool
) -> list[Draft] | None:
    """Never run `git push --force`."""
    if match := whole_match(_NEVER_RUN, clause):
        commands = commands_in(match["commands"])
        return not_run(commands) if commands else None
    if _STARTING_SERVERS.match(clause, prohibits):
        return not_matched(_SERVERS)
    instruction = instruction_of(clause, prohibits)
    if (
        instruction is None
        or instruction.modality is not Modality.NEVER
        or not instruction.does(RUN | {"introduce"})
        or not instruction.has_only("for", "to")
    ):
        return None
    if manager := _managers_not_used(instruction):
        return manager
    purpose = instruction.behind("for") or "this project"
    if not instruction.has_only("for") or not _IN_THIS_PROJECT.fullmatch(purpose):
        return None
    script = _SCRIPT.fullmatch(instruction.object)
    if script and "run" in instruction.verbs:
        return not_matched(rf"(?:npm|pnpm|yarn|bun)(?: run)? {re.escape(script[1])}(?!\S)")
    commands = _forbidden_commands(instruction.object, instruction.does(("run", "execute")))
    return not_run(commands) if commands else None


def _forbidden_commands(text: str, is_run: bool) -> list[str] | None:
    """The commands that a text names; None if it may name something else."""
    match = whole_match(_COMMANDS, text)
    commands = commands_in(match["commands"], is_run) if match else None
    if commands:
        return commands
    if whole_match(_ALL_OF_GIT, text):
        return ["git"]
    bare = whole_match(_BARE_COMMAND, text)
    if bare and not _THINGS_OF_TOOLS.search(bare["command"]):
        return [bare["command"]]
    return None


def _managers_not_used(instruction: Instruction) -> list[Draft] | None:
    """Never use npm or yarn to install packages: what they run otherwise is allowed."""
    if not (instruction.has_only("for") or instruction.has_only("to")):
        return None
    purpose = instruction.behind("for") or instruction.behind("to") or ""
    match = whole_match(_COMMANDS, instruction.object)
    if match is None or not _OF_INSTALLS.fullmatch(purpose):
        return None
    installs = all_known([installs_of(name) for name, _ in names_in(match["commands"])])
    return not_matched(any_of(installs)) if installs else None


# the heading of a list of commands, or its end
_RUN_NONE = re.compile(
    rf"{NEVER} (?:attempt to |try to )?(?:run|use|execute)"
    r"(?: (?:these|the following|any|interactive))* commands?"
    r"(?: like| such as| directly| yourself)*[\s:!.]*$",
    re.I,
)
_RUN_NO_SUCH = forms({"NEVER USE THIS": rf"{NEVER} (?:use|run) (?:this|it)"})


def command_item_rule(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """An item `pnpm new` below "Never run these commands", or `x` - NEVER USE THIS."""
    first, *others = re.split(r"\s[—–-]+\s", statement.text)
    code = re.fullmatch(r"`([^`]+)`", first.strip())
    if code is None or not is_runnable(code[1]):
        return None
    above = re.split(r" [—–-] ", statement.under[-1])[0] if statement.under else ""
    says_so = any(whole_match(_RUN_NO_SUCH, piece.strip(" .!")) for piece in others)
    return not_run([code[1]]) if says_so or _RUN_NONE.search(above) else None


# what packages are managed for, and no purpose that would narrow a rule
_PURPOSE = re.compile(
    r"(?:all |any )?(?:package|dependency|dependencies|installing|everything|installs)[\w\s]*", re.I
)
_AGAINST = ("instead of", "in place of", "rather than", "not", "never")
_PAIRS = re.compile(rf"{CODE} (?:instead of|rather than|over|not) ({CODE})")
_WANTED_COMMAND = forms({"`rg` only": rf"(?:{CODE}|[\w.-]+)(?: \w+)?"})
_BEFORE_COMMANDS = re.compile(r"^(?:(?:just|plain|raw|bare|the|use|using|running|run) )+")
_UNWANTED_COMMANDS = forms(
    {"npm or `yarn` directly": rf"(?P<commands>{OBJECTS})(?: commands?| directly| CLI)?{TAIL}"}
)
_ANY_VERB_NOT = forms(
    {"Stage files by name, not `git add -A`": rf"[^`]+, not (?P<commands>{CODES})"}
)


def replacement_rule(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Use pnpm, not npm or yarn."""
    if prohibits:
        return None
    pairs = _PAIRS.findall(clause)
    if len(pairs) > 1:  # "`fd` instead of `find` and `rg` instead of `grep`"
        commands = commands_in(", ".join(pairs))
        return not_run(commands) if commands else None
    if match := whole_match(_ANY_VERB_NOT, clause):  # "stage files by name, not `git add -A`"
        commands = commands_in(match["commands"])
        if commands and all(" " in command for command in commands):
            return not_run(commands)
    plain = re.sub(r"^uses ", "use ", clause, flags=re.I)
    instruction = instruction_of(re.sub(r"(?<=[`\w]) (?:only|exclusively)(?=[, ])", "", plain))
    against = instruction.behind(*_AGAINST) if instruction else None
    if (
        instruction is None
        or against is None
        or instruction.modality is not Modality.MUST
        or not instruction.has_only(*_AGAINST, "as", "for", "via", "with", "in")
        or not instruction.does(("use", "run", "call", "edit", "add", "update"))
        or not (whole_match(_WANTED_COMMAND, instruction.object) or "`" in against)
    ):
        return None
    comparisons = [
        number for number, (word, _) in enumerate(instruction.circumstances) if word in _AGAINST
    ]
    behind = instruction.circumstances[comparisons[0] :]
    purposes = [text for word, text in behind if word in ("for", "in", "with", "via")]
    unwanted = whole_match(_UNWANTED_COMMANDS, _BEFORE_COMMANDS.sub("", against))
    commands = commands_in(unwanted["commands"]) if unwanted else None
    if not commands or not all(map(_PURPOSE.fullmatch, purposes)):
        return None
    wanted = instruction.object.strip("`")
    if any(wanted.startswith(f"{name} ") or wanted == name for name in commands):
        return None  # `npm run test`, not `npm`: what is wanted begins with what is not
    return not_run(commands)


# long options that are mostly written as one letter
_OF_A_LETTER = one_of(
    *"all detach dev exclude file force global help interactive message output".split(),
    *"parallel quiet recursive save-dev signoff sign-off upgrade verbose version watch yes".split(),
)
# one letter may also stand among others, or as its long name: `-sm`, `--signoff`
_OPTION = (
    rf"`(?P<option>--(?!{_OF_A_LETTER}\b(?!-))[A-Za-z][\w-]*|-[A-Za-z][\w-]{{3,}})"
    r"(?:[= ][^`]*)?`(?: flag| option)?"
)
_COMMAND = rf"(?P<command>{CODE})(?: (?:commands?|calls?|invocations?))?"
_TO = "(?:to|with|for|on|when (?:running|using|calling))"
_ALWAYS = "(?:please )?(?:you must )?always"
_FOR_A_REASON = r"(?: (?:to|so that|for|because) [^`]+)?"
_WITH_OPTION = forms(
    {
        "Always run `uv run` with the `--frozen` flag": (
            rf"{_ALWAYS} (?:run|use|call|invoke) (?:the )?{_COMMAND} with (?:the )?{_OPTION}"
            rf"{_FOR_A_REASON}"
        ),
        "Always pass `--frozen` to `uv run`": (
            rf"{_ALWAYS} (?:pass|use|add|include) (?:the )?{_OPTION} {_TO}"
            rf" (?:the |all |every |any )?{_COMMAND}{_FOR_A_REASON}"
        ),
        "Pass `--frozen` to all `uv run` commands": (
            rf"{ADVERBS}(?:pass|use|add|include) (?:the )?{_OPTION} {_TO}"
            rf" (?:all|every|any) {_COMMAND}{_FOR_A_REASON}"
        ),
    }
)


def option_rule(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Always run `uv run` with `--frozen`."""
    match = None if prohibits else whole_match(_WITH_OPTION, clause)
    command = match["command"].strip("`") if match else ""
    if match is None or not is_command(command):
        return None
    pattern = pattern_without_option(command, match["option"])
    return [Draft("command", "requirement", {"name": "command_not_run", "command": pattern})]


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


def preference_rule(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Prefer `rg` over `grep`."""
    manager = whole_match(_PREFERRED_MANAGER, clause) or _PREFERRED_OVER.match(statement.text)
    if manager and (beside := managers_beside(manager["name"].lower())) and not prohibits:
        return _prefers([manager["name"].lower()], beside)
    instruction = instruction_of(clause)
    if instruction is None or prohibits or instruction.modality is not Modality.PREFER:
        return None
    against = instruction.behind(*_OVER)
    if against is None or not instruction.has_only(*_OVER):
        return None
    use = _commands_of_list(instruction.object)
    rather_than = _commands_of_list(
        re.sub(r"^(?:using|running|plain|raw|bare|the|direct) ", "", against)
    )
    if not use or not rather_than or set(use) & set(rather_than):
        return None
    return _prefers(use, rather_than)


def _commands_of_list(text: str) -> list[str] | None:
    """The commands of "`rg` or `fd` commands"; None if it may be about something else."""
    match = whole_match(_COMMAND_LIST, text)
    return commands_in(match["commands"]) if match else None


def _prefers(use: Sequence[str], rather_than: Sequence[str]) -> list[Draft]:
    spec = {
        "name": "prefers",
        "use": any_of(map(command_pattern, use)),
        "rather_than": any_of(map(command_pattern, rather_than)),
    }
    return [Draft("command", "requirement", spec)]


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
# a heading of a part of the repository, for which alone a package manager may be meant
_OF_A_PART = re.compile(
    r"\b(?:in|for|under|inside) `|^\W*`?[\w.-]+/|\b(?:docs|documentation|examples?|demos?)"
    r" ?(?:site|app|$)|\b(?:web)?site\b",
    re.I,
)
_MANAGER_BELOW = forms({"use pnpm": rf"(?:always |only )?use {_MANAGER}{TAIL}"})


def package_manager_rule(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Use pnpm as the package manager."""
    if prohibits or any(map(_OF_A_PART.search, statement.under)):
        return None
    ways = _MANAGER_FOR_PACKAGES + _ONLY_MANAGER
    if whole_match(_MANAGER_LABEL, statement.label) and _MUST.search(statement.text):
        ways += _LABELLED_MANAGER
    if statement.under and _MANAGER_HEADING.search(statement.under[-1]):
        ways += _MANAGER_BELOW
    match = whole_match(ways, clause)
    others = other_installs(match["name"].lower()) if match else None
    spec = {"name": "command_not_run", "command": others}
    return [Draft("command", "requirement", spec)] if others else None
