"""Rules about commands: never run one, use one instead of another, prefer one to another."""

import re
from collections.abc import Sequence

from holdfast.drafting.clauses import (
    ADVERBS,
    CODE,
    NEVER,
    OBJECTS,
    TAIL,
    after_never,
    names_in,
)
from holdfast.drafting.commands import (
    any_of,
    command_pattern,
    is_command,
    is_runnable,
    is_tool,
    other_installs,
)
from holdfast.drafting.drafts import Draft
from holdfast.drafting.instructions import RUN, Modality, instruction_of
from holdfast.drafting.rules_file import Statement


def commands_in(objects: str) -> list[str] | None:
    """The commands of a list; None if something in it may be none."""
    names = names_in(objects)
    commands = [name for name, is_code in names if (is_command(name) if is_code else is_tool(name))]
    return commands if commands and len(commands) == len(names) else None


def not_run(commands: Sequence[str]) -> list[Draft]:
    pattern = any_of(map(command_pattern, commands))
    return [Draft("command", "prohibition", {"name": "command_not_run", "command": pattern})]


def command_never(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Never run `git push --force`."""
    if bare := re.fullmatch(rf"never (?:bare|plain|raw) ({OBJECTS})", clause, re.I):
        commands = commands_in(bare[1])
        return not_run(commands) if commands else None
    instruction = instruction_of(clause, prohibits)
    if (
        instruction is None
        or instruction.modality is not Modality.NEVER
        or not instruction.does(RUN | {"introduce"})
        or not instruction.has_only()
    ):
        return None
    script = re.fullmatch(r"`([a-z][\w-]*(?::[\w-]+)+)`", instruction.object)
    if script and "run" in instruction.verbs:  # of package.json
        pattern = rf"(?:npm|pnpm|yarn|bun)(?: run)? {re.escape(script[1])}(?!\S)"
        return [Draft("command", "prohibition", {"name": "command_not_run", "command": pattern})]
    others = r"(?:,? or any(?: other)? [\w-]+(?: CLIs?| commands?| tools?)?)?"
    match = re.fullmatch(
        rf"(?:(?:bare|plain|raw|global|system) )?(?:commands? )?({OBJECTS}){others}(?:"
        rf" commands?)?{TAIL}",
        instruction.object,
        re.I,
    )
    commands = commands_in(match[1]) if match else None
    if commands is None and re.fullmatch(rf"git(?: (?:commands?|operations?))+{TAIL}",
                                         instruction.object, re.I):  # fmt: skip
        commands = ["git"]
    plain = re.fullmatch(rf"((?:git|npm|pnpm|yarn|cargo|docker|make|go|pip) [a-z][\w:-]*"
                         rf"(?: --?[\w-]+)?){TAIL}", instruction.object)  # fmt: skip
    if (
        commands is None
        and plain
        and not re.search(
            r" (?:hooks?|commands?|operations?|packages?"
            r"|history|state|files?)\b",
            plain[1],
        )
    ):
        commands = [plain[1]]
    return not_run(commands) if commands else None


_RUN_NONE = re.compile(
    rf"{NEVER} (?:attempt to |try to )?(?:run|use|execute)(?: (?:these|the following"
    r"|any|interactive))*"
    r" commands?(?: like| such as| directly| yourself)*[\s:!.]*$",
    re.I,
)


def command_below(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """An item `pnpm new` below "Never run these commands", or `x` - NEVER USE THIS."""
    pieces = re.split(r"\s[—–-]+\s", statement.text)
    code = re.fullmatch(r"`([^`]+)`", pieces[0].strip())
    if code is None or not is_runnable(code[1]):
        return None
    this = any(
        re.fullmatch(rf"{NEVER} (?:use|run) (?:this|it)", piece.strip(" .!"), re.I)
        for piece in pieces[1:]
    )
    above = re.split(r" [—–-] ", statement.under[-1])[0] if statement.under else ""
    if this or _RUN_NONE.search(above):
        return not_run([code[1]])
    return None


_SIGN_OFF = (
    r"(?:(?:DCO|developer certificate of origin) )?(?:sign(?:ed)?[ -]?offs?|signed-off-by)"
    r"(?: \((?:DCO|developer certificate of origin)\))?"
)
_COMMITS = (
    r"(?:(?:all|every|each|any|your|the|git|of|its|their|own) )*commits?(?: messages?| logs?)?"
)
_WITH_OPTION = r" ?(?:with|using|via|by|\(| - |:)?(?: (?:passing|using|adding|the))*"
_OPTION = r"(?-i:--signoff|-[a-z]{0,3}s[a-z]{0,3})(?: [^`]*)?`"
_SIGNING = rf"`(?:git commit )?{_OPTION}"
_FOR = (
    r"(?: (?:flag|option))?\)?(?: (?:to|for|so|per|as|under|in) "
    r"(?:(?!\b(?:if|when|unless|only|not)\b).)*| \(DCO\))?"
)
_SIGNED_OFF = (
    rf"(?:when committing,? )?{ADVERBS}(?:use|run) (?:the )?`git commit {_OPTION}"
    rf"(?: (?:when committing|(?:to|for|on|with|in) {_COMMITS}))?{_FOR}",
    rf"(?:when committing,? )?{ADVERBS}commit (?:with|using) (?:the )?{_SIGNING}{_FOR}",
    rf"{ADVERBS}(?:use|pass|add|include) (?:the )?{_SIGNING}(?: (?:flag|option))?"
    rf" (?:when committing|(?:to|for|on|with|in) {_COMMITS}|to sign[ -]?off {_COMMITS}){_FOR}",
    rf"{ADVERBS}sign[ -]?off(?: on)? {_COMMITS}(?:{_WITH_OPTION} ?{_SIGNING})?{_FOR}",
    rf"{ADVERBS}sign {_COMMITS}(?:{_WITH_OPTION}(?: the)? DCO)?{_WITH_OPTION} ?{_SIGNING}{_FOR}",
    rf"{_COMMITS} (?:must|should|need to|have to|are required to) (?:always )?be"
    rf" (?:DCO )?(?:signed[ -]?off(?:{_WITH_OPTION} ?{_SIGNING})?"
    rf"|signed{_WITH_OPTION} ?{_SIGNING}){_FOR}",
    rf"{_COMMITS} (?:(?:must|should) (?:have|include|contain|carry)|(?:need|require)s?)"
    rf" (?:an? |the )?[`\"]?{_SIGN_OFF}:?[`\"]?(?: (?:lines?|trailers?|footers?|tags?))?"
    rf"(?:{_WITH_OPTION} ?{_SIGNING})?{_FOR}",
    rf"{_SIGN_OFF} (?:is |are )?(?:required|mandatory)(?: (?:on|for|in) {_COMMITS})?"
    rf"(?:{_WITH_OPTION} ?{_SIGNING})?{_FOR}",
    rf"{_SIGN_OFF}{_WITH_OPTION} ?{_SIGNING}",
)
_NOT_SIGNED_OFF = (
    rf"(?:add|include|use|put|append|insert|write|forge)(?: an?| any| the| your)? "
    rf"(?:[`\"]?{_SIGN_OFF}:?[^`\"]{{0,40}}[`\"]?(?: (?:lines?|trailers?|footers?|tags?))?"
    rf"|{_SIGNING}(?: (?:flag|option))?)(?: (?:to|in|on|for|with) {_COMMITS})?{TAIL}",
    rf"(?:run|use) {_SIGNING}{TAIL}",
    rf"sign[ -]?off(?: on)? {_COMMITS}(?:{_WITH_OPTION} ?{_SIGNING})?{TAIL}",
)


def signed_off(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Sign off every commit (`git commit -s`); never add `Signed-off-by` lines."""
    trailer = {"trailer": "(?i)^Signed-off-by:"}
    rest = re.sub(r"^(?:AI|coding|automated) (?=(?:agents?|assistants?)\b)", "", clause, flags=re.I)
    for form in _NOT_SIGNED_OFF:
        left = after_never(f"{rest} ", "", prohibits)
        if left is not None and re.fullmatch(form, left.strip(), re.I):
            return [Draft("commit", "prohibition", {"name": "commit_excludes", **trailer})]
    signs = re.fullmatch(
        rf"(?:sign(?:[ -]?off)?(?: {_COMMITS})?|{_SIGN_OFF}(?: required)?|DCO)",
        statement.label,
        re.I,
    )
    says = signs and re.fullmatch(rf"(?:always |use |run )*{_SIGNING}{_FOR}", clause, re.I)
    if prohibits or not (says or any(re.fullmatch(form, clause, re.I) for form in _SIGNED_OFF)):
        return None
    return [Draft("commit", "requirement", {"name": "commit_includes", **trailer})]


_PURPOSE = re.compile(
    r"(?:all |any )?(?:package|dependency|dependencies|installing|everything|installs)[\w\s]*", re.I
)
_AGAINST = ("instead of", "in place of", "rather than", "not", "never")


def instead_of(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Use pnpm, not npm or yarn."""
    plain = re.sub(r"^uses ", "use ", clause, flags=re.I)
    instruction = instruction_of(re.sub(r"(?<=[`\w]) (?:only|exclusively)(?=[, ])", "", plain))
    if instruction is None or prohibits or instruction.modality is not Modality.MUST:
        return None
    pairs = re.findall(rf"{CODE} (?:instead of|rather than|over|not) ({CODE})", clause)
    if len(pairs) > 1:  # "`fd` instead of `find` and `rg` instead of `grep`"
        commands = commands_in(", ".join(pairs))
        return not_run(commands) if commands else None
    against = instruction.tail(*_AGAINST)
    names_code = re.fullmatch(rf"(?:{CODE}|[\w.-]+)(?: \w+)?", instruction.object)
    if against is None or not instruction.has_only(*_AGAINST, "as", "for", "via", "with", "in"):
        return None
    if not instruction.does(("use", "run", "call", "edit", "add", "update")):
        return None
    if not (names_code or "`" in against):
        return None
    plain = re.sub(r"^(?:(?:just|plain|raw|bare|the|use|using|running|run) )+", "", against)
    words = [word for word, _ in instruction.tails]
    after = instruction.tails[next(n for n, word in enumerate(words) if word in _AGAINST) :]
    purposes = [text for word, text in after if word in ("for", "in", "with", "via")]
    if not all(map(_PURPOSE.fullmatch, purposes)):
        return None
    match = re.fullmatch(rf"({OBJECTS})(?: commands?| directly| CLI)?{TAIL}", plain, re.I)
    commands = commands_in(match[1]) if match else None
    wanted = instruction.object.strip("`")
    if not commands or any(wanted.startswith(f"{name} ") or wanted == name for name in commands):
        return None  # `npm run test`, not `npm`: what is wanted begins with what is not
    return not_run(commands)


def preferred(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Prefer `rg` over `grep`."""
    instruction = instruction_of(clause)
    if instruction is None or prohibits or instruction.modality is not Modality.PREFER:
        return None
    against = instruction.tail("over", "to", "instead of", "rather than")
    if against is None or not instruction.has_only("over", "to", "instead of", "rather than"):
        return None
    plain = re.sub(r"^(?:using|running|plain|raw|bare|the|direct) ", "", against)
    wanted = re.fullmatch(rf"({OBJECTS})(?: commands?)?", instruction.object)
    others = re.fullmatch(rf"({OBJECTS})(?: commands?| directly)?", plain)
    use = commands_in(wanted[1]) if wanted else None
    rather_than = commands_in(others[1]) if others else None
    if not use or not rather_than or set(use) & set(rather_than):
        return None
    patterns = [any_of(map(command_pattern, commands)) for commands in (use, rather_than)]
    spec = {"name": "prefers", "use": patterns[0], "rather_than": patterns[1]}
    return [Draft("command", "requirement", spec)]


def push_to(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Never push to `main`."""
    branches = r"(?P<branches>`?[\w./-]+`?(?:(?: or |, |/)`?[\w./-]+`?)*)"
    rest = after_never(
        clause, r"(?:directly )?(?:commit (?:or|and) push|push)(?: directly)?", prohibits
    )
    match = re.fullmatch(
        rf"(?:commits |changes |code )?(?:directly )?(?:to|on) (?:the )?{branches}(?:"
        rf" branch(?:es)?)?{TAIL}",
        rest or "",
        re.I,
    )
    names = (
        re.split(r" or |, |/(?=main|master)", match["branches"].replace("`", "")) if match else []
    )
    known = ("main", "master", "develop", "dev", "trunk", "production", "staging")
    if not names or not all(name in known or f"`{name}`" in clause for name in names):
        return None
    either = any_of(map(re.escape, names))
    pattern = rf"git push(?=.*[ :]{either}(?!\S))"
    return [Draft("command", "prohibition", {"name": "command_not_run", "command": pattern})]


def package_manager(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Use pnpm as the package manager."""
    what = (
        r"(?:Python |Node |JavaScript |JS )?(?:(?:package|dependency)(?: and (?:package|dependency"
        r"|environment|project|virtual environment))? manage(?:r|ment)|package operations|package"
        r" installs?|package installation|dependencies|packages|installing (?:packages"
        r"|dependencies)|managing dependencies|dependency installs?)"
    )
    match = re.fullmatch(
        rf"{ADVERBS}(?:use|(?:(?:this|the) (?:project|repo|repository|codebase) )?uses(?= `?\w+`?"
        rf" (?:exclusively|only))) `?(\w+)`?(?: (?:exclusively|only))?"
        rf" (?:as|for) (?:the |your |our |its |all )*(?:{what}){TAIL}",
        clause,
        re.I,
    )
    if match is None and re.fullmatch("package manager", statement.label, re.I):
        said = re.search(r"\b(?:always|use|only|required|must|exclusively)\b", statement.text, re.I)
        form = r"(?:always )?(?:use )?`?(\w+)`?(?: only)?"
        match = re.fullmatch(form, clause, re.I) if said else None
    headed = statement.under and re.search(r"\bpackage manager", statement.under[-1], re.I)
    if match is None:
        always = r"(?:always |only )" if not headed else r"(?:always |only )?"
        match = re.fullmatch(rf"{always}use `?(\w+)`?{TAIL}", clause, re.I) or re.fullmatch(
            r"(?:always )?use `?(\w+)`? (?:only|exclusively)|(?:package manager (?:is|must be) )?"
            r"`?(pnpm|npm|yarn|bun|uv|poetry)`? only|only `?(pnpm|npm|yarn|bun|uv|poetry)`?",
            clause,
            re.I,
        )
    name = next(filter(None, match.groups()), "") if match else ""
    others = other_installs(name.lower()) if match and not prohibits else None
    spec = {"name": "command_not_run", "command": others}
    return [Draft("command", "requirement", spec)] if others else None


_GIT_ACTS = (
    (
        r"force[ -]push(?:es)?(?: (?:to|on) (?:any |shared |remote |collaborative )*"
        r"(?:branch(?:es)?|repos?))?",
        ["git push --force"],
    ),
    (r"amend (?:existing |previous |any |published )?commits", ["git commit --amend"]),
    (
        r"(?:skip|bypass|disable) (?:the |any )?(?:git |pre-commit |commit )*hooks?"
        r"(?: with `--no-verify`)?",
        ["git commit --no-verify", "git push --no-verify"],
    ),
    (r"rebase(?: branches| commits)?", ["git rebase"]),
    (r"merge (?:PRs?|pull requests?)", ["gh pr merge"]),
    (r"bypass(?: them| it| hooks)? with `--no-verify`",
     ["git commit --no-verify", "git push --no-verify"]),
    (r"use --no-verify", ["git commit --no-verify", "git push --no-verify"]),
    (r"(?:use|pass|add) `--no-verify`", ["git commit --no-verify", "git push --no-verify"]),
    (r"(?:create|open|submit) (?:an? |any )?(?:PRs?|pull requests?)", ["gh pr create"]),
    (r"(?:create|open|submit) (?:an? |any )?(?:GitHub )?issues?", ["gh issue create"]),
    (r"(?:run )?(?:git )?commit(?: anything| changes| code)?", ["git commit"]),
    (r"push(?: anything| changes| code| to (?:the )?remote)?", ["git push"]),
    (r"(?:commit (?:or|and|/) ?push|push (?:or|and) commit)(?: changes| code)?",
     ["git commit", "git push"]),
)  # fmt: skip


def git_never(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Never force-push."""
    for act, commands in _GIT_ACTS:
        start = rf"(?:{NEVER} )?" if prohibits else rf"(?:(?:always|please) )*{NEVER} "
        if re.fullmatch(rf"{start}{act}{TAIL}", clause, re.I):
            return not_run(commands)
    start = rf"(?:{NEVER} )?" if prohibits else rf"(?:(?:always|please) )*{NEVER} "
    branch = r"force[ -]push(?:es)? to `?(main|master)`?(?: branch)?"
    if match := re.fullmatch(rf"{start}{branch}{TAIL}", clause, re.I):
        to = rf"(?=.*[ :]{match[1]}(?!\S))"
        pattern = rf"git push(?=.* (?:--force|-f)(?!\S)){to}"
        return [Draft("command", "prohibition", {"name": "command_not_run", "command": pattern})]
    return None
