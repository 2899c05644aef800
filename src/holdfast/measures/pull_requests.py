"""The measure of the form of pull requests, however an agent opens them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.errors import UsageError
from holdfast.measures.agent_acts.actions import actions_of
from holdfast.measures.agent_acts.agent_action import Action, Pattern, check_patterns
from holdfast.measures.agent_acts.agent_tools import (
    BASES,
    BODIES,
    DRAFTS,
    OPENS_PULL_REQUEST,
    TITLES,
    first_text,
    normalised_fields,
)
from holdfast.measures.agent_acts.commands.command_options import options_of
from holdfast.measures.agent_acts.written_texts import WrittenTexts, text_of_argument, text_of_file
from holdfast.measures.arguments import Flag, Texts
from holdfast.measures.patterns import matches
from holdfast.measures.reasons import explain_mismatch
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score, Undecided, WhenCut
from holdfast.measures.turns import AssistantTurn, ToolCall

# options with a value, and the letter of each
_GH_OPTIONS = {
    "--title": "t",
    "--body": "b",
    "--body-file": "F",
    "--base": "B",
    "--head": "H",
    "--assignee": "a",
    "--label": "l",
    "--milestone": "m",
    "--project": "p",
    "--reviewer": "r",
    "--template": "T",
    "--repo": "R",
    "--recover": "",
}
_GH_FLAGS = {"--draft": "d", "--fill": "f", "--web": "w"}
_GLAB_OPTIONS = {
    "--title": "t",
    "--description": "d",
    "--target-branch": "b",
    "--source-branch": "s",
    "--assignee": "a",
    "--label": "l",
    "--milestone": "m",
    "--reviewer": "",
    "--repo": "R",
    "--head": "H",
    "--related-issue": "i",
}
_GLAB_FLAGS = {"--fill": "f", "--yes": "y", "--web": "w"}
_API_OPTIONS = {"--raw-field": "f", "--field": "F", "--method": "X", "--header": "H"}
_HEADING_MARKS = re.compile(r"^[#\s*_]+|[\s*_:]+$")


@dataclass(frozen=True)
class PullRequest:
    """A pull request that an agent opens; None for a part that the log does not show."""

    title: str | None
    body: str | None
    draft: bool
    base: str | None


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
    """
    form = _Form(title, body, sections, draft, base)
    requests = list(_requests_in(turn))
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


def _requests_in(turn: AssistantTurn) -> Iterator[PullRequest]:
    """Yields the pull requests that a turn opens."""
    texts = WrittenTexts(turn.earlier)
    for action in actions_of(turn.calls):
        if action.tool_call is None:
            request = _read_command(action, texts)
        else:
            request = _read_tool_call(action.tool_call)
        if request is not None:
            yield request
        texts.note(action.edits)


def _read_command(action: Action, texts: WrittenTexts) -> PullRequest | None:
    """Returns the pull request that a command opens; None if it opens none."""
    words = action.command.arguments
    if words[:3] in (("gh", "pr", "create"), ("gh", "pr", "new")):
        return _read_gh(action, texts)
    if words[:3] in (("glab", "mr", "create"), ("glab", "mr", "new")):
        return _read_glab(action, texts)
    if words[:2] == ("gh", "api"):
        return _read_gh_api(words)
    return None


def _read_gh(action: Action, texts: WrittenTexts) -> PullRequest:
    options = options_of(action.command.arguments[3:], _GH_OPTIONS, _GH_FLAGS)
    body = text_of_argument(options.last("--body"), texts)
    if (file := options.last("--body-file")) is not None:
        body = text_of_file(file, action, texts)
    return PullRequest(
        title=text_of_argument(options.last("--title"), texts),
        body=body,
        draft="--draft" in options.flags,
        base=options.last("--base"),
    )


def _read_glab(action: Action, texts: WrittenTexts) -> PullRequest:
    options = options_of(action.command.arguments[3:], _GLAB_OPTIONS, _GLAB_FLAGS)
    title = text_of_argument(options.last("--title"), texts)
    body = text_of_argument(options.last("--description"), texts)
    if body == "-":  # glab opens an editor
        body = None
    return PullRequest(
        title=title,
        body=body,
        draft=bool(options.flags & {"--draft", "--wip"}) or _is_draft_title(title),
        base=options.last("--target-branch"),
    )


def _read_gh_api(words: Sequence[str]) -> PullRequest | None:
    """Returns the pull request that `gh api` opens; None for any other call of the API."""
    options = options_of(words[2:], _API_OPTIONS)
    fields = options.values.get("--raw-field", []) + options.values.get("--field", [])
    values: dict[str, str] = {}
    for field in fields:
        name, _, value = field.partition("=")
        values[name] = value
    path = next(iter(options.rest), "")
    if not re.search(r"repos/[^/]+/[^/]+/pulls\Z", path) or "head" not in values:
        return None
    body = values.get("body", "")
    return PullRequest(
        title=values.get("title"),
        body=None if body.startswith("@") else body,  # @ names a file
        draft=values.get("draft") == "true",
        base=values.get("base"),
    )


def _read_tool_call(call: ToolCall) -> PullRequest | None:
    """Returns the pull request that a tool opens; None for any other tool."""
    if not OPENS_PULL_REQUEST.search(call.name):
        return None
    fields = normalised_fields(call.arguments)
    title = first_text(fields, TITLES)
    return PullRequest(
        title=title,
        body=first_text(fields, BODIES) or "",
        draft=any(fields.get(name) is True for name in DRAFTS) or _is_draft_title(title),
        base=first_text(fields, BASES),
    )


def _is_draft_title(title: str | None) -> bool:
    """Whether a title marks a draft, as GitLab reads it."""
    return bool(title and re.match(r"\s*(\[draft\]|\(draft\)|draft:)", title, re.I))
