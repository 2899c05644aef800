"""Rules about what is run before a commit, a push, a pull request or another command."""

import re
from collections.abc import Iterable, Sequence

from holdfast.drafting.clauses import codes_in
from holdfast.drafting.commands import (
    any_of,
    is_command,
    is_runnable,
    is_tool,
    parts_of,
    required_pattern,
    without_arguments,
)
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import CODES, NEVER, any_words, forms, one_of, whole_match
from holdfast.drafting.rules_file import Statement

_OPENING = one_of(
    *"opening creating submitting raising making updating".split(), "you open", "you create"
)
# the words for an event, and the commands that it is done with
_EVENTS = {
    r"(?:(?:you )?commit(?:s|ting)?)": r"git commit(?!\S)",
    r"(?:(?:you )?push(?:es|ing)?)": r"git push(?!\S)",
    rf"(?:(?:{_OPENING}(?: or {_OPENING})?)? ?"
    r"(?:an? |any |the |your |new )*(?:PRs?|pull[ -]requests?))": r"gh pr create(?!\S)",
    r"(?:submitting|submission)": r"(?:git push|gh pr create)(?!\S)",
    r"(?:requesting (?:a )?reviews?)": r"gh pr create(?!\S)",
    r"(?:(?:you )?merg(?:e|ing))": r"(?:git merge|gh pr merge)(?!\S)",
}
_AN_EVENT = one_of(*_EVENTS)
_OF_CHANGES = "(?: {})?".format(
    one_of(
        r"to (?:the )?(?:remote|repo(?:sitory)?|GitHub)",
        r"(?:any |your |the |all )?(?:(?:[\w+#]+ )?code |file )?(?:changes?|code|anything|work)",
    )
)
# "every commit", "committing any changes or opening a PR"
_EVENT = (
    r"(?:every |each |any |all |an? |the |your |making (?:a |any )?)*"
    rf"(?P<event>{_AN_EVENT}(?:{_OF_CHANGES} or {_AN_EVENT})?){_OF_CHANGES}"
)
_CHANGE_VERBS = one_of(
    *"make making modify modifying change changing edit editing write writing".split()
)
_WHENEVER_CODE_CHANGES = (
    rf"(?:when(?:ever)? (?:you )?{_CHANGE_VERBS} (?:any )?(?:code|changes)[\w /]*, )?"
)
# a heading that says when, and is no condition
UNCONDITIONAL = re.compile(
    rf"^{_WHENEVER_CODE_CHANGES}"
    + one_of(
        r"[^`]*\bbefore\b",
        r"when(?:ever)? (?:you )?(?:commit|push)(?:ting|ing)?\b",
        r"(?:when|once|after) (?:the|a|your|you are|you['’]re) ?[\w ]*"
        r"\b(?:finished|done|completed?|ready)\b",
    ),
    re.I,
)

