"""Rules about what is run before a commit, a push, a pull request or another command."""

import re
from dataclasses import replace

from holdfast.drafting.clauses import Clause
from holdfast.drafting.commands import is_command, required_pattern
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import CODES, NEVER, forms, one_of, whole_match
from holdfast.drafting.gated_events import (
    EVENT,
    PLEASE,
    PLEASE_RUN,
    command_of,
    require_all_before,
    require_before,
)
from holdfast.drafting.order_list_rules import listed_gates

# --- Commands before an event

_CHECK = one_of(*"format lint check test validate verify type-?check build compile".split())
_BEHIND = r"(?::|,|,? (?:with|using|via|by running)| [-–—])"  # between the event and the commands
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
                rf"(?:{NEVER}) {EVENT},? without (?:first )?(?:running|having run)"
                rf" (?P<codes>{CODES})"
            ),
            "`make test` before committing": rf"(?P<codes>{CODES}) before {EVENT}",
            "`make lint` - run all linting before committing": (
                rf"(?P<codes>{CODES}) (?:-|–|—) (?:run|runs) [^`]{{0,40}}? before {EVENT}"
            ),
            "Never push if `make test` fails": (
                rf"(?:{NEVER}) {EVENT},? (?:if|when|unless|until) (?P<codes>{CODES})"
                r" (?:fails?|passes|pass|succeeds?|is green|is clean)"
            ),
            "Make sure that `make test` passes before you commit": (
                rf"{_ENSURE}(?: that)?(?: all)? (?P<codes>{CODES}) {_PASSES}(?: locally)?,?"
                rf" before {EVENT}"
            ),
            "All code must pass `make lint` before committing": (
                rf"(?:all |the |your )*(?:code|changes|commits|tests)"
                rf" (?:must|should|has to|have to) pass (?P<codes>{CODES}),? before {EVENT}"
            ),
            "Run the full test suite: `make test` before pushing": (
                rf"{PLEASE_RUN}{_UP_TO_FIVE_WORDS}[: ]+(?P<codes>{CODES}),? before {EVENT}"
            ),
            "Before committing, make sure `make fmt` was run": (
                rf"before {EVENT},? (?:always |please |you must |must )*(?:run|execute|{_ENSURE})"
                rf"(?: that| all)?{_UP_TO_FIVE_WORDS}[: ]+(?P<codes>{CODES})"
                rf"(?: (?:{_PASSES}|{_WAS_RUN}))?"
            ),
            "Run `make test` and fix failures before every commit": (
                rf"{PLEASE_RUN} (?P<codes>{CODES})"
                rf"(?: and [\w\s-]{{1,40}}| as (?:the|a) (?:last|final) step)?,? before {EVENT}"
            ),
            "Always lint the code before committing: `make lint`": (
                rf"(?:{PLEASE_RUN}|{PLEASE}{_CHECK}\b){_UP_TO_FIVE_WORDS},? before {EVENT}{_BEHIND}"
                rf" (?P<codes>{CODES})"
            ),
            "Before every commit, format the code with `make fmt`": (
                rf"before {EVENT},? {PLEASE_RUN} (?P<codes>{CODES})"
            ),
            "`make test` must pass before opening a PR": (
                rf"(?P<codes>{CODES}) (?:must|should|need to|has to|have to)"
                rf" (?:pass|succeed|be run|be clean) before {EVENT}"
            ),
        }.items()
    }
)
_CODES_IN_BRACKETS = re.compile(rf" \(({CODES})\)")
_PRE_COMMIT = forms(
    {
        "Run pre-commit hooks before pushing": (
            r"(?:always )?run (?:the |all )?(?:full )?pre-commit(?: hooks| suite| checks)?"
            rf"(?: locally)? before {EVENT}"
        )
    }
)
_BARE_TOOL = forms(
    {"Always run pytest before committing": rf"(?:always )?run (?P<tool>[a-z-]+) before {EVENT}"}
)

# "after making Go changes, always run `x` before committing": the beginning limits nothing
_AFTER_CHANGES = re.compile(
    r"^(?:after|when) (?:you )?(?:mak(?:e|ing) )?(?:any )?(?:[\w+#]+ )?(?:code )?changes,? "
    r"(?=.* before )",
    re.I,
)

# --- Commands before another command

_THEN = r"(?P<then>`[^`]+`)"
_CODE_BEFORE_CODE = forms(
    {
        "Run `make gen` before running `make test`": (
            rf"{PLEASE}(?:run|execute) (?P<codes>{CODES})(?: first)?,? before(?: you)?"
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


def run_before_rule(clause: Clause) -> list[Draft]:
    """Reads "run `make test` before committing" and "run `make gen` before `make test`"."""
    if clause.is_prohibited or re.search(r"` \(or\b", clause.statement.text):
        return []
    text = _AFTER_CHANGES.sub("", re.sub(r"\bprior to\b", "before", clause.text, flags=re.I))
    if match := whole_match(_PRE_COMMIT, text):
        return require_before(["pre-commit run"], command_of(match["event"]))
    match = whole_match(_BARE_TOOL, text)
    if match and is_command(match["tool"]):
        return require_before([match["tool"]], command_of(match["event"]))
    if match := whole_match(_GATES, _CODES_IN_BRACKETS.sub(r": \1", text)):
        return require_all_before(match["codes"], command_of(match["event"]))
    return _before_a_command(text) or listed_gates(replace(clause, text=text))


def _before_a_command(text: str) -> list[Draft]:
    """Reads "run `make gen` before `make test`"."""
    match = whole_match(_CODE_BEFORE_CODE, text)
    then = match["then"].strip("`") if match else ""
    if match is None or not is_command(then):
        return []
    return require_all_before(match["codes"], required_pattern(then))
