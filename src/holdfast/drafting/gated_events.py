"""The events before which commands are run (a commit, a push, a pull request), and the rule that a
command is run before one.
"""

import re
from collections.abc import Iterable

from holdfast.drafting.clauses import codes_in
from holdfast.drafting.commands import (
    any_of,
    is_runnable,
    parts_of,
    required_pattern,
    without_arguments,
)
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import any_words, one_of

_OPENING = one_of(
    *"opening creating submitting raising making updating".split(), "you open", "you create"
)
# the words for an event, and the pattern of the commands that cause it
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
EVENT = (
    r"(?:every |each |any |all |an? |the |your |making (?:a |any )?)*"
    rf"(?P<event>{_AN_EVENT}(?:{_OF_CHANGES} or {_AN_EVENT})?){_OF_CHANGES}"
)
_CHANGE_VERBS = one_of(
    *"make making modify modifying change changing edit editing write writing".split()
)
WHENEVER_CODE_CHANGES = (
    rf"(?:when(?:ever)? (?:you )?{_CHANGE_VERBS} (?:any )?(?:code|changes)[\w /]*, )?"
)
# a heading that says when its items are done; it is not a condition
UNCONDITIONAL = re.compile(
    rf"^{WHENEVER_CODE_CHANGES}"
    + one_of(
        r"[^`]*\bbefore\b",
        r"when(?:ever)? (?:you )?(?:commit|push)(?:ting|ing)?\b",
        r"(?:when|once|after) (?:the|a|your|you are|you['’]re) ?[\w ]*"
        r"\b(?:finished|done|completed?|ready)\b",
    ),
    re.I,
)

PLEASE = any_words("always", "please", "you must", "must", "make sure to", "be sure to")
# "always run", "lint the code with"
PLEASE_RUN = one_of(
    rf"{PLEASE}(?:run|execute|use)",
    any_words("always", "please")
    + one_of(*"run format lint check test validate verify type-?check".split())
    + r"\b[\w\s'/-]{1,40}? (?:with|using|via|by running)",
)
OPTIONAL = re.compile(r"\b(?:optional(?:ly)?|(?:if|when|as) (?:needed|necessary|required))\b", re.I)
MAX_STEP_COMMANDS = 8  # a code block with more commands is a script rather than a list of steps


def require_before(commands: Iterable[str], then: str) -> list[Draft]:
    """Requires each command before another one, with one rule per command; [] if one may not be a
    command.

    Args:
        commands: as they are written, perhaps several on one line: `make lint && make test`.
        then: the pattern of the other command.
    """
    parts = [without_arguments(part) for command in commands for part in parts_of(command)]
    parts = [part for part in parts if not re.match(r"(?:cd|source|export) ", part)]
    if not parts or not all(is_runnable(part) for part in parts):
        return []
    firsts = dict.fromkeys(map(required_pattern, parts))
    return [
        Draft("command", "gate", {"name": "runs_before", "first": first, "then": then})
        for first in firsts
    ]


def require_all_before(codes: str, then: str) -> list[Draft]:
    """As `require_before`, for a list of code spans; [] if any one of them is enough."""
    return [] if offers_choice(codes) else require_before(codes_in(codes), then)


def offers_choice(codes: str) -> bool:
    """Whether a list of code spans offers a choice: "`make lint` or `make check`"."""
    return re.search(r"`,? or `", codes) is not None


def command_of(event: str) -> str:
    """The pattern of the commands that cause an event, or one of two: "committing or pushing"."""
    if command := _command_for(event.strip()):
        return command
    parts = re.split(rf"(?<=\w) or (?={_AN_EVENT})", event.strip(), flags=re.I)
    bare = [re.sub(rf"{_OF_CHANGES}$", "", part, flags=re.I) for part in parts]
    return any_of(filter(None, map(_command_for, bare)))


def _command_for(event: str) -> str | None:
    """The pattern of the commands that cause one event; None if the words name no single event."""
    matches = (command for words, command in _EVENTS.items() if re.fullmatch(words, event, re.I))
    return next(matches, None)
