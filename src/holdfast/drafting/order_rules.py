"""Rules about what is run before a commit, a push or a pull request."""

import re
from collections.abc import Sequence

from holdfast.drafting.clauses import CODES, NEVER
from holdfast.drafting.commands import (
    any_of,
    is_command,
    is_runnable,
    parts_of,
    required_pattern,
)
from holdfast.drafting.drafts import Draft
from holdfast.drafting.rules_file import Statement

_EVENTS = (
    (r"(?:(?:you )?commit(?:s|ting)?)", r"git commit(?!\S)"),
    (r"(?:(?:you )?push(?:es|ing)?)", r"git push(?!\S)"),
    (
        r"(?:(?:opening|creating|submitting|raising|making|you open|you create)? ?"
        r"(?:an? |any |the |your |new )*(?:PRs?|pull[ -]requests?))",
        r"gh pr create(?!\S)",
    ),
)


_ITEM_TAIL = (
    r"(?: (?:to|for|and|passes|pass|must|should|succeeds|is|are|in|from|on|with)\b"
    r"(?:(?! (?:if|when|unless|or|only)\b).)*)?"
)
_ITEM_HEAD = (
    r"(?:(?:always |please |must |ensure (?:that )?|make sure (?:that )?)*"
    r"(?:(?:re-?)?(?:run|execute|use|format|lint|check|test|build|validate|verify|type-?check"
    r"|formatting|linting|tests|type checks?|compile|fix)\b)?(?:[\w\s'/-]{0,40}?"
    r"(?: with| using| via| by running|:))? ?)??"
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
    rf"^\W*{_GENERAL}(?:before {_EVENT}{_OF_CHANGES}\b[^`]*|[^`]*\b(?:run|execute)\b[^`]*"
    rf" before {_EVENT.replace('<event>', '<event2>')}{_OF_CHANGES}[:.]*)$",
    re.I,
)


_CHECKLIST = re.compile(
    r"(?:required |mandatory )?pre-?(?P<event>commit|push|PR|pull request)s?"
    r"(?: (?:checklist|checks?|requirements?|steps|validation|verification|commands"
    r"|quality checks|gates?))+(?: \((?:required|mandatory|must pass)\))?(?P<event2>)",
    re.I,
)


