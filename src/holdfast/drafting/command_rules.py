"""Rules about commands: never run one, use one instead of another, prefer one to another."""

import re
from collections.abc import Sequence

from holdfast.drafting.clauses import ADVERBS, CODE, CODES, NEVER, OBJECTS, TAIL, names_in
from holdfast.drafting.commands import (
    any_of,
    command_pattern,
    is_command,
    is_runnable,
    is_tool,
    other_installs,
)
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import forms, whole_match
from holdfast.drafting.instructions import RUN, Modality, instruction_of
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


# what packages are managed for, and no purpose that would narrow a rule
_PURPOSE = re.compile(
    r"(?:all |any )?(?:package|dependency|dependencies|installing|everything|installs)[\w\s]*"
    r"|(?:this|the) (?:project|repo|repository)",
    re.I,
)
_NEVER_BARE = forms(rf"never (?:bare|plain|raw) (?P<commands>{OBJECTS})")
_SCRIPT = re.compile(r"`([a-z][\w-]*(?::[\w-]+)+)`")  # of package.json, such as `test:all`
_COMMANDS = forms(
    rf"(?:(?:bare|plain|raw|global|system) )?(?:commands? )?(?P<commands>{OBJECTS})"
    rf"(?:,? or any(?: other)? [\w-]+(?: CLIs?| commands?| tools?)?)?(?: commands?)?{TAIL}"
)
_ALL_OF_GIT = forms(rf"git(?: (?:commands?|operations?))+{TAIL}")
_BARE_COMMAND = re.compile(
    r"(?P<command>(?:git|npm|pnpm|yarn|cargo|docker|make|go|pip) [a-z][\w:-]*(?: --?[\w-]+)?)"
    rf"{TAIL}"
)
_THINGS_OF_TOOLS = re.compile(r" (?:hooks?|commands?|operations?|packages?|history|state|files?)\b")
_OTHERS_IN_BRACKETS = forms(
    rf"(?:(?:always|please) )*{NEVER} (?:run|use) (?:any )?other [\w -]+"
    rf" \((?:e\.g\.,? |such as |like )?(?P<commands>{CODES})(?:,? etc\.?)?\)"
)
_RUN_THESE_WITH = forms(
    rf"(?:(?:always|please) )*{NEVER} (?:run|execute|start|test|build) (?:it|this|them|these"
    rf"|the tests|tests)(?: directly)? (?:with|using|via|through|by running) (?P<commands>{CODES})"
)


