"""How a line of a rules file becomes a rule.

A statement is cut into clauses ("Use pnpm, never npm - it breaks the lockfile"). One of them has to
be, from its first to its last word, a form in the tables below; the others may give reasons, but
no exceptions. What the line says more than that, or only under a condition, is no rule here:
`draft` then answers with the reason. A line that no form fits is never guessed at.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.drafting.commands import (
    any_of,
    command_pattern,
    is_command,
    is_runnable,
    is_tool,
    other_installs,
    parts_of,
    path_glob,
    required_pattern,
    without_placeholder,
)
from holdfast.drafting.rules_file import Part, Statement
from holdfast.drift.rule_kinds import Polarity, RuleKind
from holdfast.measures.arguments import NAMES

Spec = dict[str, Any]


@dataclass(frozen=True)
class Draft:
    """A rule that a line says.

    Args:
        measure: the spec of the measure that decides it.
        when: the turns that it applies to, as a suite has them; {} for all.
    """

    kind: RuleKind
    polarity: Polarity
    measure: Spec
    when: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Undrafted:
    """Why a line is no rule of the suite."""

    reason: str


NOT_AN_INSTRUCTION = Undrafted("not an instruction")
NO_MEASURE = Undrafted("no measure reads this, or not from these words")
NEEDS_A_JUDGE = Undrafted("needs a judge")
A_PREFERENCE = Undrafted("a preference, which allows exceptions")
CONDITIONAL = Undrafted("it holds only under a condition, which `when:` cannot express")
AN_EXCEPTION = Undrafted("it names an exception, which no measure reads")

_NEVER = (
    r"(?:(?:you|we|agents?|claude|assistants?|it) )?(?:never(?: ever)?|(?:do not|don['’]t|must not"
    r"|mustn['’]t|must never|should not|shouldn['’]t|should never|may not|cannot"
    r"|can['’]t)(?: ever)?"
    r")"
)
_ADVERBS = (
    r"(?:(?:always|please|also|only|then|instead|and|you must|must|make sure to|be sure to) )*"
)
_SOFT = re.compile(
    r"\b(?:avoid|prefer|preferably|try to|consider|generally|usually|typically"
    r"|ideally|where possible"
    r"|when possible|if possible|whenever possible|as a rule|in most cases|should"
    r" probably|may want)\b",
    re.I,
)
_CONDITION = re.compile(
    r"\b(?:if|when|whenever|while|during|once|in case|depending|for (?:new|existing"
    r"|complex|large))\b",
    re.I,
)
_KIND_OF_CHANGE = re.compile(r"\b(?:changes?|files?|code|only)$", re.I)  # as in "Rust changes: ..."
_EXCEPTION = re.compile(
    r"\b(?:unless|except|exceptions?|exempt|other than|apart from|aside from|however"
    r"|but|allowed|only (?:if|when|for|in|on|with|as)"
    r"|permitted|until|without|fine|okay|ok|may|might|rarely|sparingly|directly in)\b",
    re.I,
)
_EXCEPTION_AFTER = re.compile(
    r"^(?:the (?:only|sole|one) exception|exceptions?\b|except\b|unless\b|however\b|but\b|only\b"
    r"|if you (?:need|must|have)|allowed\b|it['’]s (?:fine|ok))",
    re.I,
)
_INSTRUCTION = re.compile(
    r"\b(?:always|never|must|should|shall|do not|don['’]t|cannot|can['’]t|avoid|only"
    r"|ensure|make sure|"
    r"required|forbidden|prohibited|prefer|no)\b|^(?:use|add|run|keep|write|follow"
    r"|check|read|update|"
    r"create|include|put|place|test|document|name|return|handle|format|commit|open"
    r"|set|remove|start|"
    r"end|reply|answer|respond|call|import|export|define|declare|fix|verify|review|see|ask|wait|do|"
    r"stop|preserve|match|install|build|edit|mark|pass|treat|store|validate|work|delete|apply|make|"
    r"load|state|inspect|repeat|provide|resolve|design|generate|consider|try|look|stay|be|leave|"
    r"avoid|let|implement|explain|describe|update|change|change|limit|group|split|move|rename|wrap|"
    r"extract|inspect|report|log|throw|raise|catch|pin|bump|push|rebase|merge|squash"
    r"|reference|link|"
    r"mention|assume|confirm|search|find|list|reuse|lead|skip|drop|note|remember|understand)\b",
    re.I,
)
_REASON = (
    r"directly|locally|manually|by hand|here|anywhere|at all|ever|yourself|under any circumstances?"
    r"|for any reason|in this (?:repo|repository|project|codebase|workspace|monorepo)|in the repo"
)
_TAIL = rf"(?: (?:{_REASON}))*"

# headings and introductions of lists that turn what is below into prohibitions
_PROHIBITS = re.compile(
    r"^(?:(?:things|what) (?:you )?(?:(?:must|should) )?(?:not|never)(?: to)?(?: do)?"
    r"|do not|don['’]?ts?"
    r"|never(?: do)?|must not|forbidden(?: \w+)?|prohibited(?: \w+)?|you (?:must"
    r"|should) (?:not|never)"
    r"|(?:hard )?(?:nevers|don['’]ts)|never do this)[\s:!.—-]*$",
    re.I,
)
_EXAMPLES = re.compile(
    r"\b(?:examples?|for instance)\b[^.]{0,12}:?$"
    r"|^(?:wrong|bad|incorrect|good|correct|before|after)\b[^.\w]{0,3}$",
    re.I,
)

_CODE = r"`[^`]+`"
_OBJECT = rf"(?:{_CODE}|[\w./@:+-]+)"
_OBJECTS = rf"{_OBJECT}(?:(?:,? (?:or|and|nor)|,|/| /) ?{_OBJECT})*"
_CODES = rf"{_CODE}(?:(?:,? (?:then|and then|and|or|&&)|,) ?{_CODE})*"


def draft(statement: Statement) -> list[Draft] | Undrafted:
    """The rules that a statement says, or the reason why it is none."""
    if statement.part is Part.HEADING and statement.block:
        return _heading_before(statement) or Undrafted(statement.part.value)
    if statement.part is not Part.SENTENCE:
        return Undrafted(statement.part.value)
    if reason := _context(statement):
        return reason
    says_never = re.match(rf"{_NEVER}\b", statement.text, re.I)
    prohibits = not says_never and any(map(_PROHIBITS.match, statement.under[-1:]))
    conditions = [
        name
        for name in (statement.label, *statement.under)
        if not _UNCONDITIONAL.search(name) and _CONDITION.search(name)
    ]
    conditions += [statement.label] if _KIND_OF_CHANGE.search(statement.label) else []
    clauses = list(_clauses(statement))
    for form in _FORMS:
        drafts: list[Draft] = []
        for clause, rest in clauses:
            said = form(clause, statement, prohibits)
            if said is None:
                continue
            if conditions:
                return CONDITIONAL
            others = [text for text in rest if form(text, statement, prohibits) is None]
            if any(map(_names_exception, others)) or _EXCEPTION_AFTER.search(statement.following):
                return AN_EXCEPTION
            drafts += [rule for rule in said if rule not in drafts]
        if drafts:
            return drafts
    return _why_not(statement)


def _context(statement: Statement) -> Undrafted | None:
    """The reason that lies in where a statement stands."""
    if any(_EXAMPLES.search(name) for name in statement.under[-1:]):
        return Undrafted("an example")
    if re.match(
        r"(?:example|e\.g\.|for example|bad|good|wrong|correct|incorrect)\b", statement.label, re.I
    ):
        return Undrafted("an example")
    return None


def _why_not(statement: Statement) -> Undrafted:
    text = f"{statement.label}: {statement.text}" if statement.label else statement.text
    if _SOFT.search(text):
        return A_PREFERENCE
    if not _INSTRUCTION.search(text):
        return NOT_AN_INSTRUCTION
    if _CONDITION.search(text) or re.search(r"\bunless\b", text):
        return CONDITIONAL
    return NO_MEASURE if "`" in text else NEEDS_A_JUDGE


def _clauses(statement: Statement) -> Iterator[tuple[str, list[str]]]:
    """Each clause of a statement, with the others."""
    text = re.sub(r"\((not|never) ([^()]+)\)", r", \1 \2", statement.text).replace(" ,", ",")
    text = re.sub(r"^(?:in particular|specifically|note|important),? ", "", text, flags=re.I)
    hidden = re.sub(r"`[^`]*`", lambda match: "x" * len(match[0]), text)
    cuts = [0]
    aside: list[str] = []
    for match in re.finditer(
        r"\s+[—–]\s*|\s+-{1,2}\s+|;\s+|: (?=\S)|\s*\(((?:[^()]|\([^()]*\))*)\)", hidden
    ):
        cuts += [match.start(), match.end()]
        if match[1] is not None:
            aside.append(text[match.start(1) : match.end(1)])
    pieces = [text[a:b] for a, b in zip(cuts[::2], [*cuts[1::2], len(text)], strict=True)]
    pieces = [piece.strip(" .!,:") for piece in pieces if piece.strip(" .!,:")]
    aside_or_code = r"(`[^`]*`)|\s*\((?:[^()]|\([^()]*\))*\)"
    whole = re.sub(aside_or_code, lambda match: match[1] or "", text).strip(" .!,:")
    if whole not in pieces:
        yield whole, aside
    for index, piece in enumerate(pieces):
        yield piece, [*pieces[:index], *pieces[index + 1 :], *aside]


def _names_exception(text: str) -> bool:
    """Whether a clause beside the rule takes something out of it."""
    if re.match(
        r"(?:always |please |instead,? )?(?:use|run|prefer|see|edit|regenerate)\b", text, re.I
    ):
        return bool(re.search(r"\b(?:unless|except)\b", text, re.I))
    return bool(_EXCEPTION.search(text) or re.match(r"(?:if|when)\b", text, re.I))


def _prohibited(clause: str, verbs: str, prohibits: bool) -> str | None:
    """What follows "never VERB" in a clause, or "VERB" below a heading such as "Do not"."""
    never = rf"(?:(?:always|please|important|strictly) )*{_NEVER} "
    start = rf"(?:{never})?" if prohibits else never
    match = re.match(rf"{start}(?:{verbs})\b(?: the)?(?: commands?)?\s*", clause, re.I)
    return clause[match.end() :] if match else None


def _listed(objects: str) -> list[tuple[str, str]]:
    return re.findall(r"`([^`]+)`|(?:(?<=^)|(?<=[\s/,]))(?!(?:or|and|nor)\b)([\w.@:+-]+)", objects)


def _names(objects: str) -> list[tuple[str, bool]]:
    """The things of a list, and whether each is in backticks."""
    return [(without_placeholder(code) or word, bool(code)) for code, word in _listed(objects)]


def _commands(objects: str) -> list[str] | None:
    """The commands of a list; None if something in it may be none."""
    names = _names(objects)
    commands = [name for name, is_code in names if (is_command(name) if is_code else is_tool(name))]
    return commands if commands and len(commands) == len(names) else None


def _not_run(commands: Sequence[str]) -> list[Draft]:
    pattern = any_of(map(command_pattern, commands))
    return [Draft("command", "prohibition", {"name": "command_not_run", "command": pattern})]


def _command_never(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Never run `git push --force`."""
    rest = _prohibited(clause, "run|use|execute|invoke|call|type|issue|introduce", prohibits)
    if rest is None and (match := re.match(rf"{_NEVER} (?=`)", clause, re.I)):
        rest = clause[match.end() :]
    others = r"(?:,? or any(?: other)? [\w-]+(?: CLIs?| commands?| tools?)?)?"
    match = (
        re.fullmatch(rf"({_OBJECTS}){others}(?: commands?)?{_TAIL}", rest, re.I) if rest else None
    )
    commands = _commands(match[1]) if match else None
    script = re.fullmatch(r"`([a-z][\w-]*(?::[\w-]+)+)`", rest or "")
    if script and re.search(r"\brun `", clause, re.I):  # of package.json
        pattern = rf"(?:npm|pnpm|yarn|bun)(?: run)? {re.escape(script[1])}(?!\S)"
        return [Draft("command", "prohibition", {"name": "command_not_run", "command": pattern})]
    if commands is None and (
        bare := re.fullmatch(rf"never (?:bare|plain|raw) ({_OBJECTS})", clause, re.I)
    ):
        commands = _commands(bare[1])
    return _not_run(commands) if commands else None


