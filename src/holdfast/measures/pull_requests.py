"""The measure of the form of pull requests, however an agent opens them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.errors import UsageError
from holdfast.measures.actions import Action, Pattern, actions_of, check_patterns
from holdfast.measures.agent_tools import (
    BASES,
    BODIES,
    DRAFTS,
    OPENS_PULL_REQUEST,
    TITLES,
    fields_of,
    first_text,
)
from holdfast.measures.arguments import Flag, Texts
from holdfast.measures.command_options import options_of
from holdfast.measures.patterns import matches
from holdfast.measures.reasons import mismatch
from holdfast.measures.registry import measure
from holdfast.measures.scores import Score, Undecided, WhenCut
from holdfast.measures.turns import AssistantTurn, ToolCall
from holdfast.measures.written_texts import WrittenTexts, shown_text, text_of_file


@dataclass(frozen=True)
class PullRequest:
    """A pull request as an agent opens it; None for a part that the log does not show."""

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


def _check(**arguments: Any) -> None:
    form = _Form(**arguments)
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
    """Whether a condition is met, None if the log does not show it; and what is wrong if not."""

    is_met: bool | None
    problem: str


def _conditions(request: PullRequest, form: _Form) -> Iterator[_Condition]:
    parts = (
        ("title", form.title, request.title),
        ("body", form.body, request.body),
        ("base", form.base, request.base),
    )
    for name, pattern, text in parts:
        if pattern is not None and text is None:
            yield _Condition(None, f"the log does not show the {name} of the pull request")
        elif pattern is not None and text is not None:
            yield _Condition(matches(pattern, text), mismatch(f"the {name}", text, pattern))
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


_HEADING_MARKS = re.compile(r"^[#\s*_]+|[\s*_:]+$")


def _requests_in(turn: AssistantTurn) -> Iterator[PullRequest]:
    """The pull requests that a turn opens."""
    texts = WrittenTexts(turn.earlier)
    for action in actions_of(turn.calls):
        if action.is_shell:
            request = _by_command(action, texts)
        else:
            request = _by_tool(turn.calls[action.position])
        if request is not None:
            yield request
        texts.note(action.edits)


_GH = {
    **{"--title": "t", "--body": "b", "--body-file": "F", "--base": "B", "--head": "H"},
    **{"--assignee": "a", "--label": "l", "--milestone": "m", "--project": "p", "--reviewer": "r"},
    **{"--template": "T", "--repo": "R", "--recover": ""},
}
_GLAB = {
    **{"--title": "t", "--description": "d", "--target-branch": "b", "--source-branch": "s"},
    **{"--assignee": "a", "--label": "l", "--milestone": "m", "--reviewer": "", "--repo": "R"},
    **{"--head": "H", "--related-issue": "i"},
}
_API_FIELDS = {"--raw-field": "f", "--field": "F", "--method": "X", "--header": "H"}


def _by_command(action: Action, texts: WrittenTexts) -> PullRequest | None:
    words = action.command.arguments
    if words[:3] == ("gh", "pr", "create") or words[:3] == ("gh", "pr", "new"):
        options = options_of(words[3:], _GH, {"--draft": "d", "--fill": "f", "--web": "w"})
        title = shown_text(options.last("--title"), texts)
        body = shown_text(options.last("--body"), texts)
        if (file := options.last("--body-file")) is not None:
            body = text_of_file(file, action, texts)
        return PullRequest(title, body, "--draft" in options.flags, options.last("--base"))
    if words[:1] == ("glab",) and words[1:3] in (("mr", "create"), ("mr", "new")):
        options = options_of(words[3:], _GLAB, {"--fill": "f", "--yes": "y", "--web": "w"})
        title = shown_text(options.last("--title"), texts)
        body = shown_text(options.last("--description"), texts)
        if body == "-":  # from an editor
            body = None
        is_draft = bool(options.flags & {"--draft", "--wip"}) or _is_draft_title(title)
        return PullRequest(title, body, is_draft, options.last("--target-branch"))
    if words[:2] == ("gh", "api"):
        return _by_api(words)
    return None


def _by_api(words: Sequence[str]) -> PullRequest | None:
    options = options_of(words[2:], _API_FIELDS)
    fields = options.values.get("--raw-field", []) + options.values.get("--field", [])
    parts = (field.partition("=") for field in fields)
    values = {name: value for name, _, value in parts}
    path = next(iter(options.rest), "")
    if not re.search(r"repos/[^/]+/[^/]+/pulls\Z", path) or "head" not in values:
        return None
    text = values.get("body", "")
    body = None if text.startswith("@") else text  # from a file
    return PullRequest(values.get("title"), body, values.get("draft") == "true", values.get("base"))


def _by_tool(call: ToolCall) -> PullRequest | None:
    if not OPENS_PULL_REQUEST.search(call.name):
        return None
    fields = fields_of(call.arguments)
    title = first_text(fields, TITLES)
    is_draft = any(fields.get(name) is True for name in DRAFTS) or _is_draft_title(title)
    return PullRequest(title, first_text(fields, BODIES) or "", is_draft, first_text(fields, BASES))


def _is_draft_title(title: str | None) -> bool:
    """Whether a title marks a draft, as GitLab reads it."""
    return bool(title and re.match(r"\s*(\[draft\]|\(draft\)|draft:)", title, re.I))