_PLEASE = any_words("always", "please", "you must", "must", "make sure to", "be sure to")
# "always run", "lint the code with"
_RUN = one_of(
    rf"{_PLEASE}(?:run|execute|use)",
    any_words("always", "please")
    + one_of(*"run format lint check test validate verify type-?check".split())
    + r"\b[\w\s'/-]{1,40}? (?:with|using|via|by running)",
)
_CHECK = one_of(*"format lint check test validate verify type-?check build compile".split())
_BEHIND = r"(?::|,|,? (?:with|using|via|by running)| [-–—])"  # before what is run
_ENSURE = r"(?:ensure|make sure|verify|check|confirm)"
_PASSES = r"(?:passes|pass|succeeds?|is clean|is green|exits 0)"
_WAS_RUN = r"(?:(?:is|are|was|were|has been|have been) run)"
_UP_TO_FIVE_WORDS = r"(?: [\w'/-]+){0,5}"
_AND_MORE = r"(?: to [\w\s-]+| and .+ (?:when|if) .+)?"
_GATES = forms(
    {
        example: pattern + _AND_MORE
        for example, pattern in {
            "Never commit without running `make test`": (
                rf"(?:{NEVER}) {_EVENT},? without (?:first )?(?:running|having run)"
                rf" (?P<codes>{CODES})"
            ),
            "`make test` before committing": rf"(?P<codes>{CODES}) before {_EVENT}",
            "`make lint` - run all linting before committing": (
                rf"(?P<codes>{CODES}) (?:-|–|—) (?:run|runs) [^`]{{0,40}}? before {_EVENT}"
            ),
            "Never push if `make test` fails": (
                rf"(?:{NEVER}) {_EVENT},? (?:if|when|unless|until) (?P<codes>{CODES})"
                r" (?:fails?|passes|pass|succeeds?|is green|is clean)"
            ),
            "Make sure that `make test` passes before you commit": (
                rf"{_ENSURE}(?: that)?(?: all)? (?P<codes>{CODES}) {_PASSES}(?: locally)?,?"
                rf" before {_EVENT}"
            ),
            "All code must pass `make lint` before committing": (
                rf"(?:all |the |your )*(?:code|changes|commits|tests)"
                rf" (?:must|should|has to|have to) pass (?P<codes>{CODES}),? before {_EVENT}"
            ),
            "Run the full test suite: `make test` before pushing": (
                rf"{_RUN}{_UP_TO_FIVE_WORDS}[: ]+(?P<codes>{CODES}),? before {_EVENT}"
            ),
            "Before committing, make sure `make fmt` was run": (
                rf"before {_EVENT},? (?:always |please |you must |must )*(?:run|execute|{_ENSURE})"
                rf"(?: that| all)?{_UP_TO_FIVE_WORDS}[: ]+(?P<codes>{CODES})"
                rf"(?: (?:{_PASSES}|{_WAS_RUN}))?"
            ),
            "Run `make test` and fix failures before every commit": (
                rf"{_RUN} (?P<codes>{CODES})"
                rf"(?: and [\w\s-]{{1,40}}| as (?:the|a) (?:last|final) step)?,? before {_EVENT}"
            ),
            "Always lint the code before committing: `make lint`": (
                rf"(?:{_RUN}|{_PLEASE}{_CHECK}\b){_UP_TO_FIVE_WORDS},? before {_EVENT}{_BEHIND}"
                rf" (?P<codes>{CODES})"
            ),
            "Before every commit, format the code with `make fmt`": (
                rf"before {_EVENT},? {_RUN} (?P<codes>{CODES})"
            ),
            "`make test` must pass before opening a PR": (
                rf"(?P<codes>{CODES}) (?:must|should|need to|has to|have to)"
                rf" (?:pass|succeed|be run|be clean) before {_EVENT}"
            ),
        }.items()
    }
)
_CODES_IN_BRACKETS = re.compile(rf" \(({CODES})\)")
_PRE_COMMIT = forms(
    {
        "Run pre-commit hooks before pushing": (
            r"(?:always )?run (?:the |all )?(?:full )?pre-commit(?: hooks| suite| checks)?"
            rf"(?: locally)? before {_EVENT}"
        )
    }
)
_BARE_TOOL = forms(
    {"Always run pytest before committing": rf"(?:always )?run (?P<tool>[a-z-]+) before {_EVENT}"}
)

# narrows nothing before a commit: "after making Go changes, always run `x` before committing"
_AFTER_CHANGES = re.compile(
    r"^(?:after|when) (?:you )?(?:mak(?:e|ing) )?(?:any )?(?:[\w+#]+ )?(?:code )?changes,? "
    r"(?=.* before )",
    re.I,
)