_RUN_NONE = re.compile(
    rf"{_NEVER} (?:attempt to |try to )?(?:run|use|execute)(?: (?:these|the following"
    r"|any|interactive))*"
    r" commands?(?: like| such as| directly| yourself)*[\s:!.]*$",
    re.I,
)


def _command_below(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """An item `pnpm new` below "Never run these commands", or `x` - NEVER USE THIS."""
    pieces = re.split(r"\s[—–-]+\s", statement.text)
    code = re.fullmatch(r"`([^`]+)`", pieces[0].strip())
    if code is None or not is_runnable(code[1]):
        return None
    this = any(
        re.fullmatch(rf"{_NEVER} (?:use|run) (?:this|it)", piece.strip(" .!"), re.I)
        for piece in pieces[1:]
    )
    above = re.split(r" [—–-] ", statement.under[-1])[0] if statement.under else ""
    if this or _RUN_NONE.search(above):
        return _not_run([code[1]])
    return None


def _signed_off(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Always use `git commit -s`."""
    form = rf"(?:always |you must |must )+(?:use|run) `git commit (?:-s|--signoff)`{_TAIL}.*"
    signs = re.fullmatch("sign(?:[ -]off)?(?: all| your)? commits?", statement.label, re.I)
    signed = signs and re.fullmatch("`git commit (?:-s|--signoff)`", clause)
    if prohibits or not (signed or re.fullmatch(form, clause, re.I)):
        return None
    pattern = r"git commit(?!.* (?:-\w*s\w*|--signoff)(?!\S))(?!\S)"
    return [Draft("command", "requirement", {"name": "command_not_run", "command": pattern})]


_PURPOSE = (
    r"(?: for (?:all |any )?(?:package|dependency|dependencies|installing|everything"
    r"|installs)[\w\s]*)?"
)


def _instead_of(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Use pnpm, not npm or yarn."""
    if prohibits:
        return None
    match = re.fullmatch(
        rf"{_ADVERBS}(?:use|run)s? (?:only )?({_CODE}|[\w.-]+)(?: (?:as|for) [\w\s-]{{1,40}}?)?,? "
        rf"(?:and |but )?(?:not|never|never use|instead of|rather than|do not use|don['’]t use)"
        rf" (?:plain |raw |bare |the )?({_OBJECTS}){_TAIL}{_PURPOSE}",
        clause,
        re.I,
    )
    commands = _commands(match[2]) if match else None
    wanted = match[1].strip("`") if match else ""
    other = re.fullmatch(
        rf"(?:always )?(?:edit|use|run|call|add|update)\b.{{1,60}} instead of (?:using |running )"
        rf"({_CODES})(?:, then .*)?",
        clause,
        re.I,
    )
    if match is None and other:
        commands = _commands(other[1])
    if not commands or any(wanted.startswith(f"{name} ") or wanted == name for name in commands):
        return None  # `npm run test`, not `npm`: what is wanted begins with what is not
    return _not_run(commands)


def _package_manager(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Use pnpm as the package manager."""
    what = r"package manage(?:r|ment)|dependency management|(?:all )?package operations"
    match = re.fullmatch(
        rf"{_ADVERBS}use `?(\w+)`? (?:as|for) (?:the |your |our |all )?(?:{what}){_TAIL}",
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
        match = re.fullmatch(rf"{always}use `?(\w+)`?{_TAIL}", clause, re.I) or re.fullmatch(
            r"(?:always )?use `?(\w+)`? (?:only|exclusively)", clause, re.I
        )
    others = other_installs(match[1].lower()) if match and not prohibits else None
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
    (r"(?:use|pass|add) `--no-verify`", ["git commit --no-verify", "git push --no-verify"]),
    (r"(?:create|open|submit) (?:an? |any )?(?:PRs?|pull requests?)", ["gh pr create"]),
    (r"(?:create|open|submit) (?:an? |any )?(?:GitHub )?issues?", ["gh issue create"]),
    (r"(?:run )?(?:git )?commit(?: anything| changes| code)?", ["git commit"]),
    (r"push(?: anything| changes| code| to (?:the )?remote)?", ["git push"]),
    (r"(?:commit (?:or|and|/) ?push|push (?:or|and) commit)(?: changes| code)?",
     ["git commit", "git push"]),
)  # fmt: skip


def _git_never(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Never force-push."""
    for act, commands in _GIT_ACTS:
        start = rf"(?:{_NEVER} )?" if prohibits else rf"(?:(?:always|please) )*{_NEVER} "
        if re.fullmatch(rf"{start}{act}{_TAIL}", clause, re.I):
            return _not_run(commands)
    start = rf"(?:{_NEVER} )?" if prohibits else rf"(?:(?:always|please) )*{_NEVER} "
    branch = r"force[ -]push(?:es)? to `?(main|master)`?(?: branch)?"
    if match := re.fullmatch(rf"{start}{branch}{_TAIL}", clause, re.I):
        to = rf"(?=.*[ :]{match[1]}(?!\S))"
        pattern = rf"git push(?=.* (?:--force|-f)(?!\S)){to}"
        return [Draft("command", "prohibition", {"name": "command_not_run", "command": pattern})]
    return None


_EVENTS = (
    (r"(?:(?:you )?commit(?:s|ting)?)", r"git commit(?!\S)"),
    (r"(?:(?:you )?push(?:es|ing)?)", r"git push(?!\S)"),
    (
        r"(?:(?:opening|creating|submitting|raising|making|you open|you create)? ?"
        r"(?:an? |any |the |your |new )*(?:PRs?|pull[ -]requests?))",
        r"gh pr create(?!\S)",
    ),
)
_OF_CHANGES = (
    r"(?: (?:to (?:the )?(?:remote|repo(?:sitory)?|GitHub)|"
    r"(?:any |your |the |all )?(?:code |file )?(?:changes?|code|anything|work)))?"
)
_EVENT_NAMES = "|".join(event for event, _ in _EVENTS)
_EVENT = (
    r"(?:every |each |any |all |a |making (?:a |any )?)*"
    rf"(?P<event>(?:{_EVENT_NAMES})(?:{_OF_CHANGES} or (?:{_EVENT_NAMES}))?)"
)
_GENERAL = (
    r"(?:when(?:ever)? (?:you )?(?:make|making|modify|modifying|change|changing|edit|editing|write"
    r"|writing) (?:any )?(?:code|changes)[\w /]*, )?"
)
_BEFORE = re.compile(
    rf"^{_GENERAL}(?:before {_EVENT}{_OF_CHANGES}\b[^`]*|[^`]*\b(?:run|execute)\b[^`]*"
    rf" before {_EVENT.replace('<event>', '<event2>')}{_OF_CHANGES}[:.]*)$",
    re.I,
)
_UNCONDITIONAL = re.compile(
    rf"^{_GENERAL}(?:[^`]*\bbefore\b|when(?:ever)? (?:you )?(?:commit|push)(?:ting|ing)?\b)", re.I
)
_CHECKS = (
    r"(?:(?:always |please |you must |must |make sure to |be sure to )*(?:run|execute|use)|"
    r"(?:always |please )*(?:run|format|lint|check|test|validate|verify"
    r"|type-?check)\b[\w\s'/-]{1,40}?"
    r" (?:with|using|via|by running))"
)


def _event_pattern(text: str) -> str:
    """The pattern of what an event, or one event or another, is done with."""
    parts = re.split(rf"(?<=\w) or (?={_EVENT_NAMES})", text.strip(), flags=re.I)
    bare = [re.sub(rf"{_OF_CHANGES}$", "", part, flags=re.I) for part in parts]
    return any_of(
        next(pattern for event, pattern in _EVENTS if re.fullmatch(event, part, re.I))
        for part in bare
    )


def _gates(commands: Sequence[str], then: str) -> list[Draft] | None:
    parts = [part for command in commands for part in parts_of(command)]
    parts = [part for part in parts if not re.match(r"(?:cd|source|export) ", part)]
    if not parts or not all(is_runnable(part) for part in parts):
        return None
    firsts = dict.fromkeys(map(required_pattern, parts))
    return [
        Draft("command", "gate", {"name": "runs_before", "first": first, "then": then})
        for first in firsts
    ]


def _joined_by_or(codes: str) -> bool:
    return re.search(r"`,? or `", codes) is not None


def _run_before(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Run `make test` before committing."""
    if prohibits:
        return None
    tool = re.fullmatch(rf"(?:always )?run ([a-z-]+) before {_EVENT}{_OF_CHANGES}", clause, re.I)
    if tool and is_command(tool[1]):
        return _gates([tool[1]], _event_pattern(tool["event"]))
    without = (
        rf"(?:{_NEVER}) {_EVENT}{_OF_CHANGES},? without (?:first )?(?:running|having run)"
        rf" (?P<codes>{_CODES})"
    )
    labelled = re.fullmatch(rf"before {_EVENT}{_OF_CHANGES}", statement.label, re.I)
    if labelled and re.fullmatch(rf"(?:{_CHECKS} )?{_CODES}", clause, re.I):
        if _joined_by_or(clause):
            return None
        return _gates(re.findall("`([^`]+)`", clause), _event_pattern(labelled["event"]))
    forms = (
        without,
        rf"(?P<codes>{_CODES}) before {_EVENT}{_OF_CHANGES}",
        rf"{_CHECKS} (?P<codes>{_CODES})(?: and [\w\s-]{{1,40}})?,? before {_EVENT}{_OF_CHANGES}",
        rf"before {_EVENT}{_OF_CHANGES},? {_CHECKS} (?P<codes>{_CODES})",
        rf"(?P<codes>{_CODES}) (?:must|should|need to|has to|have to) (?:pass|succeed"
        rf"|be run|be clean) before {_EVENT}{_OF_CHANGES}",
    )
    for form in forms:
        if match := re.fullmatch(form + r"(?: to [\w\s-]+)?", clause, re.I):
            if _joined_by_or(match["codes"]):
                return None
            codes = re.findall("`([^`]+)`", match["codes"])
            return _gates(codes, _event_pattern(match["event"]))
    return _below_before(clause, statement) or _block_before(clause, statement)


def _below_before(clause: str, statement: Statement) -> list[Draft] | None:
    """An item `make test` below "Before committing"."""
    above = _BEFORE.match(statement.under[-1]) if statement.under else None
    label = rf"(?:{_CHECKS} )?"
    match = re.fullmatch(rf"{label}(?P<codes>{_CODES})", clause, re.I) if above else None
    if match and not statement.text.strip().startswith(clause[:20]):
        return None
    if above is None or match is None or _joined_by_or(match["codes"]):
        return None
    event = above["event"] or above["event2"]
    return _gates(re.findall("`([^`]+)`", match["codes"]), _event_pattern(event))


def _heading_before(statement: Statement) -> list[Draft] | None:
    """A code block right below the heading "Before committing"."""
    above = re.fullmatch(rf"#*\s*\**before {_EVENT}{_OF_CHANGES}[\s:*]*", statement.text, re.I)
    commands: list[str] = []
    for line in statement.block:
        if re.match(r"\s*git (?:add|commit|push)\b", line):
            break
        commands += parts_of(line)
    if above is None or not 1 <= len(commands) <= 6:
        return None
    return _gates(commands, _event_pattern(above["event"]))


def _block_before(clause: str, statement: Statement) -> list[Draft] | None:
    """Before committing, run: and a code block."""
    run = (
        r"(?:always |please |you must |must )*(?:run|execute)(?: (?:these|the following"
        r"|all)(?: \w+){1,3}?)?"
    )
    forms = (
        rf"before {_EVENT}{_OF_CHANGES},? {run}",
        rf"{run},? before {_EVENT}{_OF_CHANGES}",
        rf"(?:scan|check|lint|format|validate|verify|test)[\w ]{{1,30}} before"
        rf" {_EVENT}{_OF_CHANGES}"
        r" (?:with|using|by running)",
    )
    matches = (re.fullmatch(form, clause, re.I) for form in forms)
    match = next(filter(None, matches), None)
    if match is None or not 1 <= len(statement.block) <= 8:
        return None
    commands = [part for line in statement.block for part in parts_of(line)]
    return _gates(commands, _event_pattern(match["event"]))


_EDIT = r"(?:hand-?|manually |directly )?(?:edit|modify|touch|change|alter|update|write to)"
_MAKE = r"(?:create|recreate|re-create)"
_FILES = (
    r"(?:(?:the|any|all|generated|existing|files?|folders?|anything|code|director(?:y"
    r"|ies)) |(?:in|inside|under|within) )*"
)


def _globs(objects: str) -> list[str] | None:
    names = _names(objects)
    globs = [path_glob(name) for name, is_code in names if is_code]
    return (
        [glob for glob in globs if glob] if globs and len(names) == sum(map(bool, globs)) else None
    )


def _untouched(globs: Sequence[str]) -> list[Draft]:
    specs = [{"name": "file_not_touched", "path": glob} for glob in dict.fromkeys(globs)]
    return [Draft("file", "prohibition", spec) for spec in specs]


def _file_never(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Do not edit files in `vendor/`."""
    verbs = rf"{_EDIT}(?:(?: or |, |/){_EDIT})*(?: or delete)?"
    rest = _prohibited(clause, verbs, prohibits)
    match = (
        re.fullmatch(
            rf"{_FILES}({_CODES}|{_OBJECTS})(?: files?| folders?| director(?:y|ies))?{_TAIL}",
            rest,
            re.I,
        )
        if rest
        else None
    )
    rest = _prohibited(clause, rf"(?:{_MAKE}|{_EDIT}), (?:{_MAKE}|{_EDIT}),? or \w+", prohibits)
    if match is None:
        rest = rest or _prohibited(clause, _MAKE, prohibits)
        # of a folder that may have files already, only new ones are meant
        match = re.fullmatch(rf"({_CODES})(?: files?)?{_TAIL}", rest, re.I) if rest else None
    globs = _globs(match[1]) if match else None
    return _untouched(globs) if globs else None


def _file_is_generated(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """`src/gen/` is generated - do not edit."""
    if clause not in statement.text and clause != statement.text.strip(" ."):
        return None
    match = re.match(
        rf"(?:the |all |files in |everything in )?({_CODES})(?: files?| folder| directory)?"
        rf"\s*(?:[—–:(,-]|(?:is|are|was|were)\b)",
        statement.text,
        re.I,
    )
    if match is None or not (is_first := statement.text.startswith(clause[:12])) or not is_first:
        return None
    pieces = [
        piece.strip(" .!,:)")
        for piece in re.split(r"[—–;:(]|\s-\s|, (?=\w)|\. ", statement.text[match.end(1) :])
    ]
    following = re.split(r"[;—–]|\. ", statement.following)[:1]
    pieces += [piece.strip(" .!") for piece in following]
    says_no = any(
        re.fullmatch(
            rf"(?:so |and )?{_NEVER} {_EDIT}(?: (?:it|them|this|these|this file|"
            rf"that file|these files|{_REASON}))*",
            piece,
            re.I,
        )
        for piece in pieces
    )
    globs = _globs(match[1]) if says_no else None
    return _untouched(globs) if globs else None


def _is_no_edit_heading(name: str) -> bool:
    """Whether a heading or an introduction says that what is below is not to be edited."""
    plain = re.sub(r"[^\x00-\x7f’]", "", re.split(r" [—–-] ", name)[-1 if "must" in name else 0])
    of = r"these|the following|any|generated|files?|folders?|director(?:y|ies)|paths|of|in|or"
    return bool(
        re.search(rf"(?:{_NEVER}) {_EDIT}(?: (?:{of}|{_REASON}))*[\s:!.]*$", plain, re.I)
        or re.search(rf"(?:{_NEVER}) {_EDIT}(?: (?:{of}|{_REASON}))*[\s:!.]*$", name, re.I)
    )


def _file_below(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """An item `src/gen/` below "Never edit these files"."""
    labelled = re.fullmatch(
        rf"{_NEVER} {_EDIT}(?: generated| these)? files?", statement.label, re.I
    )
    listed = re.fullmatch(rf"{_CODES}", clause) if labelled else None
    if listed and (globs := _globs(clause)):
        return _untouched(globs)
    if statement.label:
        return None
    heading = any(map(_is_no_edit_heading, statement.under[-2:]))
    match = re.fullmatch(rf"({_CODES})", clause) if heading else None
    if match is None or not statement.text.startswith(match[1]):
        return None
    globs = _globs(match[1])
    return _untouched(globs) if globs else None


_TYPES = (
    *("build", "chore", "ci", "docs", "feat", "fix", "perf", "refactor", "revert", "style", "test"),
    *("deps", "release", "wip", "improvement"),
)


def _commit(pattern: str, polarity: Polarity) -> list[Draft]:
    return [Draft("commit", polarity, {"name": "commit_message", "pattern": pattern})]


def _conventional(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Commit messages follow Conventional Commits."""
    if prohibits or re.search(r"\btitles?\b|\bPRs?\b|pull request", clause, re.I):
        return None
    named = (
        r"(?:the )?(?:conventional|semantic)[ -]commits?(?: (?:format|style|specification|spec"
        r"|convention|messages?|standard)s?)*"
    )
    about = re.fullmatch(
        r"commits?(?: messages?| style| format| convention)?s?|git(?: commits)?",
        statement.label,
        re.I,
    )
    headed = any(
        re.fullmatch(
            r"(?:git )?commits?(?: messages?| style| format| conventions?| guidelines)?", name, re.I
        )
        for name in statement.under[-1:]
    )
    forms = (
        rf"{_ADVERBS}(?:use|follow|write|commit with|commit using|adhere to)"
        rf" {named}(?: for (?:all |your |the )?commits?(?: messages?)?)?{_TAIL}",
        r"(?:all )?(?:git )?commits?(?: messages?| titles?)?s? (?:must |should |need"
        rf" to )?(?:always )?(?:use|follow|adhere to|conform to) {named}{_TAIL}",
        rf"{_ADVERBS}(?:write|format|use) commit messages (?:in|using|with|following"
        rf"|per|according to) {named}{_TAIL}",
        rf"{_ADVERBS}(?:use|follow) {named} in (?:all )?commit(?:s| messages)",
    )
    scopes = r"(?: with (?:these|the following) scopes)?"
    fits = any(re.fullmatch(form + scopes, clause, re.I) for form in forms)
    fits = fits or bool((about or headed) and re.fullmatch(named, clause, re.I))
    shape = re.match(r"`\w+\(\w+\): \w+`", statement.text)
    if shape and re.search("commit", statement.label, re.I):  # its types are named elsewhere
        return _commit(r"\A[a-z]+(?:\([^)\n]+\))?!?: \S", "requirement")
    fits = fits or bool(re.fullmatch(named, statement.label, re.I) and clause.startswith("`"))
    return _commit(_conventional_pattern(statement.text), "requirement") if fits else None


def _conventional_pattern(text: str) -> str:
    """The pattern of Conventional Commits with the types, and the scopes, that a line lists."""
    codes = re.findall(r"`([^`]+)`", text)
    matches = (re.fullmatch(r"([a-z]+)(?:\([\w-]+\))?!?:", code) for code in codes)
    types = [match[1] for match in matches if match]
    scopes = [code for code in codes if re.fullmatch(r"[a-z][a-z0-9-]*", code)]
    scope = r"[^)\n]+"
    if re.search(r"\bwith (?:these|the following) scopes\b", text, re.I) and scopes:
        scope = any_of(scopes)
    kinds = "|".join(dict.fromkeys((*_TYPES, *types)))
    return rf"\A(?:{kinds})(?:\({scope}\))?!?: \S"


def _commit_format(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Commit messages follow the format `[scope] Summary`."""
    forms = (
        r"(?:all )?commit messages? (?:must |should )?(?:follow|use|have)(?: the)?"
        r" format `([^`]+)`",
        r"(?:use|follow) the `([^`]+)` format(?: for (?:all )?commit messages)?",
    )
    match = next(filter(None, (re.fullmatch(form, clause, re.I) for form in forms)), None)
    headed = any(
        "commit" in name.lower() for name in (clause, statement.label, *statement.under[-1:])
    )
    if match is None or prohibits or not headed:
        return None
    shape = re.fullmatch(
        r"(\[[\w -]+\]|\w+)?(\([\w -]+\))?(:)? ?[A-Za-z][\w .-]*",
        match[1].replace("<", "").replace(">", ""),
    )
    if shape is None or not (shape[3] or (shape[1] or "").startswith("[")):
        return None
    first = r"\[[^\]\n]+\]" if (shape[1] or "").startswith("[") else r"[\w-]+"
    scope = r"(?:\([^)\n]+\))?!?" if shape[2] else ""
    return _commit(rf"\A{first}{scope}{shape[3] or ''} \S", "requirement")


def _commit_trailers(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Do not add Co-Authored-By lines to commits."""
    trailer = (
        r"(?:an? |any )?[`\"“]?co-?authored-?by:?(?: \w+)?[`\"”]?(?: lines?|"
        r" trailers?| tags?| footers?|"
        r" attributions?| agents?)*"
    )
    where = r"(?: (?:to|in|on) (?:the |any |your |git )*commits?(?: messages?)?)?"
    rest = _prohibited(clause, "add|include|use|put|append|insert", prohibits)
    if rest is not None and re.fullmatch(rf"{trailer}{where}{_TAIL}", rest, re.I):
        return _commit(r"(?si)\A(?!.*co-authored-by:)", "prohibition")
    mention = _prohibited(clause, "mention|reference|credit|include|add", prohibits)
    name = (
        r"(?:claude|claude code|AI|chatgpt|copilot)(?:(?:,| or|, or) (?:claude|claude"
        r" code|AI|anthropic|copilot))*"
    )
    if mention is not None and (
        match := re.fullmatch(
            rf"({name}) in (?:the |any |git )*commit messages?{_TAIL}", mention, re.I
        )
    ):
        words = re.split(r",? or |, ", match[1])
        return _commit(rf"(?si)\A(?!.*\b(?:{'|'.join(map(re.escape, words))})\b)", "prohibition")
    return None


def _commit_length(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Keep the subject line under 72 characters."""
    match = re.fullmatch(
        rf"{_ADVERBS}(?:(?:keep|limit) )?(?:the )?(?:commit )?(?:subject|title|first"
        r"|summary)(?: line)?s?"
        r"(?: of (?:the )?commit messages?)? (?:(?:must|should) be )?(?P<how>under"
        r"|below|to|at most|within|up to|≤|<=?|max(?:imum)?|less than|no more than|no"
        r" longer than)"
        rf"(?: of)? (?P<count>\d+) (?:characters|chars)(?: or less| or fewer| max)?",
        clause,
        re.I,
    )
    if match is None and re.fullmatch("subject(?: line)?|first line", statement.label, re.I):
        match = re.fullmatch(
            r"(?P<how>≤|<=|<|under|below|at most|max(?:imum)?|up to) ?(?P<count>\d+)"
            r" (?:characters|chars)",
            clause,
            re.I,
        )
    is_about = "commit" in " ".join([clause, statement.label, *statement.under[-2:]]).lower()
    if (
        match is None
        or prohibits
        or not is_about
        or re.search(r"\bPR\b|pull request", clause, re.I)
    ):
        return None
    most = int(match["count"]) - (match["how"].lower() in ("under", "below", "less than", "<"))
    return _commit(rf"\A.{{1,{most}}}(?:\n|\Z)", "requirement")


_REPLIES = (
    r"(?:(?:all |your |every |each )*(?:replies|responses|answers|reply|response|answer"
    r"|messages to the user))"
)
_REPLY = r"(?:reply|respond|answer|communicate|speak|talk|chat|converse)"
_LANGUAGE = "|".join(sorted((re.escape(n) for n in NAMES.values()), key=len, reverse=True))
_CODE_OF = {name.lower(): code for code, name in NAMES.items()}


def _reply_language(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Always answer in German."""
    to = r"(?: (?:to|with) (?:me|the user|users|customers|us))?"
    forms = (
        rf"{_ADVERBS}{_REPLY}{to}(?: only)? (?:only )?in (?P<name>{_LANGUAGE})(?: only)?{_TAIL}",
        rf"{_REPLIES} (?:must|should) (?:always )?be (?:written )?in (?P<name>{_LANGUAGE}){_TAIL}",
        rf"{_ADVERBS}(?:use|write|speak) (?P<name>{_LANGUAGE}) (?:for|in) {_REPLIES}",
        rf"{_ADVERBS}speak (?P<name>{_LANGUAGE}){to}(?: only)?",
    )
    match = next(filter(None, (re.fullmatch(form, clause, re.I) for form in forms)), None)
    if match is None or prohibits:
        return None
    spec = {"name": "language", "code": _CODE_OF[match["name"].lower()]}
    return [Draft("language", "requirement", spec)]


_NUMBERS = dict(zip("one two three four five six seven eight nine ten".split(), range(1, 11),
                    strict=True))  # fmt: skip
_NUMBER = rf"(?P<count>\d+|{'|'.join(_NUMBERS)})"


def _reply_length(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Keep replies under 100 words."""
    how = (
        r"(?P<how>under|below|less than|fewer than|to|to at most|within|at most|up to|no"
        r" more than|a maximum of|at or under)"
    )
    forms = (
        rf"{_ADVERBS}(?:keep|limit) {_REPLIES} {how} {_NUMBER} (?P<unit>words"
        r"|sentences)(?: or less| or fewer)?",
        rf"{_ADVERBS}(?:{_REPLY}|write)(?: {_REPLIES})? (?:in|with|using) {how}"
        rf" {_NUMBER} (?P<unit>words|sentences)",
        rf"{_REPLIES} (?:must|should) (?:be|have|contain) {how} {_NUMBER}"
        r" (?P<unit>words|sentences)",
    )
    match = next(filter(None, (re.fullmatch(form, clause, re.I) for form in forms)), None)
    if match is None or prohibits:
        return None
    count = _NUMBERS.get(match["count"].lower()) or int(match["count"])
    count -= match["how"].lower() in ("under", "below", "less than", "fewer than")
    measure = {"words": "at_most_words", "sentences": "at_most_sentences"}[match["unit"].lower()]
    return [Draft("length", "requirement", {"name": measure, "count": count})] if count else None


def _reply_emojis(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Never use emojis."""
    where = rf"(?: in (?:{_REPLIES}|(?:any )?(?:output|chat|conversations?)))?"
    rest = _prohibited(clause, "use|add|include|write", prohibits)
    fits = rest is not None and re.fullmatch(rf"(?:any )?emojis?{where}{_TAIL}", rest, re.I)
    if not fits and not re.fullmatch(rf"no emojis?{where}", clause, re.I):
        return None
    spec = {"name": "regex", "regex": r"\A\P{Extended_Pictographic}*\Z"}
    return [Draft("tone", "prohibition", spec)]


_QUOTED = r"[\"“]([^\"”“]{1,80})[\"”]"


def _reply_words(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """End every reply with "Ciao!"; never say "obviously"."""
    begins = re.fullmatch(
        rf"{_ADVERBS}(?:start|begin|open|end|finish|close) {_REPLIES} with {_QUOTED}", clause, re.I
    )
    if begins and not prohibits:
        opens = re.match(rf"{_ADVERBS}(?:start|begin|open)", clause, re.I)
        spec = {"name": "starts_with" if opens else "ends_with", "word": begins[1].rstrip(".,")}
        return [Draft("opening" if opens else "closing", "requirement", spec)]
    rest = _prohibited(clause, "say|use|write", prohibits)
    match = (
        re.fullmatch(
            rf"(?:the )?(?:words? |phrases? )({_QUOTED}(?:(?:,| or|, or) {_QUOTED})*){_TAIL}"
            rf"|({_QUOTED}(?:(?:,| or|, or) {_QUOTED})*) (?:in {_REPLIES}|to (?:the )?users?)",
            rest,
            re.I,
        )
        if rest
        else None
    )
    if match is None:
        return None
    words = re.findall(_QUOTED, match[0])
    return [Draft("forbidden", "prohibition", {"name": "never_contains", "words": words})]


Form = Callable[[str, Statement, bool], list[Draft] | None]
_FORMS: tuple[Form, ...] = (
    _run_before,
    _instead_of,
    _command_never,
    _command_below,
    _git_never,
    _signed_off,
    _file_never,
    _file_is_generated,
    _file_below,
    _conventional,
    _commit_format,
    _commit_trailers,
    _commit_length,
    _reply_language,
    _reply_length,
    _reply_emojis,
    _reply_words,
    _package_manager,
)
