"""Rules about commands that are never run, or never without an option."""

import re
from collections.abc import Sequence

from holdfast.drafting.clauses import Clause, all_or_none, names_in
from holdfast.drafting.commands import (
    any_of,
    command_pattern,
    installs_of,
    is_command,
    is_runnable,
    is_tool,
    pattern_without_option,
)
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import (
    CODES,
    NEVER,
    OBJECTS,
    TAIL,
    forms,
    one_of,
    whole_match,
)
from holdfast.drafting.instruction_words import RUN
from holdfast.drafting.instructions import Instruction, Modality, instruction_of

# --- Commands that are never run

_IN_THIS_PROJECT = re.compile(r"(?:this|the) (?:project|repo|repository)", re.I)
_RUNS = (RUN | {"introduce", "test", "build"}) - {"pass", "succeed"}
_OTHER_COMMANDS = re.compile(
    rf"(?:any )?other [\w -]+ \((?:e\.g\.,? |such as |like )?(?P<commands>{CODES})(?:,? etc\.?)?\)",
    re.I,
)
_TESTS = re.compile("|it|this|them|these|tests|commands?|code|project", re.I)
_SCRIPT = re.compile(r"`([a-z][\w-]*(?::[\w-]+)+)`")  # a script of package.json: `test:all`
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

_DEV_SERVER = re.compile(r"(?:local )?dev(?:elopment)? servers?", re.I)
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
# the heading of a list of commands, or its last words
_RUN_NONE = re.compile(
    rf"{NEVER} (?:attempt to |try to )?(?:run|use|execute)"
    r"(?: (?:these|the following|any|interactive))* commands?"
    r"(?: like| such as| directly| yourself)*[\s:!.]*$",
    re.I,
)
_THESE_COMMANDS = re.compile(
    r"(?:(?:these|following|any|all|destructive|dangerous|interactive) )*commands?", re.I
)
_RUN_NO_SUCH = forms({"NEVER USE THIS": rf"{NEVER} (?:use|run) (?:this|it)"})

# --- Commands that are never run without an option

# long options for which most people write one letter
_OF_A_LETTER = one_of(
    *"all detach dev exclude file force global help interactive message output".split(),
    *"parallel quiet recursive save-dev signoff sign-off upgrade verbose version watch yes".split(),
)
# only options that are written in one way: not `-m`, which may stand among others or be `--message`
_OPTION = (
    rf"`(?P<option>--(?!{_OF_A_LETTER}\b(?!-))[A-Za-z][\w-]*|-[A-Za-z][\w-]{{3,}})"
    r"(?:[= ][^`]*)?`(?: flag| option)?"
)
_COMMAND = re.compile(
    r"(?:(?:the|all|every|any) )*(?P<command>`[^`]+`)(?: (?:commands?|calls?|invocations?))?", re.I
)
_WITH_OPTION = re.compile(rf"(?:the )?{_OPTION}", re.I)
_EVERY_TIME = re.compile(r"\b(?:always|must|all|every|any|never|not|don['’]t)\b", re.I)
_GIVE_OPTION = ("pass", "use", "add", "include")
_TO_COMMAND = ("to", "with", "for", "on", "when")


def forbidden_command_rule(clause: Clause) -> list[Draft]:
    """Reads "never run `git push --force`"."""
    instruction = instruction_of(clause.text, clause.is_prohibited)
    if (
        instruction is None
        or instruction.modality is not Modality.NEVER
        or not instruction.does(_RUNS)
        or not instruction.has_only("for", "to", "with")
    ):
        return []
    if managers := _forbid_installs(instruction):
        return managers
    purpose = instruction.behind("for") or "this project"
    if not instruction.has_only("for", "with") or not _IN_THIS_PROJECT.fullmatch(purpose):
        return []
    if tool := instruction.behind("with"):  # "do not run the tests with `cargo test`"
        is_tests = _TESTS.fullmatch(instruction.object) is not None
        commands = commands_in(tool) if is_tests and re.fullmatch(CODES, tool) else None
        return forbid_commands(commands) if commands else []
    return _forbid_object(instruction)


def _forbid_object(instruction: Instruction) -> list[Draft]:
    """The rule that the object of an instruction is not run; [] if it may be no command."""
    script = _SCRIPT.fullmatch(instruction.object)
    if script and "run" in instruction.verbs:
        return forbid_matches(rf"(?:npm|pnpm|yarn|bun)(?: run)? {re.escape(script[1])}(?!\S)")
    if _DEV_SERVER.fullmatch(instruction.object):
        return forbid_matches(_SERVERS)
    if others := _OTHER_COMMANDS.fullmatch(instruction.object):
        commands = commands_in(others["commands"])
    else:
        is_run = instruction.does(("run", "execute"))
        commands = _forbidden_commands(instruction.object, is_run=is_run)
    return forbid_commands(commands) if commands else []