UNCONDITIONAL = re.compile(
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


def gates(commands: Sequence[str], then: str) -> list[Draft] | None:
    parts = [part for command in commands for part in parts_of(command)]
    parts = [part for part in parts if not re.match(r"(?:cd|source|export) ", part)]
    if not parts or not all(is_runnable(part) for part in parts):
        return None
    firsts = dict.fromkeys(map(required_pattern, parts))
    return [
        Draft("command", "gate", {"name": "runs_before", "first": first, "then": then})
        for first in firsts
    ]


def joined_by_or(codes: str) -> bool:
    return re.search(r"`,? or `", codes) is not None


def run_before(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Run `make test` before committing."""
    if prohibits or re.search(r"` \(or\b", statement.text):
        return None
    hooks = re.fullmatch(
        rf"(?:always )?run (?:the |all )?(?:full )?pre-commit(?: hooks| suite| checks)?"
        rf"(?: locally)? before {_EVENT}{_OF_CHANGES}", clause, re.I,
    )  # fmt: skip
    if hooks:
        return gates(["pre-commit run"], _event_pattern(hooks["event"]))
    tool = re.fullmatch(rf"(?:always )?run ([a-z-]+) before {_EVENT}{_OF_CHANGES}", clause, re.I)
    if tool and is_command(tool[1]):
        return gates([tool[1]], _event_pattern(tool["event"]))
    without = (
        rf"(?:{NEVER}) {_EVENT}{_OF_CHANGES},? without (?:first )?(?:running|having run)"
        rf" (?P<codes>{CODES})"
    )
    labelled = re.fullmatch(rf"before {_EVENT}{_OF_CHANGES}", statement.label, re.I)
    if labelled and re.fullmatch(rf"(?:{_CHECKS} )?{CODES}", clause, re.I):
        if joined_by_or(clause):
            return None
        return gates(re.findall("`([^`]+)`", clause), _event_pattern(labelled["event"]))
    forms = (
        without,
        rf"(?P<codes>{CODES}) before {_EVENT}{_OF_CHANGES}",
        rf"(?:{NEVER}) {_EVENT}{_OF_CHANGES},? (?:if|when|unless|until) (?P<codes>{CODES})"
        r" (?:fails?|passes|pass|succeeds?|is green|is clean)",
        rf"(?:ensure|make sure|verify|check|confirm)(?: that)?(?: all)? (?P<codes>{CODES})"
        rf" (?:passes|pass|succeeds?|is clean|is green|exits 0),? before {_EVENT}{_OF_CHANGES}",
        rf"(?:all |the |your )*(?:code|changes|commits|tests) (?:must|should|has to|have to) pass"
        rf" (?P<codes>{CODES}),? before {_EVENT}{_OF_CHANGES}",
        rf"{_CHECKS}(?: [\w'/-]+){{0,5}}[: ]+(?P<codes>{CODES}),? before {_EVENT}{_OF_CHANGES}",
        rf"before {_EVENT}{_OF_CHANGES},? (?:always |please |you must |must )*(?:run|execute|make"
        rf" sure|ensure|verify|check)(?: that| all)?(?: [\w'/-]+){{0,5}}[: ]+(?P<codes>{CODES})"
        r"(?: (?:passes|pass|succeeds?|is clean))?",
        rf"{_CHECKS} (?P<codes>{CODES})(?: and [\w\s-]{{1,40}})?,? before {_EVENT}{_OF_CHANGES}",
        rf"before {_EVENT}{_OF_CHANGES},? {_CHECKS} (?P<codes>{CODES})",
        rf"(?P<codes>{CODES}) (?:must|should|need to|has to|have to) (?:pass|succeed"
        rf"|be run|be clean) before {_EVENT}{_OF_CHANGES}",
    )
    for form in forms:
        if match := re.fullmatch(form + r"(?: to [\w\s-]+| and .+ (?:when|if) .+)?", clause, re.I):
            if joined_by_or(match["codes"]):
                return None
            codes = re.findall("`([^`]+)`", match["codes"])
            return gates(codes, _event_pattern(match["event"]))
    return _below_before(clause, statement) or _block_before(clause, statement)


def _below_before(clause: str, statement: Statement) -> list[Draft] | None:
    """An item `make test` below "Before committing"."""
    above = _BEFORE.match(statement.under[-1]) if statement.under else None
    if above is None and statement.under:
        above = _CHECKLIST.fullmatch(re.sub(r"^[\W\d]+|[\s:*.]+$", "", statement.under[-1]))
    item = rf"{_ITEM_HEAD}(?P<codes>{CODES}){_ITEM_TAIL}"
    match = re.fullmatch(item, clause, re.I) if above else None
    if match and not re.match(r"(?:if|when|for)\b", statement.label, re.I):
        head = clause[: match.start("codes")]
        if re.search(r"\b(?:no|not|never|if|optional\w*|instead|see|read)\b", head, re.I):
            match = None
    if match and not statement.text.strip().startswith(clause[:20]):
        return None
    if above is None or match is None or joined_by_or(match["codes"]):
        return None
    codes = re.findall("`([^`]+)`", match["codes"])
    if not all(is_command(part) for code in codes for part in parts_of(code)):
        return None
    event = above["event"] or above["event2"]
    return gates(codes, _event_pattern(event))


def heading_before(statement: Statement) -> list[Draft] | None:
    """A code block right below the heading "Before committing"."""
    above = re.fullmatch(rf"#*\s*\**before {_EVENT}{_OF_CHANGES}[\s:*]*", statement.text, re.I)
    commands: list[str] = []
    for line in statement.block:
        if re.match(r"\s*git (?:add|commit|push)\b", line):
            break
        commands += parts_of(line)
    if above is None or not 1 <= len(commands) <= 6:
        return None
    return gates(commands, _event_pattern(above["event"]))


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
        r"(?: (?:with|using|by running))?",
    )
    matches = (re.fullmatch(form, clause, re.I) for form in forms)
    match = next(filter(None, matches), None)
    if match is None or not 1 <= len(statement.block) <= 8:
        return None
    commands = [part for line in statement.block for part in parts_of(line)]
    return gates(commands, _event_pattern(match["event"]))
