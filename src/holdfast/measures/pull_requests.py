"""The measure of the form of pull requests, however an agent opens them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.errors import UsageError
from holdfast.measures.agent_acts.agent_action import Pattern, check_patterns
from holdfast.measures.arguments import Flag, Texts
from holdfast.measures.opened_pull_requests import PullRequest, pull_requests_in
from holdfast.measures.patterns import matches
from holdfast.measures.reasons import explain_mismatch
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score, Undecided, WhenCut
from holdfast.measures.turns import AssistantTurn

# around the words of a heading: "## Testing", "**Testing**", "Testing:"
_HEADING_MARKS = re.compile(r"^[#\s*_]+|[\s*_:]+$")


@dataclass(frozen=True)
class _Form:
    """The form that a rule asks for; None for a part that may be anything."""

    title: str | None
    body: str | None
    sections: Sequence[str] | None
    draft: bool | None
    base: str | None


def _check(
    title: str | None,
    body: str | None,
    sections: Sequence[str] | None,
    draft: bool | None,
    base: str | None,
) -> None:
    """Refuses arguments that ask for nothing, or are no regular expressions."""
    form = _Form(title, body, sections, draft, base)
    check_patterns(form.title, form.body, form.base)
    if form == _Form(None, None, None, None, None):
        raise UsageError(
            "The measure 'pull_request' asks for nothing; give it title, body, sections, draft or"
            " base.",
            value="pull_request",
        )


@measure(check=_check, when_cut=WhenCut.IF_BROKEN, reads_earlier=True)
def pull_request(
    turn: AssistantTurn,
    title: Pattern | None = None,
    body: Pattern | None = None,
    sections: Texts | None = None,
    draft: Flag | None = None,
    base: Pattern | None = None,
) -> Score | Undecided | None:
    """Share of the pull requests opened in a turn whose title, body and base match the regular
    expressions, whose body has the headings, and that are drafts or not; turns that open none do
    not count.

    With `title: '^fix: '`, the command "gh pr create --title 'fix: a' --body b" scores 1, and
    "gh pr create --title a --body b" 0.
    """
    form = _Form(title, body, sections, draft, base)
    requests = list(pull_requests_in(turn))
    problems: list[str] = []
    for request in requests:
        conditions = list(_conditions(request, form))
        broken = [condition.problem for condition in conditions if condition.is_met is False]
        unknown = [condition.problem for condition in conditions if condition.is_met is None]
        if unknown and not broken:
            return Undecided(unknown[0])
        problems += broken[:1]
    if not requests:
        return None
    return Score(1 - len(problems) / len(requests), problems[0] if problems else "as asked for")


@dataclass(frozen=True)
class _Condition:
    """A condition of a rule on a pull request.

    Args:
        is_met: whether it is met; None if the log does not show that.
        problem: the reason if it is not met, or is not shown.
    """

    is_met: bool | None
    problem: str


def _conditions(request: PullRequest, form: _Form) -> Iterator[_Condition]:
    """Yields the conditions that a form sets, each with whether a pull request meets it."""
    parts = (
        ("title", form.title, request.title),
        ("body", form.body, request.body),
        ("base", form.base, request.base),
    )
    for name, pattern, text in parts:
        if pattern is None:
            continue
        if text is None:
            yield _Condition(None, f"the log does not show the {name} of the pull request")
        else:
            problem = explain_mismatch(f"the {name}", text, pattern)
            yield _Condition(matches(pattern, text), problem)
    for section in form.sections or ():
        if request.body is None:
            yield _Condition(None, "the log does not show the body of the pull request")
        else:
            yield _Condition(_has_heading(section, request.body), f"it has no section {section!r}")
    if form.draft is not None:
        problem = f"it is {'not ' if form.draft else ''}a draft"
        yield _Condition(request.draft is form.draft, problem)


def _has_heading(heading: str, body: str) -> bool:
    """Whether a line of Markdown is this heading: with #, in bold, underlined or with a colon."""
    plain = _HEADING_MARKS.sub("", heading).casefold()
    lines = (_HEADING_MARKS.sub("", line).casefold() for line in body.splitlines())
    return plain in lines
