"""Rules that some commands are not run, or that others are run in their place.

    Never run `terraform destroy`. -> command_not_run(command="terraform destroy")
    Use pnpm, not npm.             -> command_not_run(command="npm")
    Prefer `rg` over `grep`.       -> prefers(use="rg", rather_than="grep")

The arguments of these measures are regular expressions, which end in "(?!\\S)" (left out above).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.acts import acts_in
from holdfast.drafting.grammar.clauses import Clause, all_known, codes_in, names_in
from holdfast.drafting.grammar.commands import (
    any_of,
    command_pattern,
    installs_of,
    is_command,
    is_runnable,
    is_tool,
    managers_beside,
    other_installs,
)
from holdfast.drafting.grammar.forms import (
    ADVERBS,
    CODE,
    CODES,
    NEVER,
    OBJECT,
    OBJECTS,
    TAIL,
    form,
    forms,
    literal,
    one_of,
    whole_match,
)
from holdfast.drafting.grammar.instruction_words import CHECK, RUN, Relation
from holdfast.drafting.grammar.instructions import Instruction, Modality, instruction_of
from holdfast.drafting.rules_file import Statement
from holdfast.measures.agent_acts.commands.command_wrappers import wrappers_in

# --- A command that is never run

_IN_THIS_PROJECT = re.compile(r"(?:this|the) (?:project|repo|repository)", re.I)
_VERBS = (RUN | {"introduce", "test", "build"}) - {"pass", "succeed"}
# "any other command (such as `a`)", "destructive commands (`a`, `b`)", "the server (`a`)"
_COMMANDS_IN_BRACKETS = re.compile(
    rf"(?:any )?[\w -]+ \((?:e\.g\.,? |such as |like |including )?(?P<commands>{CODES})"
    r"(?:,? etc\.?)?\)",
    re.I,
)
# "destructive commands like `a` or `b`"
_COMMANDS_LIKE = re.compile(
    r"(?:any )?(?:[\w-]+ )*(?:commands?|flags?|options?) (?:like|such as|including)"
    rf" (?P<commands>{CODES})"
    r"(?:,? (?:or|and) [a-z -]+)?",
    re.I,
)
# "do not run *the tests* with `cargo test`"
_THINGS_RUN = re.compile("|it|this|them|these|tests|commands?|code|project", re.I)
_FORBIDDEN_COMMANDS = form(
    "bare `npm install`, yarn or any other npm commands directly",
    r"(?:(?:bare|plain|raw|global|system) )?(?:commands? )?"
    rf"(?P<commands>{OBJECTS})"
    r"(?:,? or any(?: other)? [\w-]+(?: [\w-]+)?)?(?: commands?)?"
    rf"{TAIL}",
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
    return _forbid_object(instruction, clause.statement.document)


def _forbid_object(instruction: Instruction, document: str) -> list[Draft]:
    """The rule that the object of an instruction is not run; [] if it may be no command.

    Args:
        document: the rules file, which may say that it is the name of a script.
    """
    for listed in (_COMMANDS_IN_BRACKETS, _COMMANDS_LIKE):
        if match_of_list := listed.fullmatch(instruction.object):
            return forbid_commands(commands_in(match_of_list["commands"]))
    match = whole_match(_FORBIDDEN_COMMANDS, instruction.object)
    if match is None:
        return []
    is_run = instruction.does(("run", "execute"))
    commands = commands_in(match["commands"], is_run=is_run)
    return forbid_commands(commands) or (_forbid_scripts(match, document) if is_run else [])


_SCRIPT_NAME = re.compile(r"[a-z][\w:.-]*")
_RUNS_SCRIPT = r"(?:npm run|pnpm(?: run)?|yarn(?: run)?|bun run)"


def _forbid_scripts(match: re.Match[str], document: str) -> list[Draft]:
    """Forbids the scripts of a `package.json` that a list names, "`build` or `dev`", if the rules
    file names at least one of them as `npm run build`; [] for other lists.
    """
    names = names_in(match["commands"])
    are_scripts = all(is_code and _SCRIPT_NAME.fullmatch(name) for name, is_code in names)
    if not names or not are_scripts:
        return []
    listed = one_of(*(literal(name) for name, _ in names))
    is_named = re.search(rf"\b{_RUNS_SCRIPT} {listed}(?![\w:.-])", document) is not None
    return forbid_matches(rf"{_RUNS_SCRIPT} {listed}(?!\S)") if is_named else []


# "install packages", "dependency management"
_INSTALLATION = re.compile(
    r"(?:(?:install(?:ing)?|add(?:ing)?|manag(?:e|ing)|all) )?(?:(?:new|any|the|npm|node|python) )*"
    r"(?:packages?|dependenc(?:y|ies)|libraries|modules|installs?|installation"
    r"|(?:package|dependency) (?:management|installation|installs))",
    re.I,
)
# what a package manager does beside installing
_ALL_PURPOSES = re.compile(
    rf"{_INSTALLATION.pattern}|(?:run(?:ning)? )?(?:(?:any|the|repository|project|package) )*"
    r"(?:scripts?|tasks?|commands?|tests?)",
    re.I,
)


def _forbid_installs(instruction: Instruction) -> list[Draft]:
    """Reads "never use npm or yarn to install packages"; whatever else they do is allowed."""
    if not (instruction.has_only(Relation.FOR) or instruction.has_only(Relation.TO)):
        return []
    purpose = instruction.text_of(Relation.FOR) or instruction.text_of(Relation.TO) or ""
    match = whole_match(_FORBIDDEN_COMMANDS, instruction.object)
    purposes = re.split(r",? (?:or|and) |, ", purpose)
    if match and len(purposes) > 1 and all(map(_ALL_PURPOSES.fullmatch, purposes)):
        return forbid_commands(commands_in(match["commands"]))
    if match is None or not _INSTALLATION.fullmatch(purpose):
        return []
    installs = all_known([installs_of(name) for name, _ in names_in(match["commands"])])
    return forbid_matches(any_of(installs)) if installs else []


_MIN_KNOWN = 2  # commands of a list, beside which the others are commands too
_NAME_OF_PROGRAM = re.compile(r"[a-z][a-z0-9-]+")


def commands_in(objects: str, *, is_run: bool = False) -> list[str]:
    """The commands of a list; [] if the list may have something else than commands.

    Args:
        is_run: whether the text says that they are run, so that any program may be meant.
    """
    names = names_in(objects)
    known = sum(is_code and is_command(name) for name, is_code in names)
    for name, is_code in names:
        if known >= _MIN_KNOWN and is_code and _NAME_OF_PROGRAM.fullmatch(name):
            continue
        if is_code and not (is_command(name) or (is_run and _may_be_run(name))):
            return []
        if not is_code and not is_tool(name):
            return []
    return [name if is_code else name.lower() for name, is_code in names]


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


# --- An option that a command is never given

_OPTION = r"`(?:-{1,2}[A-Za-z][\w-]*(?:[= ][\w./:@-]+)?)`"
_FORBIDDEN_OPTIONS = form(
    "Never pass `--watch` or `--force` to `make test`",
    rf"{NEVER} (?:pass|use|add|include|set|append|supply|run (?:it |them )?with) (?:the |a |any )?"
    rf"(?P<options>{_OPTION}(?:(?:, | or |, or |/){_OPTION})*)(?: (?:flags?|options?|switch(?:es)?"
    rf"|arguments?))?(?: (?:to|with|on|for|in|when (?:running|using|calling)) (?:the )?"
    rf"(?P<command>{OBJECT})(?: CLI)?(?: commands?)?)?{TAIL}",
)
_ANY_PROGRAM = r"[\w./-]+"
_MIN_KNOWN_OPTION = 10  # characters of an option that hardly two programs have


def option_rule(clause: Clause) -> list[Draft]:
    """Reads "never pass `--watch` to `make test`"."""
    match = None if clause.is_prohibited else whole_match(_FORBIDDEN_OPTIONS, clause.text)
    if match is None:
        return []
    options = codes_in(match["options"])
    command = (match["command"] or "").strip("`")
    if command and not is_command(command.lower()):
        return []
    if not command and not all(len(option) >= _MIN_KNOWN_OPTION for option in options):
        return []
    return forbid_matches(any_of(_given_option(command.lower(), option) for option in options))


def _given_option(command: str, option: str) -> str:
    """The pattern of a command that is given an option, perhaps with a value; of any command if it
    is "".
    """
    name, *values = re.split("[= ]", option, maxsplit=1)
    if command and not values:
        return command_pattern(f"{command} {option}")
    given = rf"{literal(name)}(?![\w-])"
    if values:
        given = rf"{literal(name)}[= ]{literal(values[0])}(?!\S)"
    return rf"{literal(command) or _ANY_PROGRAM}(?=.* {given})"


# --- Packages that are never added

_NEW_PACKAGES = form(
    "any new dependencies",
    r"(?:(?:any|new|third-party|external|additional|further|more|extra|other|npm) )*"
    r"(?:dependenc(?:y|ies)|packages?|librar(?:y|ies))",
)
_GLOBAL_INSTALLS = form(
    "Never install packages globally",
    rf"(?:{NEVER} install (?:any |npm |new )*(?:packages|dependencies|tools|modules|anything)"
    rf" globally|(?:{NEVER} (?:install|use|run|do|add) |no )(?:any |npm )*global"
    r" (?:npm )?(?:packages|installs?|installations?|dependencies))",
)
# the command of such an installation
_GLOBALLY = r"(?:(?:npm|pnpm|bun) (?:install|i|add)(?=.* (?:-g|--global)(?!\S))|yarn global add)"


def dependency_rule(clause: Clause) -> list[Draft]:
    """Reads "no new dependencies" and "do not install any packages"."""
    if whole_match(_GLOBAL_INSTALLS, clause.text) and not clause.is_prohibited:
        return forbid_matches(_GLOBALLY)
    instruction = instruction_of(clause.text, clause.is_prohibited)
    if instruction is None or instruction.modality is not Modality.NEVER:
        return []
    if not instruction.does(("add", "install", "introduce", "use", "bring")):
        return []
    if not clause.begins_statement and clause.text.startswith("no "):
        return []  # "hashing (no dependencies)" describes it
    if not whole_match(_NEW_PACKAGES, instruction.object) or not instruction.has_only():
        return []
    if instruction.does(["use"]) and " " not in instruction.object:
        return []  # "no dependencies" describes a library
    return forbid_matches(any_of(act.command for act in acts_in("add a dependency")))


# --- One command instead of another: "use pnpm, not npm"

# what a package manager is for, so that it limits nothing
_PURPOSE = re.compile(
    r"(?:all |any )?(?:package|dependency|dependencies|installing|everything|installs)[\w\s]*"
    r"|(?:all |any )?(?:file )?(?:edits|edit(?:ing)? files|searches|searching(?: files| code)?)",
    re.I,
)
_USES = ("use", "run", "call", "edit", "add", "update")
_DONE_WITH = CHECK | {"install", "manage", "run", "do", "add", "commit"}
_AGAINST = (Relation.INSTEAD_OF, Relation.NOT)
_PURPOSES = (Relation.FOR, Relation.IN, Relation.WITH)
_WANTED_COMMAND = form(
    "`rg` only", rf"(?:{CODE}(?:(?:, |,? and |,? or |/){CODE})*|[\w.-]+)(?: \w+)?"
)
_WORDS_BEFORE_COMMANDS = re.compile(r"^(?:(?:just|plain|raw|bare|the|use|using|running|run) )+")
_UNWANTED_COMMANDS = form(
    "npm or `yarn` directly", rf"(?P<commands>{OBJECTS})(?: commands?| directly| CLI)?{TAIL}"
)
_ANY_VERB_NOT = form("Stage files by name, not `git add -A`", rf"[^`]+, not (?P<commands>{CODES})")
_USES_FIRST = re.compile(
    r"^(?:uses|(?:the |our )?(?:package|dependency) manager(?: is|:)?) (?=\S)", re.I
)


def replacement_rule(clause: Clause) -> list[Draft]:
    """Reads "use pnpm, not npm or yarn"."""
    if clause.is_prohibited:
        return []
    if match := whole_match(_ANY_VERB_NOT, clause.text):  # "stage files by name, not `git add -A`"
        commands = commands_in(match["commands"])
        if commands and all(" " in command for command in commands):
            return forbid_commands(commands)
    text = _USES_FIRST.sub("use ", clause.text)
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


# --- One command rather than another: "prefer `rg` over `grep`"

# "Prefer `rg` for search" means: rather than `grep`
_SEARCHES = re.compile(
    r"(?:always )?(?:use|prefer) `rg`(?:(?: or |/)`rg --files`)?(?: first)?"
    r" (?:for|when) (?:(?:text|code|file|fast|all) )*search(?:es|ing)?\b"
    r"(?!.*\b(?:only|unless|except|if|when|fall\w*|under|inside|within"
    r"|in (?!(?:the|this|our) (?:repo|code|project)))\b).*",
    re.I,
)
_PREFERRED_WRAPPER = form(
    "Prefer `uv run` for Python commands",
    r"prefer `(?P<wrapper>(?:uv|poetry|pipenv|hatch|pdm) run)` (?:for|to run|when running)"
    r" (?:all |any )?Python(?: (?:commands?|scripts?|code|tools?))?"
    r"(?: in this (?:repo|repository|project))?",
)
_PREFERRED_MANAGER = form(
    "Use `bun` as the preferred package manager",
    r"use `?(?P<name>\w+)`? as (?:the|our|your) preferred package manager"
    r"(?: and [\w -]+)?(?: for [^`]+)?",
)
# "bun (preferred over npm)"
_PREFERRED_OVER = re.compile(
    rf"(?:use )?`?(?P<name>\w+)`? \(preferred (?:over|to) {OBJECTS}\)", re.I
)
# after a label: "bun: the preferred package manager"
_PREFERRED_ALONE = re.compile(r"(?P<name>\w+): (?:the )?preferred package manager", re.I)
_OVER = (Relation.OVER, Relation.TO, Relation.INSTEAD_OF)
_LISTED_COMMANDS = form("`rg` commands", rf"(?P<commands>{OBJECTS})(?: commands?| directly)?")


def preference_rule(clause: Clause) -> list[Draft]:
    """Reads "prefer `rg` over `grep`"."""
    if clause.is_prohibited:
        return []
    if _SEARCHES.fullmatch(clause.text):
        return _require_rather(["rg"], ["grep"])
    if wrapper := whole_match(_PREFERRED_WRAPPER, clause.text):
        program = wrapper["wrapper"]
        alone = rf"(?!{program} ){command_pattern('python')}"
        return _require_matches_rather(rf"{program}\b", alone)
    manager = _preferred_manager(clause)
    if others := managers_beside(manager):
        return _require_rather([manager], others)
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


def _preferred_manager(clause: Clause) -> str:
    """The package manager that a clause prefers, without a comparison or with one in brackets; ""
    if it prefers none so.
    """
    match = (
        whole_match(_PREFERRED_MANAGER, clause.text)
        or _PREFERRED_OVER.match(clause.statement.text)
        or _PREFERRED_ALONE.fullmatch(f"{clause.statement.label}: {clause.text}")
    )
    return match["name"].lower() if match else ""


def _commands_of_list(text: str) -> list[str]:
    """The commands of "`rg` or `fd` commands"; [] if the text may be about something else."""
    match = whole_match(_LISTED_COMMANDS, text)
    return commands_in(match["commands"]) if match else []


def _require_rather(use: Sequence[str], rather_than: Sequence[str]) -> list[Draft]:
    """Requires some commands rather than others."""
    return _require_matches_rather(
        any_of(map(command_pattern, use)), any_of(map(command_pattern, rather_than))
    )


def _require_matches_rather(use: str, rather_than: str) -> list[Draft]:
    """Requires the commands that one pattern matches rather than those that another matches."""
    spec = measure("prefers", use=use, rather_than=rather_than)
    return [Draft("command", "requirement", spec)]


# --- A tool of the agent rather than commands: "never use `cat` to read files"

# what files are used for, the names of the tools that do it, and the commands that do it too
_TOOLS_BY_USE = (
    (r"(?:read|view)(?:ing)?", r"(?i)(?:read|view)\w*\b",
     {"cat": r"cat \S", "sed": "sed -n", "head": "head ", "tail": "tail ", "less": "less "}),
    (r"search(?:ing)?", r"(?i)(?:grep|search)\w*\b",
     {"grep": "grep ", "rg": "rg ", "find": "find ", "ag": "ag "}),
)  # fmt: skip
_FILES = re.compile(
    r"(?:(?:the|an?|any|contents?|or|parts?|ranges?|of|through|existing|source) )*files?"
    r"(?: contents?)?(?: or .*)?|code",
    re.I,
)


def agent_tool_rule(clause: Clause) -> list[Draft]:
    """Reads "never use `cat` or `sed` to read files"."""
    instruction = instruction_of(clause.text, clause.is_prohibited)
    if instruction is None or instruction.modality is not Modality.NEVER:
        return []
    if not instruction.does(("use", "run")) or not instruction.has_only(Relation.TO, Relation.FOR):
        return []
    purpose = instruction.text_of(Relation.TO, Relation.FOR) or ""
    act, _, files = purpose.partition(" ")
    match = whole_match(_FORBIDDEN_COMMANDS, instruction.object)
    names = [name for name, _ in names_in(match["commands"])] if match else []
    for use, tool, commands in _TOOLS_BY_USE:
        if re.fullmatch(use, act, re.I) and _FILES.fullmatch(files):
            known = all_known([commands.get(name) for name in names])
            if known:
                return _require_matches_rather(tool, any_of(known))
    return []


# --- A tool that is never called

_FORBIDDEN_TOOL = form(
    "Never use the `Task` tool",
    rf"{NEVER} (?:use|call|invoke) (?:the )?(?:`(?P<mcp>mcp__\w+)`"
    r"|`?(?P<name>(?-i:[A-Z][A-Za-z]{2,})|[a-z]+(?:_[a-z]+)+)`? tool)"
    rf"|{NEVER} (?:use|call|spawn|launch|start|invoke|create) (?:any )?(?P<agents>sub-?agents)",
)


def tool_rule(clause: Clause) -> list[Draft]:
    """Reads "never use the `Task` tool" and "do not spawn subagents"."""
    match = None if clause.is_prohibited else whole_match(_FORBIDDEN_TOOL, clause.text)
    if match is None:
        return []
    names = [match["mcp"] or match["name"]] if not match["agents"] else ["Task", "Agent"]
    specs = [measure("tool_not_called", tool=name) for name in names]
    return [Draft("command", "prohibition", spec) for spec in specs]


# --- The package manager

_MANAGER = r"`?(?P<name>pnpm|npm|yarn|bun|uv|poetry)(?:@\d[\w.]*| v?\d[\w.+]*)?`?"
_PACKAGES = (
    r"(?:\w+ )?(?:(?:package|dependency) (?:manager|management|installs?|installation|operations?"
    r"|tasks)|runtime and package manager|package manager and (?:\w+ )?runtime)"
)
_ONLY_MANAGER = forms(
    {
        "Always use pnpm for all package management": (
            rf"{ADVERBS}use {_MANAGER}(?: (?:exclusively|only))?"
            rf" (?:as|for) (?:the |your |our |its |all )*{_PACKAGES}{TAIL}"
        ),
        "Always use uv": rf"(?:always |only )?use {_MANAGER}(?: (?:only|exclusively))?{TAIL}",
        "only yarn": rf"only {_MANAGER}",
        "This project uses pnpm": (
            r"(?:this|the|our) (?:project|repo|repository|monorepo|codebase|workspace)"
            rf" uses {_MANAGER}"
            rf"(?: (?:as|for) (?:the |your |our |its |all )*{_PACKAGES})?"
        ),
        "We use pnpm as the package manager": (
            rf"we (?:always |only )?use {_MANAGER} (?:as|for) (?:the |our |all )*{_PACKAGES}"
        ),
        "pnpm is the package manager": (
            rf"{_MANAGER} is (?:the|our|this (?:project|repo|repository|workspace)['’]s)"
            rf" (?:only |required |chosen )?{_PACKAGES}(?: (?:here|for this (?:project|repo)))?"
        ),
        "All packages use uv as the package manager": (
            rf"(?:all )?(?:packages|projects|apps|workspaces) use {_MANAGER}"
            rf" as (?:the|their) {_PACKAGES}"
        ),
        "Use Node 22 and pnpm": (
            rf"{ADVERBS}use Node(?:\.js)? `?[\w.>=+ ]{{1,8}}`? (?:and|with) {_MANAGER}"
        ),
        "It uses pnpm for package management": (
            rf"(?:it|the (?:workspace|app|backend and frontend)) uses {_MANAGER} (?:as|for)"
            rf" (?:the |its |all )*{_PACKAGES}(?: and [\w -]+)?"
        ),
        "All commands must use pnpm": (
            rf"all (?:commands|scripts|installs) (?:must |should )?(?:always )?use {_MANAGER}"
            r"(?: (?:from|in|at) the (?:repo(?:sitory)? |project |workspace |monorepo )?root)?"
        ),
        "The package manager is pnpm": (
            rf"(?:the |our )?(?:package|dependency) (?:manager|management)(?: is|:)? {_MANAGER}"
            r"(?: (?:only|exclusively))?"
        ),
        "Dependencies are installed with npm": (
            r"(?:all )?(?:dependencies|packages) (?:are |must be )?(?:always )?"
            r"(?:installed|managed)"
            rf" (?:with|via|using|by|through) {_MANAGER}"
        ),
        "Install dependencies with npm": (
            rf"{ADVERBS}(?:install|manage) (?:all |the )?(?:dependencies|packages)"
            rf" (?:with|via|using|through) {_MANAGER}"
        ),
        "Use `bun install` for dependency installation": (
            rf"{ADVERBS}(?:use|run) `(?P<name>npm|pnpm|yarn|bun) (?:install|i|ci|add)`"
            r" (?:for (?:all )?(?:(?:dependency|package) (?:installation|management|installs?)"
            r"|(?:installing )?(?:dependencies|packages))"
            r"|to (?:install|add|manage) (?:all |the |new )*(?:dependencies|packages))"
            r"(?: (?:at|from|in) the (?:repo(?:sitory)? |project |workspace )?root)?"
        ),
        "Install dependencies with `npm install`": (
            rf"{ADVERBS}(?:install|add|manage) (?:all |the |new )*(?:dependencies|packages)"
            r" (?:with|via|using|through) `(?P<name>npm|pnpm|yarn|bun) (?:install|i|ci|add)`"
            r"(?: (?:at|from|in) the (?:repo(?:sitory)? |project |workspace )?root)?"
        ),
    }
)
_MANAGER_LABEL = form(
    "Package manager and runner",
    r"(?:the )?(?:package|dependency) manage(?:r|ment)(?: (?:and|&|\+|/) (?:task |script )?\w+)?",
)
# only after such a label or below such a heading
_MANAGER_ALONE = form(
    "pnpm 9 only", rf"{_MANAGER}(?: v?\d[\w.+]*)?(?: workspaces)?(?: (?:only|exclusively))?"
)
# a heading about a part of the repository, which may have a package manager of its own
_PART_OF_REPOSITORY = re.compile(
    r"\b(?:in|for|under|inside) `|^\W*`?[\w.-]+/|\b(?:docs|documentation|examples?|demos?)"
    r" ?(?:site|app|$)|\b(?:web)?site\b",
    re.I,
)
# "use pnpm (version 9)"
_REMARK = re.compile(r" \((?:[^()]|\([^()]*\))*\)$")
# "Node 22; *package manager:* pnpm"
_NAMES_MANAGER = re.compile(r"package manager:", re.I)
# "*It* uses npm", which may be said of a folder before it
_IT = re.compile(r"it\b", re.I)


def package_manager_rule(clause: Clause) -> list[Draft]:
    """Reads "use pnpm as the package manager"."""
    if clause.is_prohibited or any(map(_PART_OF_REPOSITORY.search, clause.statement.under)):
        return []
    if _lists_commands_of_manager(clause.statement):
        return _forbid_others(clause.statement.label.split()[-1])
    if _IT.match(clause.text) and _follows_a_folder(clause.statement):
        return []
    above = (clause.statement.label, *clause.statement.under[-1:])
    is_labelled = any(whole_match(_MANAGER_LABEL, name) for name in above)
    ways = _ONLY_MANAGER + (_MANAGER_ALONE if is_labelled else ())
    texts = [_REMARK.sub("", clause.text)]
    if clause.begins_statement:  # "Node 22; package manager: pnpm"
        parts = re.split(r"; | \(|\)", clause.statement.text.strip(" ."))
        texts += filter(_NAMES_MANAGER.match, parts)
    match = next(filter(None, (whole_match(ways, text) for text in texts)), None)
    return _forbid_others(match["name"]) if match else []


def _follows_a_folder(statement: Statement) -> bool:
    """Whether its line names a folder before it, as in "`docs/` is a site. It uses npm"."""
    line = statement.document.splitlines()[statement.line - 1] if statement.document else ""
    before = line.partition(statement.text[:20])[0]
    return "/`" in before


def _forbid_others(manager: str) -> list[Draft]:
    """Forbids to install packages with other managers than one; [] if it is unknown."""
    installs = other_installs(manager.lower())
    if installs is None:
        return []
    return [Draft("command", "requirement", measure("command_not_run", command=installs))]


# a label before commands: "*Use yarn*: `yarn install`"
_USE_MANAGER = re.compile(r"(?:always )?use (?:pnpm|npm|yarn|bun|uv|poetry)", re.I)


def _lists_commands_of_manager(statement: Statement) -> bool:
    """Whether a statement says "Use yarn: `yarn install`, `yarn test`"."""
    if not _USE_MANAGER.fullmatch(statement.label) or not re.fullmatch(CODES, statement.text):
        return False
    manager = statement.label.split()[-1].lower()
    return all(code.startswith(f"{manager} ") for code in codes_in(statement.text))


# --- A wrapper that Python is always run with

_WRAPPER = "`(?P<wrapper>(?:uv|poetry|pipenv|hatch|pdm) run)`"
_ALWAYS_WRAPPED = forms(
    {
        "Always use `uv run` to run Python commands": (
            rf"{ADVERBS}use {_WRAPPER}"
            r" (?:to (?:run|execute)|for (?:running )?)(?: ?(?:all|any|the|every))*"
            r" ?(?:Python)?(?: (?:commands?|scripts?|code|tools?|programs?|files?))?"
        ),
        "Use `uv run python ...` for Python commands": (
            rf"{ADVERBS}use `(?P<wrapper>(?:uv|poetry|pipenv|hatch|pdm) run) python3?"
            r"(?: \.\.\.| …)?` for (?:all |any |every )?Python (?:commands?|scripts?|code|tools?)"
            r"(?: to .*)?"
        ),
        "Prefix Python commands with `uv run`": (
            rf"{ADVERBS}prefix (?:all |any |the |every )*Python (?:commands?|scripts?|calls)"
            rf" with {_WRAPPER}"
        ),
        "Use `uv` for all Python commands": (
            rf"{ADVERBS}use `?(?P<wrapper>uv|poetry|pipenv|hatch|pdm)`? for"
            r" (?:(?:installs|installation|dependencies|package management)(?:,? and |, ))?"
            r"(?:running )?(?:all|any|every) Python (?:commands?|scripts?|code|tools?)"
        ),
        "Run Python commands with `uv`": (
            rf"{ADVERBS}(?:run|execute) (?:all |any |the |every )*Python"
            r" (?:commands?|scripts?|code|tools?)"
            r" (?:with|through|via|using) `(?P<wrapper>uv|poetry|pipenv|hatch|pdm)`"
            r"(?: from `[^`]+`)?"
        ),
    }
)


def wrapper_rule(clause: Clause) -> list[Draft]:
    """Reads "always use `uv run` to run Python commands"."""
    match = whole_match(_ALWAYS_WRAPPED, clause.text)
    if match is None or clause.is_prohibited:
        return []
    wrapper = match["wrapper"]
    if wrapper.endswith(" run"):
        return forbid_commands(["python"])  # `permit_wrapped` permits the wrapper
    return forbid_matches(rf"(?!{wrapper} run ){command_pattern('python')}")


# --- Wrappers that permit a command: "use `uv run pytest`, not `pytest`"

_CODE = re.compile(r"`[^`]+`")
# the arguments of measures with commands that are not to be run
_UNWANTED = {"command_not_run": "command", "prefers": "rather_than"}
# what "never bare `python`" leaves open, if the statement names no wrapper
_BARE = re.compile(r"\b(?:bare|plain|raw|directly)\b", re.IGNORECASE)
_ENVIRONMENTS = (
    *("uv run", "poetry run", "pipenv run", "hatch run", "pdm run", "conda run"),
    *("npx", "pnpm exec", "yarn exec", "bundle exec"),
)


def permit_wrapped(drafts: Iterable[Draft], statement: Statement) -> list[Draft]:
    """Returns the rules of a statement, in which an unwanted command is permitted after each
    wrapper that the statement, or the sentences after it, name.

    Measures see through wrappers, so `pytest` alone would also forbid `uv run pytest`. They
    also see through folders, so "Use `bin/rails`, not `rails`" cannot become a rule.
    """
    text = f"{statement.text} {statement.following}"
    return [_permit(draft, text) for draft in drafts if not _differs_by_folder(draft, text)]


def _differs_by_folder(draft: Draft, text: str) -> bool:
    """Whether a text has the forbidden command with the folder of its program as well."""
    if draft.measure.name != "command_not_run" or draft.polarity != "prohibition":
        return False
    pattern = str(draft.measure.arguments["command"])
    codes = [code.strip("`") for code in _CODE.findall(text)]
    return any(
        not re.match(pattern, code) and re.match(pattern, re.sub(r"^\S*/", "", code))
        for code in codes
    )


def _permit(draft: Draft, text: str) -> Draft:
    """A rule whose unwanted command is permitted after each wrapper that a text names."""
    argument = _UNWANTED.get(draft.measure.name)
    if argument is None or (argument == "command" and draft.polarity != "prohibition"):
        return draft
    pattern = str(draft.measure.arguments[argument])
    wrappers: Sequence[str] = wrappers_in(_without_matches(text, pattern))
    if not wrappers and _BARE.search(text) and " " not in pattern:
        wrappers = _ENVIRONMENTS
    if not wrappers:
        return draft
    names = any_of(map(literal, wrappers))
    arguments = {**draft.measure.arguments, argument: rf"(?!{names} ){pattern}"}
    return replace(draft, measure=measure(draft.measure.name, **arguments))


def _without_matches(text: str, pattern: str) -> str:
    """Leaves out the code that is unwanted itself, which may be a wrapper: `npm exec`."""
    return _CODE.sub(lambda code: "" if re.match(pattern, code[0].strip("`")) else code[0], text)
