"""Rules about commands: never run one, use one instead of another, prefer one to another."""

import re
from collections.abc import Sequence

from holdfast.drafting.clauses import names_in
from holdfast.drafting.commands import (
    any_of,
    command_pattern,
    is_command,
    is_runnable,
    is_tool,
    other_installs,
)
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import (
    ADVERBS,
    CODE,
    CODES,
    NEVER,
    OBJECTS,
    TAIL,
    ForbiddenAct,
    any_words,
    forbidden,
    forms,
    one_of,
    whole_match,
)
from holdfast.drafting.instructions import RUN, Modality, instruction_of, is_imperative
from holdfast.drafting.rules_file import Statement


def commands_in(objects: str) -> list[str] | None:
    """The commands of a list; None if something in it may be none."""
    names = names_in(objects)
    commands = [name for name, is_code in names if (is_command(name) if is_code else is_tool(name))]
    return commands if commands and len(commands) == len(names) else None


def not_run(commands: Sequence[str]) -> list[Draft]:
    """A rule that none of some commands is run."""
    return _no_match(any_of(map(command_pattern, commands)))


def _no_match(pattern: str) -> list[Draft]:
    return [Draft("command", "prohibition", {"name": "command_not_run", "command": pattern})]


_IN_THIS_PROJECT = re.compile(r"(?:this|the) (?:project|repo|repository)", re.I)
_ALWAYS_NEVER = f"{any_words('always', 'please')}{NEVER}"
_NAMED = forms(
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


def command_never(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Never run `git push --force`."""
    if match := whole_match(_NAMED, clause):
        commands = commands_in(match["commands"])
        return not_run(commands) if commands else None
    instruction = instruction_of(clause, prohibits)
    if (
        instruction is None
        or instruction.modality is not Modality.NEVER
        or not instruction.does(RUN | {"introduce"})
        or not instruction.has_only("for")
        or not _IN_THIS_PROJECT.fullmatch(instruction.tail("for") or "this project")
    ):
        return None
    script = _SCRIPT.fullmatch(instruction.object)
    if script and "run" in instruction.verbs:
        return _no_match(rf"(?:npm|pnpm|yarn|bun)(?: run)? {re.escape(script[1])}(?!\S)")
    match = whole_match(_COMMANDS, instruction.object)
    commands = commands_in(match["commands"]) if match else None
    if commands:
        return not_run(commands)
    if whole_match(_ALL_OF_GIT, instruction.object):
        return not_run(["git"])
    bare = whole_match(_BARE_COMMAND, instruction.object)
    if bare and not _THINGS_OF_TOOLS.search(bare["command"]):
        return not_run([bare["command"]])
    return None


# the heading of a list of commands, or its end
_RUN_NONE = re.compile(
    rf"{NEVER} (?:attempt to |try to )?(?:run|use|execute)"
    r"(?: (?:these|the following|any|interactive))* commands?"
    r"(?: like| such as| directly| yourself)*[\s:!.]*$",
    re.I,
)
_RUN_NO_SUCH = forms({"NEVER USE THIS": rf"{NEVER} (?:use|run) (?:this|it)"})


def command_below(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
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
_WANTED = forms({"`rg` only": rf"(?:{CODE}|[\w.-]+)(?: \w+)?"})
_BEFORE_COMMANDS = re.compile(r"^(?:(?:just|plain|raw|bare|the|use|using|running|run) )+")
_NOT_WANTED = forms(
    {"npm or `yarn` directly": rf"(?P<commands>{OBJECTS})(?: commands?| directly| CLI)?{TAIL}"}
)
_ANY_VERB_NOT = forms(
    {"Stage files by name, not `git add -A`": rf"[^`]+, not (?P<commands>{CODES})"}
)


def instead_of(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
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
    against = instruction.tail(*_AGAINST) if instruction else None
    if (
        instruction is None
        or against is None
        or instruction.modality is not Modality.MUST
        or not instruction.has_only(*_AGAINST, "as", "for", "via", "with", "in")
        or not instruction.does(("use", "run", "call", "edit", "add", "update"))
        or not (whole_match(_WANTED, instruction.object) or "`" in against)
    ):
        return None
    words = [word for word, _ in instruction.tails]
    after = instruction.tails[next(n for n, word in enumerate(words) if word in _AGAINST) :]
    purposes = [text for word, text in after if word in ("for", "in", "with", "via")]
    match = whole_match(_NOT_WANTED, _BEFORE_COMMANDS.sub("", against))
    commands = commands_in(match["commands"]) if match else None
    if not commands or not all(map(_PURPOSE.fullmatch, purposes)):
        return None
    wanted = instruction.object.strip("`")
    if any(wanted.startswith(f"{name} ") or wanted == name for name in commands):
        return None  # `npm run test`, not `npm`: what is wanted begins with what is not
    return not_run(commands)


_OVER = ("over", "to", "instead of", "rather than")
_PREFERRED = forms({"`rg` commands": rf"(?P<commands>{OBJECTS})(?: commands?| directly)?"})


def preferred(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Prefer `rg` over `grep`."""
    instruction = instruction_of(clause)
    if instruction is None or prohibits or instruction.modality is not Modality.PREFER:
        return None
    against = instruction.tail(*_OVER)
    if against is None or not instruction.has_only(*_OVER):
        return None
    plain = re.sub(r"^(?:using|running|plain|raw|bare|the|direct) ", "", against)
    wanted, others = whole_match(_PREFERRED, instruction.object), whole_match(_PREFERRED, plain)
    use = commands_in(wanted["commands"]) if wanted else None
    rather_than = commands_in(others["commands"]) if others else None
    if not use or not rather_than or set(use) & set(rather_than):
        return None
    patterns = [any_of(map(command_pattern, commands)) for commands in (use, rather_than)]
    spec = {"name": "prefers", "use": patterns[0], "rather_than": patterns[1]}
    return [Draft("command", "requirement", spec)]


_BRANCHES = r"(?P<branches>`?[\w./-]+`?(?:(?: or |, |/)`?[\w./-]+`?)*)(?: branch(?:es)?)?"
_PUSHING = forbidden(
    {
        "push commits directly to the `main` branch": (
            r"(?:directly )?(?:commit (?:or|and) push|push)(?: directly)?"
            rf" (?:commits |changes |code )?(?:directly )?(?:to|on) (?:the )?{_BRANCHES}{TAIL}"
        )
    },
    f"{any_words('always', 'please', 'important', 'strictly')}{NEVER} ",
)
_USUAL_BRANCHES = ("main", "master", "develop", "dev", "trunk", "production", "staging")


_INSTEAD_OF_PUSHING = forms(
    {
        "Open a PR instead of pushing directly to `main`": (
            r"(?P<wanted>(?:[\w-]+ ){1,6})(?:instead of|rather than|never by)"
            r" (?:directly )?pushing(?: directly)?"
            rf" (?:to|on) (?:the )?{_BRANCHES}{TAIL}"
        )
    }
)


def push_to(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Never push to `main`."""
    match = _PUSHING.match(clause, prohibits)
    if match is None and not prohibits and not re.match("prefer|consider", clause, re.I):
        match = whole_match(_INSTEAD_OF_PUSHING, clause)
        if match and not is_imperative(match["wanted"]):
            return None
    if match is None:
        return None
    names = re.split(r" or |, |/(?=main|master)", match["branches"].replace("`", ""))
    if not all(name in _USUAL_BRANCHES or f"`{name}`" in clause for name in names):
        return None
    return _no_match("git push" + _pushed_to(any_of(map(re.escape, names))))


def _pushed_to(branch: str) -> str:
    """The part of a pattern that finds a branch among what is pushed, also as `+main`."""
    return rf"(?=.*[ :+](?:refs/heads/)?{branch}(?!\S))"


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


def package_manager(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
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


_FORCED = ("git push --force", "git push --force-with-lease")
_UNVERIFIED = ("git commit --no-verify", "git push --no-verify")
_ANY_PR = r"(?:an? |any )?(?:PRs?|pull requests?)"
# acts without a code span: an example, their pattern, and the commands that do them
_GIT_ACTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "force-push to any shared branches",
        r"force[ -]push(?:es)?(?: (?:to|on) (?:any |shared |remote |collaborative )*"
        r"(?:branch(?:es)?|repos?))?",
        _FORCED,
    ),
    (
        "amend published commits",
        r"amend (?:existing |previous |any |published )?commits",
        ("git commit --amend",),
    ),
    (
        "skip pre-commit hooks with `--no-verify`",
        r"(?:skip|bypass|disable) (?:the |any )?(?:git |pre-commit |commit )*hooks?"
        r"(?: with `--no-verify`)?",
        _UNVERIFIED,
    ),
    (
        "commit without running pre-commit",
        r"commit without (?:running )?(?:the )?pre-?commit(?: hooks)?",
        _UNVERIFIED[:1],
    ),
    (
        "bypass them with `--no-verify`",
        r"bypass(?: them| it| hooks)? with `--no-verify`",
        _UNVERIFIED,
    ),
    ("use --no-verify", r"(?:use|pass|add) `?--no-verify`?", _UNVERIFIED),
    ("rebase branches", r"rebase(?: branches| commits)?", ("git rebase",)),
    ("merge pull requests", r"merge (?:PRs?|pull requests?)", ("gh pr merge",)),
    ("open a PR", rf"(?:create|open|submit) {_ANY_PR}", ("gh pr create",)),
    (
        "open an issue",
        r"(?:create|open|submit) (?:an? |any )?(?:GitHub )?issues?",
        ("gh issue create",),
    ),
    (
        "commit changes",
        r"(?:run )?(?:git )?commit(?: anything| changes| code)?",
        ("git commit",),
    ),
    (
        "push to the remote",
        r"push(?: anything| changes| code| to (?:the )?remote)?",
        ("git push",),
    ),
    (
        "commit or push changes",
        r"(?:commit (?:or|and|/) ?push|push (?:or|and) commit)(?: changes| code)?",
        ("git commit", "git push"),
    ),
)
_WHEN_PUSHING = (
    r"(?:when (?:pushing|committing)[^,`]*, )?(?:always |please |make sure to |be sure to )*"
)


def _git_act(example: str, act: str) -> ForbiddenAct:
    return forbidden({example: f"{act}{TAIL}"}, rf"{_WHEN_PUSHING}{NEVER} ")


_ACTS = tuple((_git_act(example, act), commands) for example, act, commands in _GIT_ACTS)
_FORCED_TO = _git_act(
    "force-push to `main`", r"force[ -]push(?:es)? to `?(?P<branch>main|master)`?(?: branch)?"
)
# "do not push directly" is about a branch that another sentence names
_PUSH_DIRECTLY = re.compile(r"\bpush directly\b", re.I)


def git_never(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Never force-push."""
    if _PUSH_DIRECTLY.search(clause):
        return None
    # with a lease is what a line that names it recommends
    forced = _FORCED[:1] if "--force-with-lease" in statement.text else _FORCED
    for act, commands in _ACTS:
        if act.match(clause, prohibits):
            return not_run(forced if commands == _FORCED else commands)
    if match := _FORCED_TO.match(clause, prohibits):
        return _no_match(any_of(map(command_pattern, forced)) + _pushed_to(match["branch"]))
    return None