def run_before_rule(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Run `make test` before committing; run `make gen` before `make test`."""
    if prohibits or re.search(r"` \(or\b", statement.text):
        return None
    clause = _AFTER_CHANGES.sub("", re.sub(r"\bprior to\b", "before", clause, flags=re.I))
    if match := whole_match(_PRE_COMMIT, clause):
        return gates(["pre-commit run"], _command_of(match["event"]))
    match = whole_match(_BARE_TOOL, clause)
    if match and is_command(match["tool"]):
        return gates([match["tool"]], _command_of(match["event"]))
    if match := whole_match(_GATES, _CODES_IN_BRACKETS.sub(r": \1", clause)):
        return _gates_in(match["codes"], _command_of(match["event"]))
    return (
        _before_a_command(clause)
        or _labelled_before(clause, statement)
        or _below_before(clause, statement)
        or _block_before(clause, statement)
    )


def gates(commands: Iterable[str], then: str) -> list[Draft] | None:
    """A rule for each of some commands, that it is run before another.

    Args:
        commands: as they are written, perhaps several in one line: `make lint && make test`.
        then: the pattern of the other command.
    """
    parts = [without_arguments(part) for command in commands for part in parts_of(command)]
    parts = [part for part in parts if not re.match(r"(?:cd|source|export) ", part)]
    if not parts or not all(is_runnable(part) for part in parts):
        return None
    firsts = dict.fromkeys(map(required_pattern, parts))
    return [
        Draft("command", "gate", {"name": "runs_before", "first": first, "then": then})
        for first in firsts
    ]


def _gates_in(codes: str, then: str) -> list[Draft] | None:
    """The rules for a list of code spans, unless any one of them is enough."""
    return None if joined_by_or(codes) else gates(codes_in(codes), then)


def joined_by_or(codes: str) -> bool:
    """Whether a list of code spans offers a choice."""
    return re.search(r"`,? or `", codes) is not None


def _command_of(event: str) -> str:
    """The pattern of the commands for an event, or for one event or another."""
    if command := _command_for(event.strip()):
        return command
    parts = re.split(rf"(?<=\w) or (?={_AN_EVENT})", event.strip(), flags=re.I)
    bare = [re.sub(rf"{_OF_CHANGES}$", "", part, flags=re.I) for part in parts]
    return any_of(filter(None, map(_command_for, bare)))


def _command_for(event: str) -> str | None:
    matches = (command for words, command in _EVENTS.items() if re.fullmatch(words, event, re.I))
    return next(matches, None)


_THEN = r"(?P<then>`[^`]+`)"
_CODE_BEFORE_CODE = forms(
    {
        "Run `make gen` before running `make test`": (
            rf"{_PLEASE}(?:run|execute) (?P<codes>{CODES})(?: first)?,? before(?: you)?"
            rf"(?: (?:run|running|execute|executing|calling|using))? {_THEN}"
        ),
        "Never run `make ship` without running `make test`": (
            rf"(?:{NEVER}) (?:run|execute|call|use) {_THEN}"
            r" (?:without (?:first )?running|before(?: running)?|until)"
            rf" (?P<codes>{CODES})(?: (?:first|has (?:run|passed)|{_PASSES}))?"
        ),
        "`make gen` must be run before `make test`": (
            rf"(?P<codes>{CODES}) (?:must|should|has to|have to|needs? to) (?:always )?(?:be )?"
            rf"(?:run|come|pass|finish|succeed) before {_THEN}"
        ),
        "Only run `make ship` after `make test` has passed": (
            rf"only run {_THEN} after(?: running)? (?P<codes>{CODES})"
            rf"(?: (?:{_PASSES}|has passed|has run))?"
        ),
    }
)


def _before_a_command(clause: str) -> list[Draft] | None:
    """Run `make gen` before `make test`."""
    match = whole_match(_CODE_BEFORE_CODE, clause)
    if match is None or not is_command(then := match["then"].strip("`")):
        return None
    return _gates_in(match["codes"], required_pattern(then))


_LABEL_BEFORE = forms({"Checks before committing": rf"(?:[^`]*\b)?before {_EVENT}"})
_COMMANDS_ALONE = forms({"run `make lint` and `make test`": rf"(?:{_RUN} )?{CODES}"})


def _labelled_before(clause: str, statement: Statement) -> list[Draft] | None:
    """Before committing: `make test`."""
    name = statement.label or statement.opening.strip(" .:")
    label = whole_match(_LABEL_BEFORE + _CHECKLISTS, name)
    if label is None or not whole_match(_COMMANDS_ALONE, clause):
        return None
    return _gates_in(clause, _command_of(label["event"]))


_CHECKLISTS = forms(
    {
        "PR checklist:": (
            r"\W*(?P<event>PR|pull request)s? (?:checklist|requirements?|checks?)[\s:*.]*"
        ),
        "Pre-commit checklist (required):": (
            r"[\W\d]*(?:required |mandatory )?"
            r"pre-?(?P<event>commit|push|PR|pull request|submission)s?(?: "
            + one_of(
                *("checklist", "checks?", "requirements?", "steps", "validation", "verification"),
                *("commands", "quality checks", "gates?"),
            )
            + r")+(?: \((?:required|mandatory|must pass)\))?[\s:*.]*"
        ),
    }
)
_HEADINGS = _CHECKLISTS + forms(
    {
        "Before committing, always:": (
            rf"\W*(?:required |mandatory )?{_WHENEVER_CODE_CHANGES}before {_EVENT}\b[^`]*"
        ),
        "Commands to run before a commit:": (
            rf"\W*{_WHENEVER_CODE_CHANGES}[^`]*\b(?:run|execute)\b[^`]* before {_EVENT}[:.]*"
        ),
    }
)
_ITEM = forms(
    {
        "Lint the code with `make lint` to find mistakes": (
            r"(?P<head>(?:(?:always |please |must |ensure (?:that )?|make sure (?:that )?)*"
            r"(?:(?:re-?)?"
            + one_of(
                *"run execute use format lint check test build validate verify".split(),
                *("type-?check", "formatting", "linting", "tests", "type checks?", "compile"),
                "fix",
            )
            + r"\b)?(?:[\w\s'/-]{0,40}?(?: with| using| via| by running|:))? ?)??)"
            rf"\(?(?P<codes>{CODES})\)?(?: "
            + one_of(*"to for and passes pass must should succeeds is are in from on with".split())
            + r"\b(?:(?! (?:if|when|unless|or|only)\b).)*)?"
        )
    }
)
_TOOL_ITEM = forms({"Run pytest": r"(?:always |please )?(?:run|execute) (?P<tool>[a-z-]+)"})
OPTIONAL = re.compile(r"\b(?:optional(?:ly)?|(?:if|when|as) (?:needed|necessary|required))\b", re.I)
_NO_STEP = re.compile(r"\b(?:no|not|never|if|optional\w*|instead|see|read)\b", re.I)


def _below_before(clause: str, statement: Statement) -> list[Draft] | None:
    """An item `make test` below "Before committing"."""
    heading = whole_match(_HEADINGS, statement.under[-1]) if statement.under else None
    if heading is None or not statement.text.strip().startswith(clause[:20]):
        return None
    then = _command_of(heading["event"])
    tool = whole_match(_TOOL_ITEM, clause)
    if tool and (is_tool(tool["tool"]) or tool["tool"] == "pre-commit"):
        return gates([tool["tool"]], then)
    item = whole_match(_ITEM, clause)
    if item is None or re.match(r"(?:if|when|for)\b", statement.label, re.I):
        return None
    if OPTIONAL.search(f"{statement.label} {statement.text}"):
        return None
    codes = codes_in(item["codes"])
    if _NO_STEP.search(item["head"]) or joined_by_or(item["codes"]):
        return None
    if not all(is_command(part) for code in codes for part in parts_of(code)):
        return None
    return gates(codes, then)


_HEADING_OF_BLOCK = re.compile(rf"#*\s*\**before {_EVENT}[\s:*]*", re.I)
MAX_STEP_COMMANDS = 8  # of a block that is a list of steps, and no script


def heading_before(statement: Statement) -> list[Draft] | None:
    """A code block right below the heading "Before committing"."""
    heading = _HEADING_OF_BLOCK.fullmatch(statement.text)
    return _steps(statement.block, heading) if heading else None


_RUN_THESE = rf"{_PLEASE}(?:run|execute)(?: (?:these|the following|all)(?: \w+){{1,3}}?)?"
_INTRODUCTIONS = forms(
    {
        "Before pushing, run these commands": rf"before {_EVENT},? {_RUN_THESE}",
        "Run all the checks before committing": rf"(?:.*,? then )?{_RUN_THESE},? before {_EVENT}",
        "Test the change, then before pushing run": (
            rf"(?:.*,? then )before {_EVENT},? {_RUN_THESE}"
        ),
        "Lint your code before committing with": (
            rf"(?:scan|check|lint|format|validate|verify|test)[\w ]{{1,30}} before {_EVENT}"
            r"(?: (?:with|using|by running))?"
        ),
    }
)


def _block_before(clause: str, statement: Statement) -> list[Draft] | None:
    """Before committing, run: and a code block."""
    introduction = whole_match(_INTRODUCTIONS, clause)
    return _steps(statement.block, introduction) if introduction else None


def _steps(block: Sequence[str], event: re.Match[str]) -> list[Draft] | None:
    """The commands of a code block up to the commit or push that they are for."""
    commands: list[str] = []
    for line in _whole_lines(block):
        if re.match(r"\s*git (?:add|commit|push)\b", line):
            break
        commands += parts_of(line)
    if not 1 <= len(commands) <= MAX_STEP_COMMANDS:
        return None
    return gates(commands, _command_of(event["event"]))


def _whole_lines(block: Sequence[str]) -> list[str]:
    """The lines of a code block, of which one that ends in a backslash goes on in the next."""
    return re.sub(r"\s*\\\n\s*", " ", "\n".join(block)).split("\n")