def _forbidden_commands(text: str, *, is_run: bool) -> list[str] | None:
    """The commands that a text names; None if it may name something else.

    Args:
        is_run: as for `commands_in`.
    """
    match = whole_match(_COMMANDS, text)
    commands = commands_in(match["commands"], is_run=is_run) if match else None
    if commands:
        return commands
    if whole_match(_ALL_OF_GIT, text):
        return ["git"]
    bare = whole_match(_BARE_COMMAND, text)
    if bare and not _THINGS_OF_TOOLS.search(bare["command"]):
        return [bare["command"]]
    return None


def _forbid_installs(instruction: Instruction) -> list[Draft]:
    """Reads "never use npm or yarn to install packages"; whatever else they do is allowed."""
    if not (instruction.has_only("for") or instruction.has_only("to")):
        return []
    purpose = instruction.behind("for") or instruction.behind("to") or ""
    match = whole_match(_COMMANDS, instruction.object)
    if match is None or not _OF_INSTALLS.fullmatch(purpose):
        return []
    installs = all_or_none([installs_of(name) for name, _ in names_in(match["commands"])])
    return forbid_matches(any_of(installs)) if installs else []


def command_item_rule(clause: Clause) -> list[Draft]:
    """Reads an item such as "`pnpm new`" below "Never run these commands", and "`x` - NEVER USE
    THIS".
    """
    first, *others = re.split(r"\s[—–-]+\s", clause.statement.text)
    code = re.fullmatch(r"`([^`]+)`", first.strip())
    if code is None or not is_runnable(code[1]):
        return []
    under = clause.statement.under
    heading = re.split(r" [—–-] ", under[-1])[0] if under else ""
    instruction = instruction_of(re.sub(r"^\W+", "", heading))
    is_banned = any(whole_match(_RUN_NO_SUCH, piece.strip(" .!")) for piece in others)
    return forbid_commands([code[1]]) if is_banned or _forbids_these(instruction, heading) else []


def _forbids_these(instruction: Instruction | None, heading: str) -> bool:
    """Whether a heading forbids the commands below it: "never run", "these are forbidden"."""
    if _RUN_NONE.search(heading):
        return True
    if instruction is None or instruction.modality is not Modality.NEVER:
        return False
    names_them = _THESE_COMMANDS.fullmatch(instruction.object) is not None
    is_run = instruction.does(("run", "execute")) and not instruction.object
    return instruction.has_only() and (names_them or is_run)


def option_rule(clause: Clause) -> list[Draft]:
    """Reads "always run `uv run` with `--frozen`", "never run `cargo update` without `--precise`"
    and "never pass `--force` to `npm install`".
    """
    instruction = instruction_of(clause.text, clause.is_prohibited)
    if instruction is None or not _EVERY_TIME.search(clause.text):
        return []
    is_forbidden = instruction.modality is Modality.NEVER
    words = ("without",) if is_forbidden else ("with",)
    option = instruction.object
    command = instruction.behind(*_TO_COMMAND)
    if not _WITH_OPTION.fullmatch(option):
        with_option = instruction.behind(*words)
        is_forbidden = is_forbidden and with_option is None
        option, command = with_option or instruction.behind("with") or "", option
    if not instruction.does(RUN.union(_GIVE_OPTION)):
        return []
    if not instruction.has_only(*_TO_COMMAND, "without"):
        return []
    return _require_option(command or "", option, is_forbidden=is_forbidden)


def _require_option(command: str, option: str, *, is_forbidden: bool) -> list[Draft]:
    """Requires an option of a command, or forbids it; [] if either is something else."""
    command = re.sub(r"^(?:running|using|calling) ", "", command)
    commands = _COMMAND.fullmatch(command)
    options = _WITH_OPTION.fullmatch(option)
    name = commands["command"].strip("`") if commands else ""
    if options is None or not is_command(name):
        return []
    if is_forbidden:
        return forbid_commands([f"{name} {options['option']}"])
    pattern = pattern_without_option(name, options["option"])
    return [Draft("command", "requirement", {"name": "command_not_run", "command": pattern})]


def commands_in(objects: str, *, is_run: bool = False) -> list[str] | None:
    """The commands of a list; None if the list may have something else than commands.

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
    """Whether code that is said to be run has arguments or a path, and so is a command."""
    is_script = re.search(r"/[\w-]+(?:\.(?:sh|py|m?js|ts|rb|ps1))?$", code)
    return (" " in code or is_script is not None) and is_runnable(code)


def forbid_commands(commands: Sequence[str]) -> list[Draft]:
    """Forbids some commands."""
    return forbid_matches(any_of(map(command_pattern, commands)))


def forbid_matches(pattern: str) -> list[Draft]:
    """Forbids the commands that a pattern matches."""
    return [Draft("command", "prohibition", {"name": "command_not_run", "command": pattern})]