def command_never(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Never run `git push --force`."""
    if match := whole_match(_NEVER_BARE + _RUN_THESE_WITH + _OTHERS_IN_BRACKETS, clause):
        commands = commands_in(match["commands"])
        return not_run(commands) if commands else None
    instruction = instruction_of(clause, prohibits)
    if (
        instruction is None
        or instruction.modality is not Modality.NEVER
        or not instruction.does(RUN | {"introduce"})
        or not instruction.has_only("for")
        or not _PURPOSE.fullmatch(instruction.tail("for") or "everything")
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
    bare = _BARE_COMMAND.fullmatch(instruction.object)
    if bare and not _THINGS_OF_TOOLS.search(bare["command"]):
        return not_run([bare["command"]])
    return None


_RUN_NONE = re.compile(
    rf"{NEVER} (?:attempt to |try to )?(?:run|use|execute)(?: (?:these|the following"
    r"|any|interactive))*"
    r" commands?(?: like| such as| directly| yourself)*[\s:!.]*$",
    re.I,
)
_RUN_NO_SUCH = forms(rf"{NEVER} (?:use|run) (?:this|it)")


def command_below(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """An item `pnpm new` below "Never run these commands", or `x` - NEVER USE THIS."""
    first, *others = re.split(r"\s[—–-]+\s", statement.text)
    code = re.fullmatch(r"`([^`]+)`", first.strip())
    if code is None or not is_runnable(code[1]):
        return None
    above = re.split(r" [—–-] ", statement.under[-1])[0] if statement.under else ""
    says_so = any(whole_match(_RUN_NO_SUCH, piece.strip(" .!")) for piece in others)
    return not_run([code[1]]) if says_so or _RUN_NONE.search(above) else None


_AGAINST = ("instead of", "in place of", "rather than", "not", "never")
_PAIRS = re.compile(rf"{CODE} (?:instead of|rather than|over|not) ({CODE})")
_WANTED = forms(rf"(?:{CODE}|[\w.-]+)(?: \w+)?")
_BEFORE_COMMANDS = re.compile(r"^(?:(?:just|plain|raw|bare|the|use|using|running|run) )+")
_NOT_WANTED = forms(rf"(?P<commands>{OBJECTS})(?: commands?| directly| CLI)?{TAIL}")
_ANY_VERB_NOT = forms(rf"[^`]+, not (?P<commands>{CODES})")


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
_PREFERRED = forms(rf"(?P<commands>{OBJECTS})(?: commands?| directly)?")


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
_PUSHING = (
    r"(?:directly )?(?:commit (?:or|and) push|push)(?: directly)? (?:commits |changes |code )?"
    rf"(?:directly )?(?:to|on) (?:the )?{_BRANCHES}{TAIL}"
)
_NEVER_PUSHED = forms(rf"(?:(?:always|please|important|strictly) )*{NEVER} {_PUSHING}")
_PUSHED = forms(_PUSHING)  # below "Do not"
_USUAL_BRANCHES = ("main", "master", "develop", "dev", "trunk", "production", "staging")


def push_to(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Never push to `main`."""
    match = whole_match(_NEVER_PUSHED + (_PUSHED if prohibits else ()), clause)
    if match is None:
        return None
    names = re.split(r" or |, |/(?=main|master)", match["branches"].replace("`", ""))
    if not all(name in _USUAL_BRANCHES or f"`{name}`" in clause for name in names):
        return None
    return _no_match("git push" + _pushed_to(any_of(map(re.escape, names))))


def _pushed_to(branch: str) -> str:
    """The part of a pattern that finds a branch among what is pushed, also as `+main`."""
    return rf"(?=.*[ :+](?:refs/heads/)?{branch}(?!\S))"


_PACKAGES = (
    r"(?:Python |Node |JavaScript |JS )?(?:(?:package|dependency)(?: and (?:package|dependency"
    r"|environment|project|virtual environment))? manage(?:r|ment)|package operations|package"
    r" installs?|package installation|dependencies|packages|installing (?:packages"
    r"|dependencies)|managing dependencies|dependency installs?)"
)
_MANAGER = r"`?(?P<name>\w+)`?"
_MANAGER_FOR_PACKAGES = forms(
    rf"{ADVERBS}(?:use|(?:(?:this|the) (?:project|repo|repository|codebase) )?uses(?= `?\w+`?"
    rf" (?:exclusively|only))) {_MANAGER}(?: (?:exclusively|only))?"
    rf" (?:as|for) (?:the |your |our |its |all )*{_PACKAGES}{TAIL}"
)
_ONLY_MANAGER = forms(
    rf"(?:always |only )use {_MANAGER}{TAIL}",
    rf"(?:always )?use {_MANAGER} (?:only|exclusively)",
    r"(?:package manager (?:is|must be) )?`?(?P<name>pnpm|npm|yarn|bun|uv|poetry)`? only",
    r"only `?(?P<name>pnpm|npm|yarn|bun|uv|poetry)`?",
)
_MANAGER_LABEL = forms(r"package manager")
_LABELLED_MANAGER = forms(rf"(?:always )?(?:use )?{_MANAGER}(?: only)?")
_MUST = re.compile(r"\b(?:always|use|only|required|must|exclusively)\b", re.I)
_MANAGER_HEADING = re.compile(r"\bpackage manager", re.I)
_MANAGER_BELOW = forms(rf"(?:always |only )?use {_MANAGER}{TAIL}")


def package_manager(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Use pnpm as the package manager."""
    if prohibits:
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
_FORCE_PUSH = (
    r"force[ -]push(?:es)?(?: (?:to|on) (?:any |shared |remote |collaborative )*"
    r"(?:branch(?:es)?|repos?))?"
)
_GIT_ACTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (_FORCE_PUSH, _FORCED),
    (r"amend (?:existing |previous |any |published )?commits", ("git commit --amend",)),
    (
        r"(?:skip|bypass|disable) (?:the |any )?(?:git |pre-commit |commit )*hooks?"
        r"(?: with `--no-verify`)?",
        _UNVERIFIED,
    ),
    (r"commit without (?:running )?(?:the )?pre-?commit(?: hooks)?", _UNVERIFIED[:1]),
    (r"bypass(?: them| it| hooks)? with `--no-verify`", _UNVERIFIED),
    (r"(?:use|pass|add) `?--no-verify`?", _UNVERIFIED),
    (r"rebase(?: branches| commits)?", ("git rebase",)),
    (r"merge (?:PRs?|pull requests?)", ("gh pr merge",)),
    (r"(?:create|open|submit) (?:an? |any )?(?:PRs?|pull requests?)", ("gh pr create",)),
    (r"(?:create|open|submit) (?:an? |any )?(?:GitHub )?issues?", ("gh issue create",)),
    (r"(?:run )?(?:git )?commit(?: anything| changes| code)?", ("git commit",)),
    (r"push(?: anything| changes| code| to (?:the )?remote)?", ("git push",)),
    (
        r"(?:commit (?:or|and|/) ?push|push (?:or|and) commit)(?: changes| code)?",
        ("git commit", "git push"),
    ),
)
_FORCE_PUSH_TO = r"force[ -]push(?:es)? to `?(?P<branch>main|master)`?(?: branch)?"
_WHEN_PUSHING = (
    r"(?:when (?:pushing|committing)[^,`]*, )?(?:always |please |make sure to |be sure to )*"
)


def _git_acts(never: str) -> tuple[tuple[tuple[re.Pattern[str], ...], tuple[str, ...]], ...]:
    return tuple((forms(f"{never}{act}{TAIL}"), commands) for act, commands in _GIT_ACTS)


_NEVER_DONE = _git_acts(rf"{_WHEN_PUSHING}{NEVER} ")
_DONE = _git_acts("")  # below "Do not"
_NEVER_FORCED_TO = forms(rf"{_WHEN_PUSHING}{NEVER} {_FORCE_PUSH_TO}{TAIL}")
_FORCED_TO = forms(f"{_FORCE_PUSH_TO}{TAIL}")  # below "Do not"


def git_never(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Never force-push."""
    # with a lease is what a line that names it recommends
    forced = _FORCED[:1] if "--force-with-lease" in statement.text else _FORCED
    for ways, commands in _NEVER_DONE + (_DONE if prohibits else ()):
        if whole_match(ways, clause):
            return not_run(forced if commands == _FORCED else commands)
    if match := whole_match(_NEVER_FORCED_TO + (_FORCED_TO if prohibits else ()), clause):
        return _no_match(any_of(map(command_pattern, forced)) + _pushed_to(match["branch"]))
    return None
